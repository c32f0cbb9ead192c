/* safetensors files: what is written is read back, byte by byte as published; damage is refused. */
#include "base/file.h"
#include "base/memory.h"
#include "check.h"
#include "nn/formats/safetensors.h"

#include <stdlib.h>
#include <unistd.h>

static char path[] = "/tmp/prony-safetensors-XXXXXX";

/* A name in a fresh temporary folder; remove_file takes both away. */
static const char *make_path(void)
{
    static char file[sizeof path + 16];
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    if (!mkdtemp(path))
        return "/nonexistent/file";
    snprintf(file, sizeof file, "%s/file", path);
    return file;
}

static void remove_file(const char *file)
{
    unlink(file);
    rmdir(path);
}

/* weight f32 2×3, mean f32 2 (statistic), moment f32 2×3 (state), filled with distinct numbers. */
static enum status make_params(struct params *params, float first)
{
    static const struct {
        const char *name;
        enum role role;
        struct shape shape;
    } entries[] = {{"dense1.weight", ROLE_PARAM, {2, {2, 3}}},
                   {"norm1.mean", ROLE_STATISTIC, {1, {2}}},
                   {"dense1.weight.moment", ROLE_STATE, {2, {2, 3}}}};
    params_init(params, DTYPE_F32);
    for (int i = 0; i < 3; i++) {
        int32_t entry;
        TRY(params_declare(params, entries[i].name, entries[i].role, DTYPE_F32, entries[i].shape,
                           (struct init){INIT_ZERO, 0}, &entry));
        float *data = params_data(params, entry);
        for (int64_t k = 0; k < shape_count(&entries[i].shape); k++)
            data[k] = first++;
    }
    params->control = (struct control){
        .step = 7, .seed = UINT64_MAX, .rate = 0.1, .scale = 1 << 24, .scaled = 1999};
    return STATUS_OK;
}

static bool same_entry(const struct params *a, const struct params *b, int32_t entry)
{
    return memcmp(params_data(a, entry), params_data(b, entry), a->entries[entry].bytes) == 0;
}

TEST(checkpoint_reads_back_bit_for_bit)
{
    static const struct safetensors_note notes[] = {{"network", "input 2\n\"odd\" \\ ünïcode\n"}};
    struct params params, other;
    struct safetensors file = {0};
    const char *name = make_path();
    if (CHECK_OK(make_params(&params, 1)) && CHECK_OK(make_params(&other, 100)) &&
        CHECK_OK(safetensors_write(name, &params, SAFETENSORS_CHECKPOINT, notes, 1)) &&
        CHECK_OK(safetensors_open(name, &file)) &&
        CHECK_OK(safetensors_load(&file, SAFETENSORS_CHECKPOINT, &other))) {
        for (int32_t i = 0; i < 3; i++)
            CHECK(same_entry(&params, &other, i));
        CHECK_EQUAL_INT(other.control.step, 7);
        CHECK(other.control.seed == UINT64_MAX);
        CHECK(other.control.rate == 0.1);
        CHECK(other.control.scale == 1 << 24 && other.control.scaled == 1999);
        CHECK_EQUAL_TEXT(safetensors_note(&file, "network"), notes[0].value);
        CHECK_EQUAL_TEXT(safetensors_note(&file, "nothing"), NULL);
    }
    safetensors_close(&file);
    params_free(&params);
    params_free(&other);
    remove_file(name);
}

TEST(weights_leave_state_and_control_alone)
{
    struct params params, other;
    struct safetensors file = {0};
    const char *name = make_path();
    if (CHECK_OK(make_params(&params, 1)) && CHECK_OK(make_params(&other, 100)) &&
        CHECK_OK(safetensors_write(name, &params, SAFETENSORS_WEIGHTS, NULL, 0)) &&
        CHECK_OK(safetensors_open(name, &file))) {
        other.control.step = 99;
        CHECK_OK(safetensors_load(&file, SAFETENSORS_WEIGHTS, &other));
        CHECK(same_entry(&params, &other, 0) && same_entry(&params, &other, 1));
        CHECK(!same_entry(&params, &other, 2));
        CHECK_EQUAL_INT(other.control.step, 99);
        CHECK_STATUS(STATUS_INPUT, safetensors_load(&file, SAFETENSORS_CHECKPOINT, &other));
        CHECK_MESSAGE("state.dense1.weight.moment");
    }
    safetensors_close(&file);
    params_free(&params);
    params_free(&other);
    remove_file(name);
}

/* A checkpoint serves as a weight file too. */
TEST(weights_are_read_from_a_checkpoint)
{
    struct params params, other;
    struct safetensors file = {0};
    const char *name = make_path();
    if (CHECK_OK(make_params(&params, 1)) && CHECK_OK(make_params(&other, 100)) &&
        CHECK_OK(safetensors_write(name, &params, SAFETENSORS_CHECKPOINT, NULL, 0)) &&
        CHECK_OK(safetensors_open(name, &file)) &&
        CHECK_OK(safetensors_load(&file, SAFETENSORS_WEIGHTS, &other)))
        CHECK(same_entry(&params, &other, 0) && !same_entry(&params, &other, 2));
    safetensors_close(&file);
    params_free(&params);
    params_free(&other);
    remove_file(name);
}

TEST(layout_is_the_published_one)
{
    struct params params;
    struct text bytes = {0};
    const char *name = make_path();
    if (CHECK_OK(make_params(&params, 1)) &&
        CHECK_OK(safetensors_write(name, &params, SAFETENSORS_WEIGHTS, NULL, 0)) &&
        CHECK_OK(file_read(name, 10000, &bytes))) {
        const char *expected =
            "{\"__metadata__\":{},"
            "\"dense1.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
            "\"norm1.mean\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]}}";
        size_t header = (strlen(expected) + 7) / 8 * 8;
        CHECK_EQUAL_INT((unsigned char)bytes.data[0], header);
        CHECK(memcmp(bytes.data + 1, "\0\0\0\0\0\0\0", 7) == 0);
        CHECK(memcmp(bytes.data + 8, expected, strlen(expected)) == 0);
        CHECK_EQUAL_INT(bytes.length, 8 + header + 32);
        CHECK(memcmp(bytes.data + 8 + header, params_data(&params, 0), 24) == 0);
    }
    text_free(&bytes);
    params_free(&params);
    remove_file(name);
}

/* A file with this header and so many zero bytes of data, read into params. */
static enum status read_made(const char *header, size_t data_bytes, struct params *params)
{
    struct text text = {0};
    struct safetensors file = {0};
    char length[8] = {(char)(strlen(header) & 255), (char)(strlen(header) >> 8)};
    text_add_bytes(&text, length, 8);
    text_add(&text, header);
    for (size_t i = 0; i < data_bytes; i++)
        text_add_char(&text, 0);
    enum status status = safetensors_parse("t.st", text.data, text.length, &file);
    if (status == STATUS_OK)
        status = safetensors_load(&file, SAFETENSORS_WEIGHTS, params);
    safetensors_close(&file);
    text_free(&text);
    return status;
}

TEST(hostile_headers_are_refused_with_what_is_wrong)
{
#define MEAN ",\"norm1.mean\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]}}"
#define WEIGHT(dtype, shape, offsets)                                                              \
    "{\"dense1.weight\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
    static const struct {
        const char *header;
        size_t data;
        const char *message;
    } cases[] = {
        {WEIGHT("F32", "[2,3]", "[0,24]") MEAN, 31, "within the 31 bytes"},
        {WEIGHT("F32", "[2,3]", "[0,24]") MEAN, 33, "found 33 bytes of data, expected 32"},
        {WEIGHT("F32", "[2,3]", "[8,32]") MEAN, 32, "'dense1.weight': found data from byte 8"},
        {WEIGHT("F32", "[3,3]", "[0,36]") MEAN, 36, "overlaps"},
        {WEIGHT("F32", "[2,3]", "[24,0]") MEAN, 32, "24 to 0"},
        {WEIGHT("F32", "[2,3]", "[-24,0]") MEAN, 32, "-24"},
        {WEIGHT("F32", "[2,3]", "[0]") MEAN, 32, "data_offsets"},
        {WEIGHT("F32", "[2,3]", "[0,1.5]") MEAN, 32, "data_offsets"},
        {WEIGHT("F32", "[2,3]", "[0,20]") MEAN, 32, "found 20 bytes of data, expected"},
        {WEIGHT("F32", "[9223372036854775807,9223372036854775807]", "[0,24]") MEAN, 32, "24 bytes"},
        {WEIGHT("F32", "[2,-3]", "[0,24]") MEAN, 32, "no size"},
        {WEIGHT("F32", "[1,1,1,1,1,2,3]", "[0,24]") MEAN, 32, "7 dimensions"},
        {WEIGHT("F32", "6", "[0,24]") MEAN, 32, "no shape"},
        {WEIGHT("F32", "[3,2]", "[0,24]") MEAN, 32, "found shape 3×2, expected 2×3"},
        {WEIGHT("I32", "[2,3]", "[0,24]") MEAN, 32, "found dtype I32, expected F32"},
        {WEIGHT("F33", "[2,3]", "[0,24]") MEAN, 32, "found dtype 'F33'"},
        {WEIGHT("F32", "[2,3]", "[0,24]") "}", 24, "found no tensor 'norm1.mean'"},
        {"{\"a\":3}", 0, "'a': found no tensor"},
        {"{\"__metadata__\":[]}", 0, "__metadata__"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "'a': found no text"},
        {"[]", 0, "no JSON object"},
        {"{", 0, "t.st:1:2"},
    };
    struct params params;
    if (!CHECK_OK(make_params(&params, 1)))
        return;
    CHECK_OK(read_made(WEIGHT("F32", "[2,3]", "[0,24]") MEAN, 32, &params));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_STATUS(STATUS_INPUT, read_made(cases[i].header, cases[i].data, &params));
        CHECK_MESSAGE("t.st");
        CHECK_MESSAGE(cases[i].message);
    }
    params_free(&params);
}

TEST(cut_files_are_refused)
{
    static const unsigned char huge[9] = {255, 255, 255, 255, 255, 255, 255, 255, '{'};
    struct safetensors file = {0};
    CHECK_STATUS(STATUS_INPUT, safetensors_parse("t.st", huge, 9, &file));
    CHECK_MESSAGE("18446744073709551615");
    safetensors_close(&file);
    CHECK_STATUS(STATUS_INPUT, safetensors_parse("t.st", huge, 7, &file));
    CHECK_MESSAGE("found 7 bytes");
    safetensors_close(&file);
    CHECK_STATUS(STATUS_IO, safetensors_open("no/such/file", &file));
    CHECK_MESSAGE("no/such/file");
    safetensors_close(&file);
}

TEST(failed_write_leaves_the_old_file)
{
    struct params params;
    struct safetensors file = {0};
    const char *name = make_path();
    if (CHECK_OK(make_params(&params, 1)) &&
        CHECK_OK(safetensors_write(name, &params, SAFETENSORS_WEIGHTS, NULL, 0))) {
        enum status status = STATUS_MEMORY;
        for (long nth = 1; nth < 100 && status != STATUS_OK; nth++) {
            memory_fail_at(nth);
            status = safetensors_write(name, &params, SAFETENSORS_CHECKPOINT, NULL, 0);
            memory_fail_at(0);
            CHECK(status == STATUS_OK || status == STATUS_MEMORY);
            CHECK_OK(safetensors_open(name, &file));
            CHECK(!safetensors_note(&file, "control.step") == (status != STATUS_OK));
            safetensors_close(&file);
        }
        CHECK_EQUAL_INT(status, STATUS_OK);
    }
    params_free(&params);
    remove_file(name);
}

CHECK_MAIN
