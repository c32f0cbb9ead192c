/* task_files.c: see task_files.h. */
#include "bench/job/task_files.h"

#include "base/file.h"
#include "nn/formats/onnx.h"
#include "nn/formats/safetensors.h"
#include "nn/loss.h"
#include "train/model_export.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char weights_name[] = "weights.safetensors", data_name[] = "data.safetensors",
                  onnx_name[] = "network.onnx";

/* With the files that are ours; whatever else is in it stays, and so does it. */
static void folder_remove(const char *folder)
{
    static const char *const names[] = {weights_name, data_name, onnx_name};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (snprintf(path, sizeof path, "%s/%s", folder, names[i]) < (int)sizeof path)
            unlink(path);
    rmdir(folder);
}

/* Opens and locks it; -1: somebody uses it. The lock ends with its process, however that ends. */
static int folder_lock(const char *folder)
{
    int lock = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0) {
        close(lock);
        lock = -1;
    }
    return lock;
}

/* Removes folders of this user that nobody uses any more. One that was just made may not be locked
 * yet. */
static void folders_clean(void)
{
    enum { YOUNG_S = 60 };
    char path[PATH_MAX];
    struct stat info;
    DIR *all = opendir(file_temporary_folder());
    for (struct dirent *entry; all && (entry = readdir(all)) != NULL;) {
        if (!text_starts(entry->d_name, "prony-") ||
            strlen(entry->d_name) != strlen("prony-XXXXXX"))
            continue;
        snprintf(path, sizeof path, "%s/%s", file_temporary_folder(), entry->d_name);
        if (lstat(path, &info) != 0 || info.st_uid != geteuid() ||
            time(NULL) - info.st_mtime < YOUNG_S)
            continue;
        int lock = folder_lock(path);
        if (lock < 0)
            continue;
        folder_remove(path);
        close(lock);
    }
    if (all)
        closedir(all);
}

void task_remove_files(struct task *task)
{
    if (task->folder)
        folder_remove(task->folder);
    if (task->folder_lock)
        close(task->folder_lock);
}

/* The data as a peer visits it: row after row. */
static enum status task_write_data(const struct task *task, const char *path)
{
    struct params sorted;
    enum status status = STATUS_OK;

    params_init(&sorted, DTYPE_F32);
    for (int32_t e = 0; e < task->data.count; e++) {
        const struct entry *entry = &task->data.entries[e];
        int32_t copy;
        TRY_OR(done, params_declare(&sorted, entry->name, entry->role, entry->dtype, entry->shape,
                                    entry->init, &copy));
        const char *from = params_data(&task->data, e);
        char *to = params_data(&sorted, copy);
        size_t row_bytes = (size_t)(entry->bytes / (uint64_t)task->rows);
        for (int64_t row = 0; row < task->rows; row++)
            memcpy(to + (size_t)row * row_bytes, from + task->order[row] * row_bytes, row_bytes);
    }
    status = safetensors_write(path, &sorted, SAFETENSORS_WEIGHTS, NULL, 0);
done:
    params_free(&sorted);
    return status;
}

enum status task_write_files(struct task *task)
{
    if (task->folder)
        return STATUS_OK;
    char *folder = arena_format(&task->arena, "%s/prony-XXXXXX", file_temporary_folder());
    NEED(folder);
    folders_clean();
    if (!mkdtemp(folder))
        FAIL(STATUS_IO, "cannot make a temporary folder like %s: %s", folder, strerror(errno));
    int lock = folder_lock(folder);
    task->folder_lock = lock > 0 ? lock : 0;
    task->weights_path = arena_format(&task->arena, "%s/%s", folder, weights_name);
    task->data_path = arena_format(&task->arena, "%s/%s", folder, data_name);
    task->onnx_path = arena_format(&task->arena, "%s/%s", folder, onnx_name);
    if (!task->weights_path || !task->data_path || !task->onnx_path) {
        rmdir(folder);
        FAIL(STATUS_MEMORY, "out of memory");
    }
    task->folder = folder;
    TRY(safetensors_write(task->weights_path, &task->params, SAFETENSORS_WEIGHTS, NULL, 0));
    return task_write_data(task, task->data_path);
}

/* … of a network in 8 bits. */
static enum status write_integers(const struct task *task, const struct onnx_ends *like)
{
    const struct compile_options options = {.batch = 1, .use = USE_INFERENCE};
    struct arena arena = {0};
    struct onnx_levels levels;
    struct onnx_ends ends = *like;
    ends.levels = &levels;
    enum status status = export_levels(task->network, &options, &arena, &levels);
    if (status == STATUS_OK)
        status = onnx_write(task->onnx_path, task->network, &task->params, &ends);
    arena_free(&arena);
    return status;
}

enum status task_write_onnx(struct task *task)
{
    const struct compile_options options = {.batch = task->batch, .use = USE_TRAINING};
    const enum loss_kind loss = network_loss(task->network, &options);
    const struct onnx_ends ends = {.loss = loss == LOSS_CROSS_ENTROPY ? loss : LOSS_MSE};
    if (file_exists(task->onnx_path))
        return STATUS_OK;
    if (task->network->quantised)
        return write_integers(task, &ends);
    return onnx_write(task->onnx_path, task->network, &task->params, &ends);
}
