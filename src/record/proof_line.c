/* proof_line.c: see proof_line.h. */
#include "record/proof_line.h"

#include "record/member.h"
#include "record/names.h"
#include "record/record.h"

#include <math.h>
#include <string.h>

void proof_line_write(const struct proof_line *proof, const struct json *machine, const char *at,
                      struct text *out)
{
    struct json_writer json;
    json_begin(&json, out);
    json_object(&json);
    json_put_int(&json, "prony", RECORD_VERSION);
    json_put_text(&json, "kind", record_kinds[RECORD_PROOF]);
    json_key(&json, "proof");
    json_object(&json);
    json_put_text(&json, "rule", proof->rule);
    json_put_text(&json, "command", proof->command);
    json_put_text(&json, "change", proof->change);
    json_put_figure(&json, "expected", proof->expected);
    json_put_figure(&json, "low", proof->low);
    json_put_figure(&json, "high", proof->high);
    json_put_figure(&json, "measured", proof->measured);
    json_put_figure(&json, "measured_low", proof->measured_low);
    json_put_figure(&json, "measured_high", proof->measured_high);
    json_put_int(&json, "rounds", proof->rounds);
    json_put_text(&json, "verdict", verdict_name(proof->verdict));
    json_end(&json);
    if (machine) {
        json_put_tree(&json, "machine", machine);
    }
    json_put_text(&json, "at", at);
    json_end(&json);
}

enum status proof_line_read(const struct json *object, struct proof_line *out)
{
    static const char path[] = "proof.";
    size_t verdict;
    *out = (struct proof_line){.rule = json_text(object, "rule", NULL),
                               .command = json_text(object, "command", ""),
                               .change = json_text(object, "change", ""),
                               .expected = json_real(object, "expected", (double)NAN),
                               .low = json_real(object, "low", (double)NAN),
                               .high = json_real(object, "high", (double)NAN),
                               .measured = json_real(object, "measured", (double)NAN),
                               .measured_low = json_real(object, "measured_low", (double)NAN),
                               .measured_high = json_real(object, "measured_high", (double)NAN),
                               .rounds = json_int(object, "rounds", 0)};
    if (!out->rule)
        return member_fail(path, "rule", json_get(object, "rule"), "a text");
    TRY(member_choice(object, path, "verdict", record_comparisons, RECORD_COMPARISONS, &verdict));
    out->verdict = (enum verdict)verdict;
    return STATUS_OK;
}

bool proof_held(const struct proof_line *proof)
{
    return proof->verdict == VERDICT_FASTER && proof->measured_low <= proof->high &&
           proof->measured_high >= proof->low;
}

void proof_history_add(struct proof_history *history, const struct proof_line *proof)
{
    const double factor = (proof->measured - 1) / (proof->expected - 1);
    history->proofs++;
    history->faster += proof->verdict == VERDICT_FASTER;
    history->held += proof_held(proof);
    if (isfinite(factor) && proof->expected > 1 && history->factor_count < PROOFS_MOST)
        history->factors[history->factor_count++] = factor;
}

void proof_history_correct(const struct proof_history *history, double *low, double *high)
{
    const size_t count = history->factor_count;
    if (!count)
        return;
    const double least = stats_quantile(history->factors, count, 0.05);
    const double most = stats_quantile(history->factors, count, 0.95);
    const bool many = count >= 4 * PROOFS_TELLING;
    *low = many ? least : fmin(*low, least);
    *high = many ? most : fmax(*high, most);
}
