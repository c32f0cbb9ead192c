/* file.c: whole files over plain system calls. */
#include "base/file.h"

#include "base/machine/room.h"
#include "base/memory.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* "PATH: cannot VERB: the system's reason" */
static enum status refuse(const char *path, const char *verb)
{
    FAIL(STATUS_IO, "%s: cannot %s: %s", path, verb, strerror(errno));
}

/* Opens for reading what must be a regular file; O_NONBLOCK so that a named pipe is refused below
 * rather than waited for. */
static enum status open_regular(const char *path, int *fd, struct stat *info)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return refuse(path, "open");
    enum status status = STATUS_OK;
    if (fstat(*fd, info) != 0)
        status = refuse(path, "look at");
    else if (!S_ISREG(info->st_mode))
        status = status_fail(STATUS_INPUT, __FILE__, __LINE__, "%s: found %s, expected a file",
                             path, S_ISDIR(info->st_mode) ? "a folder" : "a device or a pipe");
    if (status != STATUS_OK)
        close(*fd);
    return status;
}

static enum status read_all(int fd, const char *path, size_t limit, struct text *out)
{
    char buffer[65536];
    size_t total = 0;
    for (;;) {
        ssize_t got = read(fd, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return refuse(path, "read");
        if (got == 0)
            return text_done(out);
        total += (size_t)got;
        if (total > limit)
            FAIL(STATUS_INPUT, "%s: found more than %zu bytes, expected at most that", path, limit);
        text_add_bytes(out, buffer, (size_t)got);
    }
}

enum status file_read(const char *path, size_t limit, struct text *out)
{
    size_t before = out->length;
    enum status status;
    if (text_equal(path, "-")) {
        status = read_all(STDIN_FILENO, "standard input", limit, out);
    } else {
        int fd;
        struct stat info;
        TRY(open_regular(path, &fd, &info));
        status = read_all(fd, path, limit, out);
        close(fd);
    }
    if (status != STATUS_OK && out->data) { /* nothing half read stays behind */
        out->length = before;
        out->data[before] = '\0';
    }
    return status;
}

/* That part of an open file. */
static enum status read_open(int fd, const char *path, size_t from, size_t bytes, char *to)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(fd, to + done, bytes - done, (off_t)(from + done));
        if (got == 0)
            FAIL(
                STATUS_INPUT,
                "%s: found its end before byte %zu, expected %zu bytes: it became shorter while it "
                "was read",
                path, from + done + 1, from + bytes);
        if (got < 0 && errno != EINTR)
            return refuse(path, "read");
        done += got > 0 ? (size_t)got : 0;
    }
    return STATUS_OK;
}

/* Memory of its own with it. */
static enum status load_open(int fd, const char *path, size_t from, size_t bytes, void **data)
{
    char *to;
    TRY(room_check((double)bytes, "%s has %zu bytes", path, bytes));
    NEED(to = mem_alloc(bytes));
    enum status status = read_open(fd, path, from, bytes, to);
    if (status == STATUS_OK)
        *data = to;
    else
        mem_free(to);
    return status;
}

enum status file_load(const char *path, void **data, size_t *length)
{
    int fd;
    struct stat info;
    TRY(open_regular(path, &fd, &info));
    enum status status = load_open(fd, path, 0, (size_t)info.st_size, data);
    *length = status == STATUS_OK ? (size_t)info.st_size : 0;
    close(fd);
    return status;
}

enum status file_load_part(const char *path, size_t from, size_t bytes, void **data)
{
    int fd;
    struct stat info;
    TRY(open_regular(path, &fd, &info));
    size_t length = (size_t)info.st_size;
    enum status status = from > length || bytes > length - from
                             ? status_fail(STATUS_INPUT, __FILE__, __LINE__,
                                           "%s: found %zu bytes, expected %zu from byte %zu on",
                                           path, length, bytes, from)
                             : load_open(fd, path, from, bytes, data);
    close(fd);
    return status;
}

static enum status write_all(int fd, const char *path, const void *bytes, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t put = write(fd, (const char *)bytes + done, length - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return refuse(path, "write");
        done += (size_t)put;
    }
    return STATUS_OK;
}

/* The folder that a file lies in; false where its path is too long. */
static bool folder_of(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    int length =
        snprintf(folder, PATH_MAX, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    return length >= 0 && length < PATH_MAX;
}

/* Where an open file is found by its number, to give it a name later. */
static void path_of_open(int fd, char path[40])
{
    snprintf(path, 40, "/proc/self/fd/%d", fd);
}

/* A file without a name in the target's folder; not every file system has such. */
static void open_nameless(struct file_writer *writer)
{
    char folder[PATH_MAX], path[40];
    if (!folder_of(writer->path, folder))
        return;
    writer->fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    path_of_open(writer->fd, path);
    writer->open = writer->nameless =
        writer->fd >= 0 && access(path, F_OK) == 0 && flock(writer->fd, LOCK_EX | LOCK_NB) == 0;
    if (writer->fd >= 0 && !writer->open)
        close(writer->fd);
}

/* "FOLDER/TARGET", as much of it as leaves room for ".PID-N.tmp" in a name. */
static int temporary_stem(const char *path)
{
    enum { STEM_MOST = 200 };
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return (int)(name - path) + (int)strnlen(name, STEM_MOST);
}

/* Is what the name says what is open? */
static bool is_open_as(int fd, const char *path)
{
    struct stat open_one, named;
    return fstat(fd, &open_one) == 0 && lstat(path, &named) == 0 &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

/* Locks a new file; false where another's clean_up locked it first, and removes it. On a file
 * system without locks there is no cleaning up. */
static bool lock_new(int fd, const char *path)
{
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return errno == ENOLCK || errno == EOPNOTSUPP || errno == EINVAL;
    return is_open_as(fd, path);
}

/* Opens "TARGET.PID-N.tmp", or gives that name to what has none. Not mkstemp: the new file gets the
 * user's usual permissions. It is locked as long as it is open: so clean_up knows it from one that
 * a killed process left. */
static bool take_name(struct file_writer *writer)
{
    static atomic_uint number;
    enum { TRIES = 100 }; /* names left behind by a killed process of the same id */
    size_t size = strlen(writer->path) + 40;
    int stem = temporary_stem(writer->path);
    char path[40];
    bool taken = false;
    path_of_open(writer->fd, path);
    for (int i = 0; i < TRIES && !taken; i++) {
        snprintf(writer->temporary, size, "%.*s.%ld-%u.tmp", stem, writer->path, (long)getpid(),
                 atomic_fetch_add(&number, 1));
        if (writer->nameless) {
            taken = linkat(AT_FDCWD, path, AT_FDCWD, writer->temporary, AT_SYMLINK_FOLLOW) == 0;
        } else {
            writer->fd = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
            taken = writer->fd >= 0;
            if (taken && !lock_new(writer->fd, writer->temporary)) {
                close(writer->fd);
                taken = false;
                errno = EEXIST;
            }
            writer->open = taken;
        }
        if (!taken && errno != EEXIST)
            break;
    }
    if (!taken)
        *writer->temporary = '\0'; /* it is another's */
    return taken;
}

/* ".PID-N.tmp" */
static bool is_temporary_end(const char *end)
{
    int read = 0;
    long pid;
    unsigned number;
    return sscanf(end, ".%ld-%u.tmp%n", &pid, &number, &read) == 2 && read > 0 && !end[read];
}

/* Removes temporary files of this target that no process has open. Their writers were killed
 * between naming them and giving them the target's name. */
static void clean_up(const char *target)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(target, '/'), *name = slash ? slash + 1 : target;
    size_t stem = (size_t)temporary_stem(target) - (size_t)(name - target);
    DIR *entries = folder_of(target, folder) ? opendir(folder) : NULL;
    for (struct dirent *entry; entries && (entry = readdir(entries)) != NULL;) {
        if (strncmp(entry->d_name, name, stem) != 0 || !is_temporary_end(entry->d_name + stem))
            continue;
        int fd =
            openat(dirfd(entries), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            unlinkat(dirfd(entries), entry->d_name, 0);
        if (fd >= 0)
            close(fd);
    }
    if (entries)
        closedir(entries);
}

static enum status open_temporary(struct file_writer *writer)
{
    NEED(writer->temporary = mem_array(strlen(writer->path) + 40, 1));
    clean_up(writer->path);
    open_nameless(writer);
    return writer->nameless || take_name(writer) ? STATUS_OK
                                                 : refuse(writer->path, "write into its folder");
}

enum status file_begin(struct file_writer *writer, const char *path)
{
    *writer = (struct file_writer){.fd = -1};
    if (!*path)
        FAIL(STATUS_INPUT, "found an empty path, expected the path of a file to write");
    char target[PATH_MAX]; /* a link stays, and the file behind it is replaced */
    struct stat info;
    bool exists = stat(path, &info) == 0;
    if (!exists && errno != ENOENT) /* a name that is too long, links in a circle */
        return refuse(path, "write");
    if (exists && !S_ISREG(info.st_mode))
        FAIL(STATUS_INPUT, "%s: found %s, expected a file to write", path,
             S_ISDIR(info.st_mode) ? "a folder" : "a device or a pipe");
    if (!exists && lstat(path, &info) == 0)
        FAIL(STATUS_INPUT, "%s: found a link to a file that is not there, expected a file to write",
             path);
    if (exists && !realpath(path, target))
        return refuse(path, "find the file of");
    NEED(writer->path = mem_copy_text(exists ? target : path));
    enum status status = open_temporary(writer);
    if (status == STATUS_OK && exists && fchmod(writer->fd, info.st_mode & 07777) != 0)
        status = refuse(path, "keep the permissions of");
    if (status != STATUS_OK)
        file_abort(writer);
    return status;
}

enum status file_append(struct file_writer *writer, const void *bytes, size_t length)
{
    assert(writer->open);
    return write_all(writer->fd, writer->path, bytes, length);
}

/* Makes a rename in a folder last. Some file systems cannot and say EINVAL: nothing to be done. */
static enum status sync_folder(const char *path)
{
    char folder[PATH_MAX];
    if (!folder_of(path, folder))
        FAIL(STATUS_INPUT, "%s: the path is longer than %d bytes", path, PATH_MAX);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return refuse(folder, "open");
    bool synced = fsync(fd) == 0 || errno == EINVAL;
    enum status status = synced ? STATUS_OK : refuse(folder, "flush");
    close(fd);
    return status;
}

/* A file without a name takes the target's at once where that is free: there is no temporary one.
 */
static bool take_target(const struct file_writer *writer)
{
    char path[40];
    path_of_open(writer->fd, path);
    return linkat(AT_FDCWD, path, AT_FDCWD, writer->path, AT_SYMLINK_FOLLOW) == 0;
}

/* Renamed while it is open, and so locked. */
static enum status name_written(struct file_writer *writer)
{
    if (writer->nameless && take_target(writer))
        return STATUS_OK;
    if (writer->nameless && !take_name(writer))
        return refuse(writer->path, "write into its folder");
    if (rename(writer->temporary, writer->path) != 0)
        return refuse(writer->path, "replace");
    *writer->temporary = '\0';
    return STATUS_OK;
}

enum status file_commit(struct file_writer *writer)
{
    assert(writer->open);
    enum status status =
        fsync(writer->fd) == 0 ? name_written(writer) : refuse(writer->path, "flush");
    writer->open = false;
    if (close(writer->fd) != 0 && status == STATUS_OK)
        status = refuse(writer->path, "close");
    if (status == STATUS_OK)
        status = sync_folder(writer->path);
    file_abort(writer);
    return status;
}

void file_abort(struct file_writer *writer)
{
    if (writer->open)
        close(writer->fd);
    if (writer->temporary && *writer->temporary)
        unlink(writer->temporary);
    mem_free(writer->temporary);
    mem_free(writer->path);
    *writer = (struct file_writer){.fd = -1};
}

enum status file_write(const char *path, const void *bytes, size_t length)
{
    struct file_writer writer;
    TRY(file_begin(&writer, path));
    enum status status = file_append(&writer, bytes, length);
    if (status == STATUS_OK)
        return file_commit(&writer);
    file_abort(&writer);
    return status;
}

/* Under the lock. A line that did not fit (a full disk) is taken back. A line that a killed process
 * left unfinished is ended first, so that it spoils only itself. */
static enum status append_locked(int fd, const char *path, const char *line)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return refuse(path, "look at");
    bool regular = S_ISREG(info.st_mode);
    char last = '\n';
    if (regular && info.st_size > 0 && pread(fd, &last, 1, info.st_size - 1) != 1)
        return refuse(path, "read");
    struct text whole = {0};
    text_printf(&whole, "%s%s\n", last == '\n' ? "" : "\n", line);
    enum status status = text_done(&whole);
    if (status == STATUS_OK) {
        status = write_all(fd, path, whole.data, whole.length);
        if (status == STATUS_OK && regular && fsync(fd) != 0)
            status = refuse(path, "flush");
        if (status != STATUS_OK && regular && ftruncate(fd, info.st_size) != 0)
            status = status_prefix(status, "a part of a line may be left behind");
    }
    text_free(&whole);
    return status;
}

/* A pipe that is opened for reading too, or waits in its buffer, takes lines that have no reader.
 */
static enum status open_append(const char *path, int *fd)
{
    struct stat info;
    bool pipe = stat(path, &info) == 0 && S_ISFIFO(info.st_mode);
    *fd =
        open(path, (pipe ? O_WRONLY | O_NONBLOCK : O_RDWR) | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (*fd < 0 && pipe && errno == ENXIO)
        FAIL(STATUS_IO, "%s: cannot write: no program reads this pipe", path);
    if (*fd < 0)
        return refuse(path, "open");
    if (pipe && fcntl(*fd, F_SETFL, O_APPEND) != 0) { /* from now on a full one is waited for */
        enum status status = refuse(path, "wait for");
        close(*fd);
        return status;
    }
    return STATUS_OK;
}

enum status file_try_append(const char *path)
{
    int fd;
    TRY(open_append(path, &fd));
    return close(fd) == 0 ? STATUS_OK : refuse(path, "close");
}

static bool lock_file(int fd)
{
    int locked;
    do
        locked = flock(fd, LOCK_EX);
    while (locked != 0 && errno == EINTR);
    return locked == 0;
}

enum status file_append_line(const char *path, const char *line)
{
    int fd;
    struct stat info;
    assert(!strchr(line, '\n'));
    for (;;) { /* until it is not one that file_take_lines just removed */
        TRY(open_append(path, &fd));
        if (!lock_file(fd) || fstat(fd, &info) != 0) {
            enum status status = refuse(path, "lock");
            close(fd);
            return status;
        }
        if (info.st_nlink > 0)
            break;
        close(fd);
    }
    enum status status = append_locked(fd, path, line);
    close(fd);
    return status;
}

enum status file_take_lines(const char *path, size_t limit, file_lines_visit *visit, void *context)
{
    struct text text = {0};
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return STATUS_OK;
    if (fd < 0)
        return refuse(path, "open");
    enum status status = lock_file(fd) ? read_all(fd, path, limit, &text) : refuse(path, "lock");
    if (status == STATUS_OK)
        status = visit(context, text_of(&text), text.length);
    if (status == STATUS_OK && unlink(path) != 0)
        status = refuse(path, "remove");
    close(fd);
    text_free(&text);
    return status;
}

enum status file_open(struct file_reader *reader, const char *path)
{
    struct stat info;
    int fd;
    TRY(open_regular(path, &fd, &info));
    *reader = (struct file_reader){.fd = fd, .open = true, .length = (size_t)info.st_size};
    return STATUS_OK;
}

enum status file_read_part(const struct file_reader *reader, const char *path, size_t from,
                           size_t bytes, void *to)
{
    return read_open(reader->fd, path, from, bytes, to);
}

void file_close(struct file_reader *reader)
{
    if (reader->open)
        close(reader->fd);
    *reader = (struct file_reader){0};
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0 ||
           (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG);
}

static bool is_same(const struct stat *a, const char *path)
{
    struct stat b;
    return stat(path, &b) == 0 && a->st_dev == b.st_dev && a->st_ino == b.st_ino;
}

enum status file_check_apart(const char *out, const char *in)
{
    struct stat info;
    if (!out || !in || stat(out, &info) != 0)
        return STATUS_OK;
    char file[PATH_MAX];
    const char *colon = strrchr(in, ':');
    int length = snprintf(file, sizeof file, "%.*s", colon ? (int)(colon - in) : 0, in);
    bool whole = length > 0 && (size_t)length < sizeof file;
    if (is_same(&info, in) || (whole && is_same(&info, file)))
        FAIL(STATUS_INPUT,
             "%s: found the file to write among the inputs, as '%s'; expected another: choose "
             "another name, so that nothing is lost",
             out, in);
    return STATUS_OK;
}

static enum status make_one(const char *path)
{
    struct stat info;
    if (mkdir(path, 0777) == 0)
        return STATUS_OK;
    if (errno != EEXIST)
        return refuse(path, "make the folder");
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        FAIL(STATUS_INPUT, "%s: found a file, expected a folder", path);
    return STATUS_OK;
}

enum status file_make_folder(const char *path)
{
    char *part;
    NEED(part = mem_copy_text(path));
    enum status status = STATUS_OK;
    for (char *slash = part; status == STATUS_OK && (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        status = make_one(part);
        *slash = '/';
    }
    mem_free(part);
    return status == STATUS_OK ? make_one(path) : status;
}

/* `variable` names a folder for all programs, `usual` is its place below the user's own. */
static enum status user_folder(const char *variable, const char *usual, struct text *out)
{
    size_t before = out->length;
    const char *base = getenv(variable), *home = getenv("HOME");
    bool own = base && *base == '/'; /* the specification has relative ones ignored */
    if (!own && (!home || !*home))
        FAIL(STATUS_INPUT, "no folder to keep files in: neither %s nor HOME is set", variable);
    if (!own && !file_exists(home)) /* a service may have no home: none is made */
        FAIL(STATUS_INPUT,
             "no folder to keep files in: HOME is %s, which is not there; set it or %s", home,
             variable);
    text_printf(out, own ? "%s/prony" : "%s/%s/prony", own ? base : home, usual);
    TRY(text_done(out));
    return file_make_folder(out->data + before);
}

enum status file_data_folder(struct text *out)
{
    return user_folder("XDG_DATA_HOME", ".local/share", out);
}

enum status file_cache_folder(struct text *out)
{
    return user_folder("XDG_CACHE_HOME", ".cache", out);
}

const char *file_temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && folder[0] ? folder : "/tmp";
}
