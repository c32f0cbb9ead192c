/* IDX and NPY files, plain and in gzip: what is read, streamed or loaded, and what each refusal
 * names. */
#include "base/file.h"
#include "base/inflate.h"
#include "base/memory.h"
#include "check.h"
#include "data/array.h"
#include "data/split.h"
#include "folder.h"

#define BYTES(text) text, sizeof(text) - 1

/* Three 2 × 2 images and their labels. */
#define IMAGES "\0\0\x08\x03\0\0\0\3\0\0\0\2\0\0\0\2\1\2\3\4\5\6\7\x08\xFF\xFE\xFD\0"
#define LABELS "\0\0\x08\x01\0\0\0\3\2\0\1"

/* A header of 80 bytes, as NumPy writes one, and no data. */
static size_t make_npy(char *out, size_t room, const char *dictionary)
{
    return (size_t)snprintf(out, room, "\x93NUMPY\x01%c%c%c%-69s\n", 0, 70, 0, dictionary);
}

static enum status parse_npy(const char *dictionary, const void *data, size_t length,
                             struct array *out)
{
    static char bytes[256];
    size_t header = make_npy(bytes, sizeof bytes, dictionary);
    memcpy(bytes + header, data, length);
    return array_parse("t.npy", bytes, header + length, out);
}

TEST(idx_has_dimensions_and_big_endian_numbers)
{
    struct array array;
    if (CHECK_OK(array_parse("t.idx", BYTES(IMAGES), &array))) {
        CHECK(array.rank == 3 && array.dim[0] == 3 && array.dim[1] == 2 && array.dim[2] == 2);
        CHECK_NEAR(array_get(&array, 8), 255, 0);
    }
    if (CHECK_OK(array_parse("t.idx", BYTES("\0\0\x0D\x01\0\0\0\1\x3F\xC0\0\0"), &array)))
        CHECK_NEAR(array_get(&array, 0), 1.5, 0);
    if (CHECK_OK(array_parse("t.idx", BYTES("\0\0\x0B\x01\0\0\0\1\xFF\xFE"), &array)))
        CHECK_NEAR(array_get(&array, 0), -2, 0);
}

TEST(npy_has_dimensions_and_little_endian_numbers)
{
    static const double reals[] = {1.5, -2};
    static const int64_t integers[] = {7, -8};
    struct array array;
    if (CHECK_OK(parse_npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", reals,
                           sizeof reals, &array))) {
        CHECK(array.rank == 1 && array.dim[0] == 2 && !array_is_integer(&array));
        CHECK_NEAR(array_get(&array, 1), -2, 0);
    }
    if (CHECK_OK(parse_npy("{'shape': (1, 2), 'fortran_order': False, 'descr': '<i8'}", integers,
                           sizeof integers, &array))) {
        CHECK(array.rank == 2 && array_row_count(&array) == 2 && array_is_integer(&array));
        CHECK_NEAR(array_get(&array, 1), -8, 0);
    }
}

static void refuse_idx(const char *bytes, size_t length, const char *message)
{
    struct array array;
    if (CHECK_STATUS(STATUS_INPUT, array_parse("t.idx", bytes, length, &array)))
        CHECK_MESSAGE(message);
}

TEST(bad_idx_files_are_refused)
{
    refuse_idx(BYTES("\0\0"), "t.idx: found 2 bytes without an IDX header");
    refuse_idx(BYTES("\0\0\x07\x01\0\0\0\1"), "found the IDX type 0x07");
    refuse_idx(BYTES("\0\0\x08\0"), "found 0 dimensions, expected 1 to 8");
    refuse_idx(BYTES("\0\0\x08\x09"), "found 9 dimensions");
    refuse_idx(BYTES("\0\0\x08\x02\0\0\0\1"), "expected an IDX header of 12");
    refuse_idx(BYTES("\0\0\x08\x01\0\0\0\0"), "found 0 as dimension 1");
    refuse_idx(BYTES("\0\0\x08\x01\0\0\0\3\1\2"), "found 2 bytes of data, expected 3");
    refuse_idx(BYTES("\0\0\x08\x01\0\0\0\1\1\2"), "found 2 bytes of data, expected 1");
    refuse_idx(BYTES("\0\0\x0E\x03\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"),
               "product is beyond any memory");
}

static void refuse_npy(const char *dictionary, const char *message)
{
    struct array array;
    if (CHECK_STATUS(STATUS_INPUT, parse_npy(dictionary, "", 0, &array)))
        CHECK_MESSAGE(message);
}

TEST(bad_npy_files_are_refused)
{
    refuse_npy("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}",
               "expected the type '<f4'");
    refuse_npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}", "ascontiguousarray");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "found a single number");
    refuse_npy("{'descr': '<f4', 'fortran_order': False}", "without 'shape'");
    refuse_npy("{'descr': '<f4', 'descr': '<f4'}", "expected each key once");
    refuse_npy("{'descr': '<f4', 'size': 3}", "expected 'descr'");
    refuse_npy("{'shape': (99999999999999999999,)}", "fits into 63 bits");
    refuse_npy("{'shape': (1,1,1,1,1,1,1,1,1)}", "at most 8 dimensions");
    refuse_npy("{'shape': (1 1)}", "a comma or the end of the shape");
    refuse_npy("[]", "expected a dictionary");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
               "found 0 bytes of data, expected 12");
    struct array array;
    CHECK_STATUS(STATUS_INPUT, array_parse("t.npy", BYTES("\x93NUMPY\x04\0\1\0"), &array));
    CHECK_MESSAGE("found NPY version 4, expected 1, 2 or 3");
    CHECK_STATUS(STATUS_INPUT,
                 array_parse("t.npy", BYTES("\x93NUMPY\x02\0\xFF\xFF\xFF\xFF"), &array));
    CHECK_MESSAGE("found an NPY header of 4294967295 bytes in a file of 12");
}

/* "hello hello hello hello\n", as gzip -9 packs it, and an empty file. */
#define HELLO                                                                                      \
    "\x1f\x8b\x08\0\0\0\0\0\x02\x03\xcb\x48\xcd\xc9\xc9\x57\xc8\x40\x27\xb9\0\0\x88\x59\x0b\x18"   \
    "\0\0\0"
#define EMPTY "\x1f\x8b\x08\0\0\0\0\0\x02\x03\x03\0\0\0\0\0\0\0\0\0"

TEST(gzip_is_unpacked)
{
    unsigned char *out;
    size_t length;
    if (CHECK_OK(inflate_gzip("t.gz", BYTES(HELLO HELLO EMPTY), 1000, NULL, &out, &length))) {
        CHECK_EQUAL_TEXT((char *)out, "hello hello hello hello\nhello hello hello hello\n");
        CHECK_EQUAL_INT(length, 48);
        mem_free(out);
    }
    if (CHECK_OK(inflate_gzip("t.gz", BYTES(EMPTY), 1000, NULL, &out, &length))) {
        CHECK_EQUAL_INT(length, 0);
        mem_free(out);
    }
}

TEST(every_cut_and_every_changed_byte_of_gzip_is_refused)
{
    static const char hello[] = HELLO;
    char changed[sizeof hello];
    unsigned char *out;
    size_t length, whole = sizeof hello - 1;
    for (size_t cut = 0; cut < whole; cut++)
        CHECK_STATUS(STATUS_INPUT, inflate_gzip("t.gz", hello, cut, 1000, NULL, &out, &length));
    for (size_t i = 10; i < whole; i++) { /* the header holds what is not checked: time, system */
        memcpy(changed, hello, sizeof hello);
        changed[i] = (char)(changed[i] ^ 0x10);
        if (inflate_gzip("t.gz", changed, whole, 1000, NULL, &out, &length) == STATUS_OK) {
            CHECK(length == 24 && !memcmp(out, "hello hello hello hello\n", 24));
            mem_free(out); /* a bit behind the last code, which means nothing */
        }
    }
    CHECK_STATUS(STATUS_INPUT, inflate_gzip("t.gz", hello, whole, 23, NULL, &out, &length));
    CHECK_MESSAGE("more than 23 bytes");
}

/* A member of 32 stored blocks of zeros, of which a short file of matches would make as much. */
static enum status make_zeros(struct text *out)
{
    enum { BLOCKS = 32 };
    static const char zeros[0xFFFF];
    text_add_bytes(out, BYTES("\x1f\x8b\x08\0\0\0\0\0\x02\x03"));
    for (int i = 0; i < BLOCKS; i++) {
        text_add_bytes(out, i + 1 < BLOCKS ? "\0" : "\1", 1);
        text_add_bytes(out, BYTES("\xFF\xFF\0\0"));
        text_add_bytes(out, zeros, sizeof zeros);
    }
    return text_done(out);
}

/* What an array's header does not announce is not unpacked: the end, which is missing here, is not
 * reached. */
TEST(no_more_is_unpacked_than_a_header_announces)
{
    struct text packed = {0};
    struct dataset *dataset;
    const char *path = at("zeros.gz");
    CHECK_OK(make_zeros(&packed));
    CHECK_OK(file_write(path, packed.data, packed.length));
    CHECK_STATUS(STATUS_INPUT, dataset_open(path, &(struct dataset_options){0}, &dataset));
    CHECK_MESSAGE("found the IDX type 0x00");
    memcpy(packed.data + 15, BYTES("\0\0\x08\x02\0\2\0\0\0\0\0\1")); /* 131072 × 1 bytes */
    CHECK_OK(file_write(path, packed.data, packed.length));
    CHECK_STATUS(STATUS_INPUT, dataset_open(path, &(struct dataset_options){0}, &dataset));
    CHECK_MESSAGE("found more than 131084 bytes when unpacked");
    text_free(&packed);
}

static enum status open_pair(uint64_t memory, struct dataset **out)
{
    const char *x = at("x"), *y = at("y");
    TRY(file_write(x, BYTES(IMAGES)));
    TRY(file_write(y, BYTES(LABELS)));
    return dataset_open(x, &(struct dataset_options){.labels = y, .memory_bytes = memory}, out);
}

TEST(images_and_labels_make_a_data_set)
{
    struct dataset *dataset;
    if (!CHECK_OK(open_pair(0, &dataset)))
        return;
    CHECK(dataset->rows == 3 && dataset->columns == 4 && !dataset->stream);
    CHECK(dataset->rank == 2 && dataset->dims[0] == 2 && dataset->dims[1] == 2);
    CHECK_NEAR(dataset->features[8], 255, 0);
    CHECK(dataset->class_count == 3 && dataset->labels[0] == 2 && dataset->labels[2] == 1);
    CHECK_EQUAL_TEXT(dataset->classes[2], "2");
    dataset_free(dataset);
}

/* The same numbers, the same scale, the same hash; but a row is there only when it was fetched. */
TEST(streamed_data_is_the_same_data)
{
    static const uint32_t rows[] = {2, 0, 1};
    struct dataset *all, *some;
    struct scaling scaling = {0}, streamed = {0};
    uint64_t hash, streamed_hash;
    if (!CHECK_OK(open_pair(0, &all)) || !CHECK_OK(open_pair(16, &some)))
        return;
    CHECK(some->stream && dataset_window(some) == 1 && dataset_window(all) == 3);
    CHECK_OK(dataset_hash(all, &hash));
    CHECK_OK(dataset_hash(some, &streamed_hash));
    CHECK(hash == streamed_hash);
    CHECK_OK(scaling_make(all, rows, 3, &scaling));
    CHECK_OK(scaling_make(some, rows, 3, &streamed));
    CHECK(!memcmp(scaling.mean, streamed.mean, 8 * sizeof(float)));
    CHECK_OK(scaling_apply(&scaling, all));
    CHECK_OK(scaling_apply(&streamed, some));
    CHECK_OK(dataset_fetch(some, rows, 0, 1));
    CHECK(!memcmp(all->features + 8, some->features + 8, 4 * sizeof(float)));
    CHECK_NEAR(some->features[0], 0, 0);
    scaling_free(&scaling);
    scaling_free(&streamed);
    dataset_free(all);
    dataset_free(some);
}

/* A file whose floats would take 16 GiB, of which nothing is on the disk: its size says it all. */
TEST(file_larger_than_memory_is_opened)
{
    static const char header[] = "\0\0\x08\x02\0\x10\0\0\0\0\x10\0"; /* 2^20 rows of 2^12 bytes */
    struct dataset *dataset;
    const char *path = at("wide");
    CHECK_OK(file_write(path, BYTES(header)));
    if (truncate(path, (off_t)(sizeof header - 1) + ((off_t)1 << 32)) != 0)
        SKIP("no sparse files here");
    if (CHECK_OK(
            dataset_open(path, &(struct dataset_options){.memory_bytes = 1 << 20}, &dataset))) {
        CHECK(dataset->stream && dataset->rows == 1 << 20 && dataset->columns == 1 << 12);
        CHECK_OK(dataset_fetch(dataset, NULL, (1 << 20) - 5, 5));
        CHECK_NEAR(dataset->features[((size_t)1 << 32) - 1], 0, 0);
        dataset_free(dataset);
    }
}

TEST(what_is_no_number_is_refused_with_its_place)
{
    struct dataset *dataset;
    CHECK_OK(file_write(at("x"), BYTES("\0\0\x0D\x02\0\0\0\1\0\0\0\2\0\0\0\0\x7F\xC0\0\0")));
    CHECK_STATUS(STATUS_INPUT, dataset_open(at("x"), &(struct dataset_options){0}, &dataset));
    CHECK_MESSAGE("x: row 1, value 2: found nan, expected a number");
}

TEST(every_failed_allocation_is_a_clean_refusal)
{
    enum status status = STATUS_MEMORY;
    for (long nth = 1; nth < 200 && status != STATUS_OK; nth++) {
        struct dataset *dataset = NULL;
        unsigned char *out = NULL;
        size_t length;
        memory_fail_at(nth);
        status = open_pair(nth % 2 ? 16 : 0, &dataset);
        if (status == STATUS_OK)
            status = inflate_gzip("t.gz", BYTES(HELLO), 1000, NULL, &out, &length);
        bool failed = memory_failed();
        memory_fail_at(0);
        dataset_free(dataset);
        mem_free(out);
        CHECK(status == (failed ? STATUS_MEMORY : STATUS_OK));
    }
    CHECK_EQUAL_INT(status, STATUS_OK);
}

CHECK_MAIN
