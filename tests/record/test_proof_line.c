/* test_proof_line.c: proofs of advice survive the way to a file and back, and correct a rule. */
#include "base/arena.h"
#include "check.h"
#include "record/proof_line.h"
#include "record/record.h"

#include <string.h>

static const struct proof_line proof = {.rule = "R10",
                                        .command = "python3 train.py \"a b\"",
                                        .change = "OMP_NUM_THREADS=1",
                                        .expected = 2,
                                        .low = 1.5,
                                        .high = 3,
                                        .measured = 2.5,
                                        .measured_low = 2.4,
                                        .measured_high = 2.6,
                                        .rounds = 8,
                                        .verdict = VERDICT_FASTER};

TEST(is_read_back)
{
    struct arena arena = {0};
    struct text line = {0};
    struct record record;
    struct proof_line back;
    proof_line_write(&proof, NULL, "2026-11-15T10:03:58Z", &line);
    CHECK_OK(record_read(&arena, "test", 1, text_of(&line), line.length, &record));
    CHECK_EQUAL_INT(record.kind, RECORD_PROOF);
    CHECK_OK(proof_line_read(record.proof, &back));
    CHECK_EQUAL_TEXT(back.command, proof.command);
    CHECK(back.measured == proof.measured && back.verdict == VERDICT_FASTER && back.rounds == 8);
    struct text again = {0};
    record_write(&record, &again);
    CHECK_EQUAL_TEXT(text_of(&again), text_of(&line));
    text_free(&again);
    text_free(&line);
    arena_free(&arena);
}

TEST(needs_a_rule_and_a_verdict)
{
    static const char *const lines[] = {
        "{\"prony\":1,\"kind\":\"proof\",\"proof\":{\"verdict\":\"same\"}}",
        "{\"prony\":1,\"kind\":\"proof\",\"proof\":{\"rule\":\"R1\",\"verdict\":\"perhaps\"}}"};
    for (size_t i = 0; i < 2; i++) {
        struct arena arena = {0};
        struct record record;
        struct proof_line back;
        CHECK_OK(record_read(&arena, "test", 1, lines[i], strlen(lines[i]), &record));
        CHECK_STATUS(STATUS_INPUT, proof_line_read(record.proof, &back));
        arena_free(&arena);
    }
}

TEST(holds_what_overlaps)
{
    struct proof_line other = proof;
    CHECK(proof_held(&other));
    other.high = 2.3;
    CHECK(!proof_held(&other));
    other = proof;
    other.verdict = VERDICT_SAME;
    CHECK(!proof_held(&other));
}

TEST(corrects_a_range)
{
    struct proof_history history = {0};
    double low = 0.9, high = 1.1;
    proof_history_correct(&history, &low, &high);
    CHECK(low == 0.9 && high == 1.1);
    proof_history_add(&history, &proof); /* 1.5 ÷ 1 */
    proof_history_correct(&history, &low, &high);
    CHECK(low == 0.9 && high == 1.5);
    for (int i = 0; i < 20; i++)
        proof_history_add(&history, &proof);
    proof_history_correct(&history, &low, &high);
    CHECK(low == 1.5 && high == 1.5);
    CHECK_EQUAL_INT(history.held, 21);
}

CHECK_MAIN
