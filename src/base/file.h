/* file.h: whole files in, whole files out.
 *
 * Output is written whole or not at all: a temporary file beside the target, fsync, rename, fsync
 * of the folder. Where the file system can, the temporary file has no name before it is whole. A
 * process that is killed in the moment before the rename leaves one, which the next write of the
 * same file removes. Every message names the path, what was
 * attempted and the system's reason. */
#ifndef PRONY_BASE_FILE_H
#define PRONY_BASE_FILE_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads a regular file (or "-": standard input) of at most `limit` bytes; appends to *out. */
enum status file_read(const char *path, size_t limit, struct text *out);

/* Reads a regular file, or a part that must lie in it, into memory of its own. mem_free frees
 * *data; a failure leaves it as it was. One that becomes shorter meanwhile is refused. */
enum status file_load(const char *path, void **data, size_t *length);
enum status file_load_part(const char *path, size_t from, size_t bytes, void **data);

/* A file being written. A zeroed struct is closed. */
struct file_writer {
    int fd;
    bool open, nameless;
    char *path, *temporary;
};
enum status file_begin(struct file_writer *writer, const char *path);
enum status file_append(struct file_writer *writer, const void *bytes, size_t length);
enum status file_commit(struct file_writer *writer); /* the target is the new content, or intact */
void file_abort(struct file_writer *writer);         /* nothing is left; fine after commit too */

enum status file_write(const char *path, const void *bytes, size_t length); /* all of the above */

/* Appends one whole line (adds the '\n') to a file others may append to: O_APPEND, one write under
 * a lock, fsync. */
enum status file_append_line(const char *path, const char *line);
/* Hands all lines that were appended to visit, and removes the file when that went well. No line
 * that is appended meanwhile is lost. Without a file nothing is done. */
typedef enum status file_lines_visit(void *context, const char *lines, size_t length);
enum status file_take_lines(const char *path, size_t limit, file_lines_visit *visit, void *context);
/* Could lines be appended? Asked before what they will hold is worked out; a file that was not
 * there is, and empty. */
enum status file_try_append(const char *path);

/* A regular file that is read piece by piece, as it may be larger than memory. It is not mapped:
 * the system ends a process that reads a map whose file became shorter. A zeroed struct is closed.
 */
struct file_reader {
    int fd;
    bool open;
    size_t length; /* when it was opened */
};
enum status file_open(struct file_reader *reader, const char *path);
/* A part that lies in its length, else it is refused; `path` is for messages. */
enum status file_read_part(const struct file_reader *reader, const char *path, size_t from,
                           size_t bytes, void *to);
void file_close(struct file_reader *reader);

/* Where the system does not say (a folder that may not be read, links in a circle): true, and who
 * opens it is told why. */
bool file_exists(const char *path);
/* Refuses to write over what is read: the same file, by whatever name; of the input FILE:NAME, the
 * file. NULL, or a path that is no file, is never the same. */
enum status file_check_apart(const char *out, const char *in);
/* Makes a folder and its parents, as mkdir -p. */
enum status file_make_folder(const char *path);
/* The user's data directory for prony ($XDG_DATA_HOME/prony or ~/.local/share/prony), made if
 * needed; appended to *out. */
enum status file_data_folder(struct text *out);
/* The same for what can be found out again: $XDG_CACHE_HOME/prony or ~/.cache/prony. */
enum status file_cache_folder(struct text *out);
/* For files that are not needed later: $TMPDIR, or /tmp; not the caller's to free. */
const char *file_temporary_folder(void);

#endif
