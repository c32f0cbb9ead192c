/* fuzz_gpu_seen.c: any bytes as the file of the GPU's agent: read as far as they make sense, or
 * refused by one line; the trace they become is judged without harm. */
#include "advise/advise.h"
#include "watch/gpu_seen.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input are records, each behind its kind and its length in words: so that what is found gets
 * behind the checks of the file's head and of blocks. */
static size_t make_block(const uint8_t *data, size_t size, unsigned char *block)
{
    struct gpu_block head = {0};
    size_t at = sizeof head;
    while (size >= 2) {
        const size_t bytes = 8 * (size_t)(1 + data[1] % 64);
        const size_t given = size - 2 < bytes ? size - 2 : bytes;
        if (at + bytes > GPU_BLOCK)
            break;
        memset(block + at, 0, bytes);
        memcpy(block + at, data + 2, given);
        const struct gpu_record record = {.kind = data[0] % (GPU_KINDS + 1),
                                          .bytes = (uint16_t)bytes};
        memcpy(block + at, &record, 2 * sizeof record.kind);
        at += bytes;
        data += 2 + given;
        size -= 2 + given;
    }
    head.used = (uint32_t)(at - sizeof head);
    memcpy(block, &head, sizeof head);
    return at;
}

static int open_once(char path[32])
{
    static char kept[32] = "/tmp/prony-fuzz-gpu-XXXXXX";
    static int file = -1;
    if (file < 0 && (file = mkstemp(kept)) < 0)
        abort();
    memcpy(path, kept, sizeof kept);
    return file;
}

static void judge(struct trace *trace)
{
    struct advice advice;
    if (trace_finish(trace, "fuzz") != STATUS_OK)
        return;
    if (advise(trace, NULL, &advice) != STATUS_OK)
        abort();
    int64_t sum = 0;
    for (int part = 0; part < BUDGET_PARTS; part++)
        sum += advice.budget.part_ns[part];
    if (sum != advice.budget.window_ns)
        abort();
    advice_free(&advice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char whole[2 * GPU_BLOCK];
    struct gpu_head head = {.version = GPU_VERSION, .process = 1, .blocks = 2};
    struct trace trace = {0};
    struct gpu_seen seen;
    char path[32];
    const int file = open_once(path);
    memcpy(head.magic, GPU_MAGIC, sizeof head.magic);
    memcpy(whole, &head, sizeof head);
    /* as it is, or as records */
    size_t bytes = sizeof whole;
    if (size && data[0] == '!')
        memcpy(whole, data + 1, bytes = size - 1 < sizeof whole ? size - 1 : sizeof whole);
    else
        bytes = GPU_BLOCK + make_block(data, size, whole + GPU_BLOCK);
    if (ftruncate(file, 0) != 0 || pwrite(file, whole, bytes, 0) != (ssize_t)bytes)
        abort();
    enum status status = gpu_file_read(path, &trace, &seen);
    if (status == STATUS_OK)
        judge(&trace);
    else if (!*status_message())
        abort();
    trace_free(&trace);
    return 0;
}
