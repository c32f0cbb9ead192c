/* Files are read whole, written whole or not at all, and every refusal names the path. */
#include "base/file.h"
#include "base/memory.h"
#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Locks as other file systems and other writers have them; other than USUAL, no file without a name
 * can be locked, so that files have one from the start. */
static enum { USUAL, LOCKLESS, RIVAL } locks;

/* A rival has the lock of the first file, and removes it later. */
int flock(int fd, int operation)
{
    struct stat info;
    if (locks == USUAL)
        return (int)syscall(SYS_flock, fd, operation);
    bool named = fstat(fd, &info) == 0 && info.st_nlink > 0;
    errno = ENOLCK;
    if (named && locks == RIVAL) {
        char open_path[40], path[256] = "";
        snprintf(open_path, sizeof open_path, "/proc/self/fd/%d", fd);
        if (readlink(open_path, path, sizeof path - 1) > 0)
            unlink(path);
        locks = USUAL;
        errno = EWOULDBLOCK;
    }
    return -1;
}

/* A fresh folder for this process, and names inside it. */
static const char *inside(const char *name)
{
    static char folder[] = "/tmp/prony-test-XXXXXX", paths[4][128];
    static bool made;
    static unsigned turn;
    if (!made)
        made = mkdtemp(folder) != NULL;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s%s%s", folder, *name ? "/" : "", name);
    return path;
}

static void check_content(const char *path, const char *expected)
{
    struct text text = {0};
    if (CHECK_OK(file_read(path, 1000, &text)))
        CHECK_EQUAL_TEXT(text_of(&text), expected);
    text_free(&text);
}

/* How many entries a folder has: temporary files must not stay behind. */
static int count_entries(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    if (!folder)
        return -1;
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder))
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

TEST(writes_and_reads)
{
    const char *path = inside("plain");
    CHECK(!file_exists(path));
    CHECK_OK(file_write(path, "one", 3));
    CHECK(file_exists(path));
    check_content(path, "one");
    CHECK_OK(file_write(path, "two\n", 4));
    check_content(path, "two\n");
    struct text text = {0};
    text_add(&text, "before ");
    CHECK_OK(file_read(path, 4, &text));
    CHECK_EQUAL_TEXT(text_of(&text), "before two\n");
    CHECK_STATUS(STATUS_INPUT, file_read(path, 3, &text));
    CHECK_MESSAGE("plain: found more than 3 bytes, expected at most that");
    CHECK_EQUAL_TEXT(text_of(&text), "before two\n");
    text_free(&text);
    CHECK_EQUAL_INT(count_entries(inside("")), 1);
    unlink(path);
}

TEST(what_is_read_is_not_written)
{
    char out[128], in[160];
    snprintf(out, sizeof out, "%s", inside("both"));
    snprintf(in, sizeof in, "%s:generator", out);
    CHECK_OK(file_check_apart(out, out)); /* there is nothing to lose yet */
    CHECK_OK(file_write(out, "kept", 4));
    CHECK_STATUS(STATUS_INPUT, file_check_apart(out, out));
    CHECK_MESSAGE("both: found the file to write among the inputs");
    CHECK_STATUS(STATUS_INPUT, file_check_apart(out, in));
    const char *other = inside("link");
    CHECK(symlink(out, other) == 0);
    CHECK_STATUS(STATUS_INPUT, file_check_apart(other, out));
    CHECK_STATUS(STATUS_INPUT, file_check_apart(out, other));
    unlink(other);
    CHECK_OK(file_write(other, "kept", 4));
    CHECK_OK(file_check_apart(out, other));
    CHECK_OK(file_check_apart(out, "iris"));
    CHECK_OK(file_check_apart(out, "ring:50"));
    CHECK_OK(file_check_apart(out, NULL));
    CHECK_OK(file_check_apart(NULL, out));
    unlink(other);
    unlink(out);
}

TEST(refuses_what_is_not_a_file)
{
    struct text text = {0};
    CHECK_STATUS(STATUS_IO, file_read(inside("absent"), 10, &text));
    CHECK_MESSAGE("absent: cannot open: No such file or directory");
    CHECK_STATUS(STATUS_INPUT, file_read(inside(""), 10, &text));
    CHECK_MESSAGE("found a folder, expected a file");
    CHECK_STATUS(STATUS_INPUT, file_read("/dev/zero", 10, &text));
    CHECK_MESSAGE("/dev/zero: found a device or a pipe, expected a file");
    const char *pipe = inside("pipe");
    CHECK(mkfifo(pipe, 0600) == 0);
    CHECK_STATUS(STATUS_INPUT, file_read(pipe, 10, &text)); /* does not wait for a writer */
    CHECK_STATUS(STATUS_INPUT, file_write(pipe, "x", 1));
    CHECK_STATUS(STATUS_IO, file_append_line(pipe, "x"));
    CHECK_MESSAGE("no program reads this pipe");
    int reader = open(pipe, O_RDONLY | O_NONBLOCK);
    char read_back[3] = "";
    CHECK_OK(file_append_line(pipe, "x"));
    CHECK(read(reader, read_back, 2) == 2);
    CHECK_EQUAL_TEXT(read_back, "x\n");
    close(reader);
    unlink(pipe);
    CHECK_STATUS(STATUS_INPUT, file_write(inside(""), "x", 1));
    CHECK_MESSAGE("found a folder, expected a file to write");
    CHECK_STATUS(STATUS_INPUT, file_write("/dev/full", "x", 1));
    CHECK_STATUS(STATUS_INPUT, file_write("", "x", 1));
    CHECK_MESSAGE("found an empty path");
    CHECK_STATUS(STATUS_IO, file_write(inside("no/such/folder"), "x", 1));
    CHECK_MESSAGE("no/such/folder: cannot write into its folder: No such file or directory");
    CHECK_EQUAL_TEXT(text_of(&text), "");
    text_free(&text);
}

TEST(a_process_that_is_killed_leaves_nothing_half_written)
{
    const char *path = inside("killed");
    int before = count_entries(inside(""));
    int fd = open(inside(""), O_TMPFILE | O_WRONLY, 0600);
    if (fd < 0)
        SKIP("the file system has no files without a name");
    close(fd);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct file_writer writer;
        if (file_begin(&writer, path) == STATUS_OK)
            file_append(&writer, "half", 4);
        kill(getpid(), SIGKILL);
    }
    int how;
    CHECK(waitpid(child, &how, 0) == child && WIFSIGNALED(how));
    CHECK_EQUAL_INT(count_entries(inside("")), before);
}

/* Writes the file in a process that is killed at its nth stop, of which each system call has two:
 * one before it and one behind it; false: there were fewer. */
static bool kill_at_stop(const char *path, const char *content, int nth)
{
    int state;
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) /* as under qemu-user */
            _exit(1);
        raise(SIGSTOP);
        _exit(file_write(path, content, strlen(content)) != STATUS_OK);
    }
    if (child < 0 || waitpid(child, &state, 0) != child || !WIFSTOPPED(state))
        return false;
    for (int stop = 0; stop < nth; stop++) {
        ptrace(PTRACE_SYSCALL, child, NULL, NULL);
        if (waitpid(child, &state, 0) != child || !WIFSTOPPED(state))
            return false;
    }
    kill(child, SIGKILL);
    waitpid(child, &state, 0);
    return true;
}

/* Of a file that is there, and of one that is not. What is left behind is gone with the next write.
 */
TEST(a_process_killed_at_any_system_call_leaves_nothing)
{
    const char *folder = inside("killed");
    char path[160];
    snprintf(path, sizeof path, "%s/file", folder);
    CHECK_OK(file_make_folder(folder));
    int calls = 0, orphans = 0;
    for (int old = 0; old < 2; old++)
        for (int nth = 0; nth < 1000; nth++) {
            struct text text = {0};
            unlink(path);
            if (old)
                CHECK_OK(file_write(path, "old", 3));
            bool killed = kill_at_stop(path, "new", nth);
            if (!killed && nth == 0) {
                rmdir(folder);
                SKIP("no process may be traced here");
            }
            if (file_exists(path) && CHECK_OK(file_read(path, 100, &text)))
                CHECK(text_equal(text_of(&text), "new") ||
                      (old && text_equal(text_of(&text), "old")));
            else
                CHECK(!old);
            text_free(&text);
            orphans += count_entries(folder) > file_exists(path);
            CHECK_OK(file_write(path, "next", 4));
            CHECK_EQUAL_INT(count_entries(folder), 1);
            calls += killed;
            if (!killed)
                break;
        }
    CHECK(calls > 20);
    CHECK(orphans > 0); /* or the kills missed the moment that this is about */
    unlink(path);
    rmdir(folder);
}

TEST(a_file_is_not_lost_to_who_cleans_up)
{
    const char *path = inside("rival");
    locks = RIVAL;
    CHECK_OK(file_write(path, "kept", 4));
    CHECK(locks == USUAL);
    check_content(path, "kept");
    locks = LOCKLESS;
    CHECK_OK(file_write(path, "kept without locks", 18));
    locks = USUAL;
    check_content(path, "kept without locks");
    CHECK_EQUAL_INT(count_entries(inside("")), 1);
    unlink(path);
}

TEST(writes_names_as_long_as_there_are)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%0255d", inside(""), 7);
    if (CHECK_OK(file_write(path, "one", 3)) && CHECK_OK(file_write(path, "two", 3)))
        check_content(path, "two");
    unlink(path);
    struct file_writer writer;
    snprintf(path, sizeof path, "%s/%0256d", inside(""), 7);
    CHECK_STATUS(STATUS_IO, file_begin(&writer, path)); /* not when all of it is written */
    CHECK_MESSAGE("cannot write: File name too long");
}

TEST(keeps_permissions_and_links)
{
    const char *path = inside("real"), *link = inside("link");
    struct stat info;
    CHECK_OK(file_write(path, "old", 3));
    CHECK(chmod(path, 0640) == 0 && symlink("real", link) == 0);
    CHECK_OK(file_write(link, "new", 3));
    check_content(path, "new");
    CHECK(lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
    CHECK(stat(path, &info) == 0);
    CHECK_EQUAL_INT(info.st_mode & 0777, 0640);
    unlink(path);
    CHECK_STATUS(STATUS_INPUT, file_write(link, "new", 3));
    CHECK_MESSAGE("found a link to a file that is not there");
    CHECK(lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
    unlink(link);
}

/* Not the link is replaced, as that of /dev/stdout would be. */
TEST(a_link_to_no_file_stays)
{
    const char *link = inside("link");
    char open_pipe[40];
    int ends[2];
    struct stat info;
    CHECK(symlink("absent", link) == 0);
    CHECK_STATUS(STATUS_INPUT, file_write(link, "x", 1));
    CHECK_MESSAGE("link: found a link to a file that is not there, expected a file to write");
    CHECK(lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
    unlink(link);
    CHECK(pipe(ends) == 0);
    snprintf(open_pipe, sizeof open_pipe, "/proc/self/fd/%d", ends[1]);
    CHECK(symlink(open_pipe, link) == 0);
    CHECK_STATUS(STATUS_INPUT, file_write(link, "x", 1));
    CHECK_MESSAGE("link: found a device or a pipe, expected a file to write");
    CHECK(lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
    unlink(link);
    close(ends[0]);
    close(ends[1]);
}

TEST(an_unfinished_write_leaves_the_old_content)
{
    const char *path = inside("kept");
    CHECK_OK(file_write(path, "old", 3));
    struct file_writer writer;
    CHECK_OK(file_begin(&writer, path));
    CHECK_OK(file_append(&writer, "new", 3));
    check_content(path, "old");
    file_abort(&writer);
    file_abort(&writer);
    check_content(path, "old");
    CHECK_EQUAL_INT(count_entries(inside("")), 1);
    for (long nth = 1; nth <= 2; nth++) {
        memory_fail_at(nth);
        CHECK_STATUS(STATUS_MEMORY, file_write(path, "new", 3));
        memory_fail_at(0);
    }
    check_content(path, "old");
    CHECK_EQUAL_INT(count_entries(inside("")), 1);
    unlink(path);
}

/* A limit on the size of files stands in for a full disk: write fails half way through. */
TEST(a_full_disk_leaves_the_old_content)
{
    const char *path = inside("full"), *lines = inside("lines");
    CHECK_OK(file_write(path, "old", 3));
    CHECK_OK(file_append_line(lines, "a finished record"));
    char large[10000];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    struct rlimit before, limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    limit = before;
    limit.rlim_cur = 4096;
    void (*old)(int) = signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    enum status whole = file_write(path, large, sizeof large);
    char message[200];
    snprintf(message, sizeof message, "%s", status_message());
    enum status line = file_append_line(lines, large);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, old);
    CHECK_EQUAL_INT(whole, STATUS_IO);
    CHECK(strstr(message, "full: cannot write: File too large") != NULL);
    CHECK_EQUAL_INT(line, STATUS_IO);
    check_content(path, "old");
    check_content(lines, "a finished record\n");
    CHECK_EQUAL_INT(count_entries(inside("")), 2);
    CHECK_STATUS(STATUS_IO, file_append_line("/dev/full", "x"));
    CHECK_MESSAGE("/dev/full: cannot write: No space left on device");
    unlink(path);
    unlink(lines);
}

/* As a user without rights: root may write everywhere, so a child gives its rights up. */
TEST(an_unwritable_folder_is_refused)
{
    const char *folder = inside("locked"), *path = inside("locked/file");
    CHECK(mkdir(folder, 0755) == 0);
    CHECK_OK(file_write(path, "old", 3));
    CHECK(chmod(path, 0644) == 0 && chmod(folder, 0555) == 0 && chmod(inside(""), 0755) == 0);
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(2);
        enum status status = file_write(path, "new", 3);
        bool says =
            strstr(status_message(), "file: cannot write into its folder: Permission denied");
        _exit(status == STATUS_IO && says ? 0 : 1);
    }
    int how;
    CHECK(waitpid(child, &how, 0) == child);
    CHECK(WIFEXITED(how));
    CHECK_EQUAL_INT(WEXITSTATUS(how), 0);
    check_content(path, "old");
    chmod(folder, 0755);
    CHECK_EQUAL_INT(count_entries(folder), 1);
    unlink(path);
    rmdir(folder);
}

TEST(appends_lines)
{
    const char *path = inside("records");
    CHECK_OK(file_append_line(path, "one"));
    CHECK_OK(file_append_line(path, "two"));
    check_content(path, "one\ntwo\n");
    CHECK_OK(file_write(path, "whole\ntor", 9)); /* a writer was killed here */
    CHECK_OK(file_append_line(path, "next"));
    check_content(path, "whole\ntor\nnext\n");
    CHECK_STATUS(STATUS_IO, file_append_line(inside("no/folder"), "x"));
    CHECK_MESSAGE("no/folder: cannot open");
    unlink(path);
}

TEST(lines_of_several_processes_stay_whole)
{
    enum { WRITERS = 4, LINES = 25 };
    const char *path = inside("shared");
    for (int i = 0; i < WRITERS; i++)
        if (fork() == 0) {
            char line[2000];
            memset(line, 'a' + i, sizeof line - 1);
            line[sizeof line - 1] = '\0';
            enum status status = STATUS_OK;
            for (int n = 0; n < LINES && status == STATUS_OK; n++)
                status = file_append_line(path, line);
            _exit(status == STATUS_OK ? 0 : 1);
        }
    for (int i = 0; i < WRITERS; i++) {
        int how;
        CHECK(wait(&how) > 0 && WIFEXITED(how) && WEXITSTATUS(how) == 0);
    }
    struct text text = {0};
    CHECK_OK(file_read(path, 1000000, &text));
    CHECK_EQUAL_INT(text.length, WRITERS * LINES * 2000);
    for (size_t i = 0; i + 2000 <= text.length; i += 2000) {
        CHECK_EQUAL_INT(text.data[i + 1999], '\n');
        for (size_t j = 1; j < 1999; j++)
            if (text.data[i + j] != text.data[i] && !CHECK(false))
                break;
    }
    text_free(&text);
    unlink(path);
}

TEST(reads_parts_of_an_open_file)
{
    const char *path = inside("open");
    struct file_reader reader = {0};
    char bytes[7] = "";
    CHECK_OK(file_write(path, "content", 7));
    if (CHECK_OK(file_open(&reader, path))) {
        CHECK_EQUAL_INT(reader.length, 7);
        CHECK_OK(file_read_part(&reader, path, 3, 4, bytes));
        CHECK(memcmp(bytes, "tent", 4) == 0);
        CHECK(truncate(path, 5) == 0);
        CHECK_STATUS(STATUS_INPUT, file_read_part(&reader, path, 3, 4, bytes));
        CHECK_MESSAGE("found its end before byte 6, expected 7 bytes: it became shorter");
        file_close(&reader);
    }
    file_close(&reader); /* it is closed */
    unlink(path);
    CHECK_STATUS(STATUS_IO, file_open(&reader, path));
    CHECK_STATUS(STATUS_INPUT, file_open(&reader, inside("")));
}

TEST(loads)
{
    const char *path = inside("loaded");
    void *data;
    size_t length;
    CHECK_OK(file_write(path, "content", 7));
    if (CHECK_OK(file_load(path, &data, &length))) {
        CHECK_EQUAL_INT(length, 7);
        CHECK(memcmp(data, "content", 7) == 0);
        mem_free(data);
    }
    if (CHECK_OK(file_load_part(path, 3, 4, &data))) {
        CHECK(memcmp(data, "tent", 4) == 0);
        mem_free(data);
    }
    CHECK_STATUS(STATUS_INPUT, file_load_part(path, 3, 5, &data));
    CHECK_MESSAGE("loaded: found 7 bytes, expected 5 from byte 3 on");
    CHECK_STATUS(STATUS_INPUT, file_load_part(path, 8, SIZE_MAX, &data));
    unlink(path);
    CHECK_STATUS(STATUS_IO, file_load(path, &data, &length));
    CHECK_STATUS(STATUS_INPUT, file_load(inside(""), &data, &length));
}

TEST(makes_folders)
{
    const char *deep = inside("a/b//c/");
    CHECK_OK(file_make_folder(deep));
    CHECK(file_exists(deep));
    CHECK_OK(file_make_folder(deep));
    CHECK_OK(file_make_folder("/"));
    CHECK_OK(file_write(inside("a/file"), "", 0));
    CHECK_STATUS(STATUS_INPUT, file_make_folder(inside("a/file")));
    CHECK_MESSAGE("a/file: found a file, expected a folder");
    CHECK_STATUS(STATUS_INPUT, file_make_folder(inside("a/file/below")));
    unlink(inside("a/file"));
    rmdir(inside("a/b/c"));
    rmdir(inside("a/b"));
    rmdir(inside("a"));
}

TEST(finds_the_temporary_folder)
{
    setenv("TMPDIR", inside(""), 1);
    CHECK_EQUAL_TEXT(file_temporary_folder(), inside(""));
    setenv("TMPDIR", "", 1);
    CHECK_EQUAL_TEXT(file_temporary_folder(), "/tmp");
    unsetenv("TMPDIR");
    CHECK_EQUAL_TEXT(file_temporary_folder(), "/tmp");
}

TEST(finds_the_data_folder)
{
    struct text folder = {0};
    char expected[200];
    setenv("XDG_DATA_HOME", inside("data"), 1);
    CHECK_OK(file_data_folder(&folder));
    snprintf(expected, sizeof expected, "%s/prony", inside("data"));
    CHECK_EQUAL_TEXT(text_of(&folder), expected);
    CHECK(file_exists(expected));
    rmdir(expected);
    rmdir(inside("data"));
    text_clear(&folder);
    setenv("XDG_DATA_HOME", "relative", 1);
    unsetenv("HOME");
    CHECK_STATUS(STATUS_INPUT, file_data_folder(&folder));
    CHECK_MESSAGE("neither XDG_DATA_HOME nor HOME is set");
    text_free(&folder);
    CHECK(rmdir(inside("")) == 0); /* the last test: nothing was left behind */
}

CHECK_MAIN
