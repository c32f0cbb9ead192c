/* peers.c: see peers.h. */
#include "bench/peer/peers.h"

#include "base/load/trust.h"
#include "base/text.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PEERS_MOST = 100 };

/* NULL in *out when the folder NAME has no executable peer. */
static enum status peers_path(const char *folder, const char *name, struct arena *arena,
                              const char **out)
{
    static const char *const files[] = {"peer", "peer.py"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        NEED(*out = arena_format(arena, "%s/%s/%s", folder, name, files[i]));
        if (access(*out, X_OK) == 0)
            return STATUS_OK;
    }
    *out = NULL;
    return STATUS_OK;
}

static int peers_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum status peers_list(const char *folder, struct arena *arena, const char *const **out,
                       size_t *count)
{
    const char **names = arena_array(arena, PEERS_MOST, sizeof *names), *path;
    enum status status = STATUS_OK;

    NEED(names);
    *out = names;
    *count = 0;
    DIR *open = opendir(folder);
    if (!open)
        return STATUS_OK;
    for (struct dirent *entry; (entry = readdir(open)) != NULL && *count < PEERS_MOST;) {
        if (entry->d_name[0] == '.')
            continue;
        TRY_OR(done, peers_path(folder, entry->d_name, arena, &path));
        if (path)
            NEED_OR(done, names[(*count)++] = arena_text(arena, entry->d_name));
    }
    qsort(names, *count, sizeof *names, peers_compare);
done:
    closedir(open);
    return status;
}

enum status peers_find(const char *folder, const char *name, struct arena *arena, const char **out)
{
    const char *const *names;
    size_t count;

    if (strchr(name, '/')) {
        if (access(name, F_OK) != 0)
            FAIL(STATUS_INPUT, "framework \"%s\": there is no file of that name", name);
        if (access(name, X_OK) != 0)
            FAIL(STATUS_INPUT, "framework \"%s\": the file is not executable: chmod +x %s", name,
                 name);
        NEED(*out = arena_text(arena, name));
        return STATUS_OK;
    }
    TRY(peers_path(folder, name, arena, out));
    if (*out)
        return trust_check_files(folder); /* they load what all of them share */
    TRY(peers_list(folder, arena, &names, &count));
    const char *nearest = text_nearest(name, names, count);
    if (nearest)
        FAIL(STATUS_INPUT, "there is no framework \"%s\"; did you mean %s?", name, nearest);
    struct text all = {0};
    for (size_t i = 0; i < count; i++)
        text_printf(&all, ", %s", names[i]);
    enum status status =
        status_fail(STATUS_INPUT, __FILE__, __LINE__,
                    "there is no framework \"%s\"; there are prony%s", name, text_of(&all));
    text_free(&all);
    return status;
}
