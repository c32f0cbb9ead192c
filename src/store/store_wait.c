/* store_wait.c: records that come while another program has the store locked. They wait in a file
 * beside it, FILE.waiting.jsonl, and are filed as soon as somebody can write: the next record, the
 * end of the bench, or the next command that changes the store. */
#include "base/file.h"
#include "base/log.h"
#include "store/store_inside.h"

#include <string.h>

static const size_t waiting_most = (size_t)1 << 30;

static enum status waiting_path(const struct store *store, struct text *out)
{
    text_printf(out, "%s.waiting.jsonl", store->path);
    return text_done(out);
}

static enum status file_waiting(void *context, const struct record *record, const char *line,
                                size_t length)
{
    return store_file(context, line, length, record, &(int64_t){0}, &(bool){0});
}

static enum status file_lines(void *context, const char *lines, size_t length)
{
    struct store *store = context;
    TRY(store_begin(store));
    enum status status = record_read_whole(store->path, lines, length, file_waiting, store);
    if (status == STATUS_OK)
        status = store_commit(store);
    if (status != STATUS_OK)
        store_rollback(store);
    return status;
}

enum status store_settle(struct store *store)
{
    struct text path = {0};
    TRY(waiting_path(store, &path));
    enum status status = STATUS_OK;
    if (file_exists(text_of(&path)))
        status = file_take_lines(text_of(&path), waiting_most, file_lines, store);
    text_free(&path);
    if (status != STATUS_OK && store->locked)
        return STATUS_OK; /* later */
    store->waits = false;
    return status;
}

static enum status put_aside(struct store *store, const char *line)
{
    struct text path = {0};
    TRY(waiting_path(store, &path));
    enum status status = file_append_line(text_of(&path), line);
    if (status == STATUS_OK && !store->waits)
        log_warning("%s: another program has locked it; records wait in %s until it lets go",
                    store->path, text_of(&path));
    store->waits = true;
    text_free(&path);
    return status;
}

enum status store_keep(struct store *store, const char *line, const struct record *record)
{
    sqlite3_busy_timeout(store->db, STORE_WAIT_MS);
    store->locked = false;
    enum status status = store->waits ? store_settle(store) : STATUS_OK;
    if (status == STATUS_OK && !store->locked)
        status = store_add(store, line, strlen(line), record, NULL, NULL);
    if (store->locked)
        status = put_aside(store, line);
    sqlite3_busy_timeout(store->db, STORE_BUSY_MS);
    return status;
}

void store_end_waiting(struct store *store)
{
    store->locked = false;
    if (!store->waits)
        return;
    if (store_settle(store) != STATUS_OK)
        log_warning("%s", status_message());
    else if (store->locked)
        log_warning(
            "%s: it is still locked; records wait in %s.waiting.jsonl, and the next command "
            "that changes the store files them",
            store->path, store->path);
}
