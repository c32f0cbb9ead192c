/* store_wait.c: records that come while another program has the store locked. They wait in a file
 * beside it, FILE.waiting.jsonl, and are filed as soon as somebody can write: the next record, the
 * end of the bench, or the next command that changes the store. A line that is no record is put
 * into FILE.waiting.bad, with a warning: it keeps neither its neighbours nor new records out. */
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

struct settling {
    struct store *store;
    const char *path; /* of the file that they wait in */
    struct text bad;  /* lines that are no records */
};

/* Whatever it is, it becomes lines of a text. */
static void add_bad(struct text *bad, const char *line, size_t length)
{
    if (bad->length)
        text_add_char(bad, '\n');
    for (size_t i = 0; i < length; i++)
        text_add_char(bad, line[i] ? line[i] : '?');
}

static enum status file_line(struct settling *settling, long number, const char *line,
                             size_t length)
{
    struct arena arena = {0};
    struct record record;
    enum status status = record_read(&arena, settling->path, number, line, length, &record);
    if (status == STATUS_OK) {
        status = store_file(settling->store, line, length, &record, &(int64_t){0}, &(bool){0});
    } else if (status == STATUS_INPUT) {
        log_warning("%s; it is put into %s.waiting.bad", status_message(), settling->store->path);
        add_bad(&settling->bad, line, length);
        status = STATUS_OK;
    }
    arena_free(&arena);
    return status;
}

static enum status keep_bad(struct settling *settling)
{
    struct text path = {0};
    TRY(text_done(&settling->bad));
    if (!settling->bad.length)
        return STATUS_OK;
    text_printf(&path, "%s.waiting.bad", settling->store->path);
    enum status status = text_done(&path);
    for (char *line = settling->bad.data, *end; status == STATUS_OK && line; line = end) {
        end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        status = file_append_line(text_of(&path), line);
    }
    text_free(&path);
    return status;
}

static enum status file_lines(void *context, const char *lines, size_t length)
{
    struct settling *settling = context;
    const char *end = lines + length;
    enum status status;
    TRY(store_begin(settling->store));
    for (long number = 1; lines < end; number++) {
        const char *newline = memchr(lines, '\n', (size_t)(end - lines));
        size_t line = (size_t)((newline ? newline : end) - lines);
        if (line)
            TRY_OR(failed, file_line(settling, number, lines, line));
        lines += line + (newline ? 1 : 0);
    }
    TRY_OR(failed, store_commit(settling->store));
    return keep_bad(settling);
failed:
    store_rollback(settling->store);
    return status;
}

enum status store_settle(struct store *store)
{
    struct text path = {0};
    TRY(waiting_path(store, &path));
    struct settling settling = {.store = store, .path = text_of(&path)};
    enum status status = STATUS_OK;
    store->locked = false;
    if (file_exists(text_of(&path)))
        status = file_take_lines(text_of(&path), waiting_most, file_lines, &settling);
    text_free(&settling.bad);
    text_free(&path);
    if (store->locked)
        return STATUS_OK; /* later */
    store->waits = false;
    if (status == STATUS_OK || status == STATUS_MEMORY)
        return status;
    log_warning("%s; the records that wait there are not filed", status_message());
    return STATUS_OK;
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
    sqlite->busy_timeout(store->db, STORE_WAIT_MS);
    store->locked = false;
    enum status status = store->waits ? store_settle(store) : STATUS_OK;
    if (status == STATUS_OK && !store->locked)
        status = store_add(store, line, strlen(line), record, NULL, NULL);
    if (store->locked)
        status = put_aside(store, line);
    sqlite->busy_timeout(store->db, STORE_BUSY_MS);
    return status;
}

void store_end_waiting(struct store *store)
{
    struct error first = *status_last(); /* what ended the run is told afterwards */
    store->locked = false;
    if (!store->waits)
        return;
    if (store_settle(store) != STATUS_OK)
        log_warning("%s", status_message());
    if (store->locked)
        log_warning(
            "%s: it is still locked; records wait in %s.waiting.jsonl, and the next command "
            "that changes the store files them",
            store->path, store->path);
    *status_last() = first;
}
