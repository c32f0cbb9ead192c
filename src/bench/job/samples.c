/* samples.c: see samples.h. */
#include "bench/job/samples.h"

#include "base/file.h"
#include "bench/job/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The block that holds all rows of all inputs. */
static const char *block_of(const struct task *task, size_t *bytes)
{
    const enum role role = task->data.entries[0].role;
    *bytes = (size_t)task->data.blocks[role].bytes;
    return task->data.blocks[role].data;
}

static enum status write_all(int file, const char *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t count = write(file, data + done, bytes - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            FAIL(STATUS_IO, "cannot write %zu bytes of samples to %s: %s", bytes,
                 file_temporary_folder(), strerror(errno));
        done += (size_t)count;
    }
    if (fsync(file) != 0) /* what is not on the disk yet cannot be put out of memory */
        FAIL(STATUS_IO, "cannot write samples to %s: %s", file_temporary_folder(), strerror(errno));
    return STATUS_OK;
}

static enum status make_file(struct samples *samples, const struct task *task)
{
    struct text path = {0};
    const char *data = block_of(task, &samples->bytes);

    text_printf(&path, "%s/prony-samples-XXXXXX", file_temporary_folder());
    enum status status = text_done(&path);
    if (status == STATUS_OK) {
        int file = mkostemp(path.data, O_CLOEXEC);
        if (file > 0) {
            samples->file = file;
            unlink(path.data);
        } else {
            status = status_fail(STATUS_IO, __FILE__, __LINE__, "cannot make a file like %s: %s",
                                 text_of(&path), strerror(errno));
        }
    }
    text_free(&path);
    TRY(status);
    TRY(write_all(samples->file, data, samples->bytes));
    void *map = mmap(NULL, samples->bytes, PROT_READ, MAP_SHARED, samples->file, 0);
    if (map == MAP_FAILED)
        FAIL(STATUS_IO, "cannot map %zu bytes of samples: %s", samples->bytes, strerror(errno));
    samples->map = map;
    samples->storage = storage_of_file(samples->file);
    return STATUS_OK;
}

void samples_close(struct samples *samples)
{
    if (samples->map)
        munmap(samples->map, samples->bytes);
    if (samples->file)
        close(samples->file);
    *samples = (struct samples){0};
}

enum status samples_open(struct samples *samples, const struct task *task, enum samples_place place)
{
    *samples = (struct samples){0};
    if (place == SAMPLES_MEMORY)
        return STATUS_OK;
    enum status status = make_file(samples, task);
    if (status == STATUS_OK && place == SAMPLES_DISK)
        status = samples_evict(samples);
    if (status != STATUS_OK)
        samples_close(samples);
    return status;
}

void *samples_data(const struct samples *samples, const struct task *task, int32_t entry)
{
    size_t bytes;
    char *data = params_data(&task->data, entry);
    return samples->map ? samples->map + (data - block_of(task, &bytes)) : data;
}

/* How many of so many pages, evenly spread, are in memory? */
static int pages_kept(const struct samples *samples, int looks)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (samples->bytes + page - 1) / page;
    int kept = 0;
    for (int i = 0; i < looks; i++) {
        unsigned char state = 0;
        char *at = samples->map + (size_t)i * pages / (size_t)looks * page;
        kept += mincore(at, page, &state) == 0 && (state & 1);
    }
    return kept;
}

enum status samples_evict(const struct samples *samples)
{
    enum { LOOKS = 64 };
    /* Pages that are mapped are not dropped: this process lets go of them first. */
    madvise(samples->map, samples->bytes, MADV_DONTNEED);
    posix_fadvise(samples->file, 0, 0, POSIX_FADV_DONTNEED);
    if (pages_kept(samples, LOOKS) > LOOKS / 2)
        FAIL(STATUS_UNSUPPORTED,
             "%s is kept in memory, so that nothing there is read from a disk: let TMPDIR name a "
             "folder on one",
             file_temporary_folder());
    return STATUS_OK;
}
