/* test_gpu_seen.c: the file of the GPU's agent, as the agent writes it, and as nobody should. */
#include "agent/gpu_writer.h"
#include "check.h"
#include "watch/gpu_seen.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/prony-gpu-XXXXXX";
static char path[512];
static struct gpu_head *head;

static struct gpu_span span_of(uint16_t kind, uint32_t number, uint64_t start_ns, uint64_t end_ns)
{
    return (struct gpu_span){.record = {.kind = kind, .number = number},
                             .start_ns = start_ns,
                             .end_ns = end_ns,
                             .place = 7};
}

static void find_path(void)
{
    DIR *files = opendir(folder);
    for (struct dirent *entry; files && (entry = readdir(files)) != NULL;)
        if (strncmp(entry->d_name, GPU_PREFIX, strlen(GPU_PREFIX)) == 0)
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (files)
        closedir(files);
}

/* What a step leaves: a call with a line, the kernel and the copy that it started, a wait, an
 * event. */
static void write_step(struct gpu_desk *desk, uint32_t number, uint64_t at_ns)
{
    static const char kernel_name[] = "a_kernel";
    bool is_new;
    struct gpu_span call = span_of(GPU_CALL, number, at_ns, at_ns + 100);
    struct gpu_span kernel = span_of(GPU_KERNEL, number, at_ns + 200, at_ns + 900);
    struct gpu_span copy = span_of(GPU_COPY, number + 1, at_ns + 900, at_ns + 950);
    struct gpu_span wait = span_of(GPU_WAIT, number + 2, at_ns + 100, at_ns + 950);
    struct gpu_span event = span_of(GPU_EVENT, number, 0, 0);
    call.name = gpu_write_text(desk, "cudaLaunchKernel", 16);
    call.stack = gpu_stack_number(77, &is_new);
    call.place = desk->thread;
    if (is_new) {
        const struct gpu_frame frames[2] = {
            {gpu_write_text(desk, "net.py", 6), gpu_write_text(desk, "forward", 7), 12},
            {gpu_write_text(desk, "train.py", 8), gpu_write_text(desk, "main", 4), 58}};
        gpu_write_stack(desk, call.stack, frames, 2);
    }
    kernel.name = gpu_write_text(desk, kernel_name, sizeof kernel_name - 1);
    copy.bytes = 4096;
    copy.from = 1;
    copy.to = 3;
    wait.wait = GPU_WAIT_STREAM;
    event.bytes = 3;
    gpu_write_span(desk, &call);
    gpu_write_span(desk, &kernel);
    gpu_write_span(desk, &copy);
    gpu_write_span(desk, &wait);
    gpu_write_span(desk, &event);
}

static void *other_thread(void *unused)
{
    for (uint32_t i = 0; i < 1000; i++)
        write_step(gpu_desk(), 10000 + 10 * i, 1000000 + 2000 * i);
    return unused;
}

TEST(reads_what_was_written)
{
    enum { STEPS = 1000, NUMBER = 10 };
    struct trace trace = {0};
    struct gpu_seen seen;
    struct stat found;
    pthread_t thread;
    if (!CHECK(mkdtemp(folder) != NULL) || !CHECK((head = gpu_writer_open(folder, 1)) != NULL))
        return;
    find_path();
    CHECK(stat(path, &found) == 0 && (found.st_mode & 0777) == 0600);
    head->cupti = 130000;
    gpu_write_gpu(gpu_desk(), 0, "a GPU");
    CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0 &&
          pthread_join(thread, NULL) == 0);
    for (uint32_t i = 0; i < STEPS; i++)
        write_step(gpu_desk(), 100000 + NUMBER * i, 5000000 + 2000 * i);
    CHECK_OK(gpu_seen_read(folder, &trace, &seen));
    CHECK_OK(trace_finish(&trace, "it"));
    CHECK_EQUAL_INT((int64_t)seen.kernels, 2 * STEPS);
    CHECK_EQUAL_INT((int64_t)seen.calls, 2 * STEPS);
    CHECK_EQUAL_INT((int64_t)seen.with_line, 2 * STEPS);
    CHECK_EQUAL_INT((int64_t)seen.with_call, 2 * STEPS); /* kernels: no call made the copies */
    CHECK_EQUAL_INT((int64_t)seen.unreadable, 0);
    CHECK_EQUAL_INT((int64_t)trace.span_count, 5 * 2 * STEPS);
    CHECK(seen.killed && seen.cupti == 130000 && seen.process == getpid());
    CHECK(strcmp(trace_fact(&trace, "gpu"), "a GPU") == 0);
    for (size_t i = 0; i < trace.span_count; i++)
        if (trace.spans[i].kind == SPAN_kernel) { /* it has its call's line */
            const struct site *site = &trace.sites[trace.spans[i].site];
            CHECK(site->line == 12 && trace.sites[site->caller].line == 58);
            CHECK(strcmp(trace_word(&trace, trace.spans[i].name), "a_kernel") == 0);
        } else if (trace.spans[i].kind == SPAN_copy) {
            CHECK(trace.spans[i].from_memory == MEMORY_PAGEABLE &&
                  trace.spans[i].to_memory == MEMORY_DEVICE && trace.spans[i].bytes == 4096);
        }
    trace_free(&trace);
}

TEST(writes_nothing_in_a_child)
{
    const uint32_t blocks = atomic_load(&head->blocks);
    const pid_t child = fork();
    if (child == 0) {
        gpu_writer_leave();
        _exit(gpu_desk() == NULL && !gpu_writer_is_open() ? 0 : 1);
    }
    int how = 1;
    CHECK(waitpid(child, &how, 0) == child && how == 0);
    CHECK_EQUAL_INT(atomic_load(&head->blocks), blocks);
}

/* Cut anywhere, or with a byte that is another one: read to where it makes sense, or refused. */
TEST(bears_what_is_broken)
{
    enum { BYTES = 2 * GPU_BLOCK, CASES = 4000 };
    static unsigned char whole[BYTES], broken[BYTES];
    char other[512];
    snprintf(other, sizeof other, "%s/broken", folder);
    int file = open(path, O_RDONLY);
    if (!CHECK(file >= 0 && read(file, whole, BYTES) == BYTES))
        return;
    close(file);
    for (uint32_t i = 0; i < CASES; i++) {
        struct trace trace = {0};
        struct gpu_seen seen;
        const uint32_t random = i * 2654435761u;
        const size_t cut = i % 8 ? BYTES : random % BYTES;
        memcpy(broken, whole, BYTES);
        for (uint32_t k = 0; k < 1 + i % 5; k++)
            broken[(i % 3 ? GPU_BLOCK + (random * (k + 1)) % 4000 : random % 400) % BYTES] =
                (unsigned char)(random >> (8 + k));
        file = open(other, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        CHECK(write(file, broken, cut) == (ssize_t)cut);
        close(file);
        if (gpu_file_read(other, &trace, &seen) == STATUS_OK)
            CHECK_OK(trace_finish(&trace, "it"));
        else
            CHECK(*status_message());
        trace_free(&trace);
    }
    unlink(other);
}

TEST(says_why_nothing_was_seen)
{
    struct trace trace = {0};
    struct gpu_seen seen;
    CHECK_STATUS(STATUS_UNSUPPORTED, gpu_file_read("/dev/null", &trace, &seen));
    CHECK_STATUS(STATUS_IO, gpu_file_read("/nowhere", &trace, &seen));
    CHECK_OK(gpu_seen_read("/nowhere", &trace, &seen));
    CHECK_EQUAL_INT((int64_t)seen.processes, 0);
    snprintf(head->reason, sizeof head->reason, "there is no CUPTI");
    CHECK_OK(gpu_seen_read(folder, &trace, &seen));
    CHECK(strcmp(seen.reason, "there is no CUPTI") == 0);
    trace_free(&trace);
    unlink(path);
    rmdir(folder);
}

CHECK_MAIN
