/* launcher.c: what launchers leave in the environment, and the plugin that fits. */
#include "comm/launcher.h"

#include "base/load/trust.h"
#include "base/text.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The first row whose variables are there. Slurm's own come last: srun sets PMIX_RANK or PMI_RANK
 * besides, which tell the kind of MPI that it was asked for. */
static const struct {
    const char *rank, *size, *library;
} launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "openmpi"},
    {"PMIX_RANK", "SLURM_STEP_NUM_TASKS", "openmpi"},
    {"PMI_RANK", "PMI_SIZE", "mpich"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "openmpi"},
};

static bool read_number(const char *name, int64_t *out)
{
    const char *value = getenv(name);
    return value && text_to_int(value, out) && *out >= 0 && *out <= INT_MAX;
}

bool launcher_found(struct launcher *out)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        int64_t rank, size;
        if (!read_number(launchers[i].rank, &rank) || !read_number(launchers[i].size, &size) ||
            rank >= size)
            continue;
        *out = (struct launcher){launchers[i].library, launchers[i].size, (int)rank, (int)size};
        return true;
    }
    return false;
}

/* What a plugin is made of, and where Debian has it. */
static const struct {
    const char *library, *name, *packages, *starts; /* starts: how its ranks find each other */
} kinds[] = {
    {"openmpi", "Open MPI", "openmpi-bin libopenmpi-dev", "srun --mpi=pmix, or Open MPI's mpirun"},
    {"mpich", "MPICH", "mpich libmpich-dev", "srun --mpi=pmi2, or MPICH's mpiexec"},
    {"simgrid", "SimGrid", "libsimgrid-dev", ""},
};

static size_t find_kind(const char *library)
{
    size_t kind = 0;
    while (strcmp(kinds[kind].library, library) != 0)
        kind++;
    return kind;
}

static enum status find_file(const char *folder, const char *library, char path[PATH_MAX])
{
    const size_t kind = find_kind(library);
    snprintf(path, PATH_MAX, "%s/comm_%s.so", folder, library);
    if (access(path, F_OK) == 0)
        return STATUS_OK;
    snprintf(path, PATH_MAX, "%s/../lib/prony/comm_%s.so", folder, library);
    if (access(path, F_OK) == 0)
        return STATUS_OK;
    FAIL(STATUS_UNSUPPORTED,
         "found no comm_%s.so in %s: build prony where %s is installed (Debian: %s)", library,
         folder, kinds[kind].name, kinds[kind].packages);
}

static enum status load(const char *folder, const char *library, int flags, void **handle,
                        const struct comm_plugin **out)
{
    char path[PATH_MAX], real[PATH_MAX];
    TRY(find_file(folder, library, path));
    TRY(trust_check(path, real));
    *handle = dlopen(real, RTLD_NOW | flags);
    if (!*handle)
        FAIL(STATUS_UNSUPPORTED, "cannot be loaded: %s: build or copy it again", dlerror());
    const struct comm_plugin *plugin = dlsym(*handle, "prony_plugin");
    if (!plugin || plugin->abi != COMM_ABI) {
        dlclose(*handle);
        FAIL(STATUS_UNSUPPORTED, "%s is of another version: build both together", path);
    }
    *out = plugin;
    return STATUS_OK;
}

/* In the child: 'v' and the version, or 'n' and why there is none. */
static void tell_version(const char *folder, const char *library, int to)
{
    char said[LAUNCHER_VERSION + 300] = "n";
    void *handle;
    const struct comm_plugin *plugin;
    if (load(folder, library, RTLD_LOCAL, &handle, &plugin) == STATUS_OK)
        snprintf(said, sizeof said, "v%s", plugin->version);
    else
        snprintf(said, sizeof said, "n%s", status_message());
    if (write(to, said, strlen(said)) < 0)
        _exit(1);
    _exit(0);
}

/* A child loads it: what an MPI brings along (UCX) catches signals and may not run on this CPU. */
enum status launcher_version(const char *folder, const char *library, char *text)
{
    int ends[2], ended;
    char said[LAUNCHER_VERSION + 300];
    if (pipe2(ends, O_CLOEXEC) != 0)
        FAIL(STATUS_IO, "cannot make a pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0)
        tell_version(folder, library, ends[1]);
    close(ends[1]);
    ssize_t length = child < 0 ? 0 : read(ends[0], said, sizeof said - 1);
    close(ends[0]);
    if (child < 0)
        FAIL(STATUS_IO, "cannot start a process: %s", strerror(errno));
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR)
        ;
    if (length <= 0)
        FAIL(STATUS_UNSUPPORTED, "its library cannot be loaded on this machine: it ends with %s",
             WIFSIGNALED(ended) ? strsignal(WTERMSIG(ended)) : "an error");
    said[length] = '\0';
    if (said[0] != 'v')
        FAIL(STATUS_UNSUPPORTED, "%s", said + 1);
    snprintf(text, LAUNCHER_VERSION, "%.*s", LAUNCHER_VERSION - 1, said + 1);
    return STATUS_OK;
}

/* Open MPI loads parts of its own, which find its symbols only when all can see them. */
enum status launcher_plugin(const char *folder, const char *library, const struct comm_plugin **out)
{
    void *handle;
    TRY(load(folder, library, RTLD_GLOBAL, &handle, out));
    (*out)->share(status_last);
    return STATUS_OK;
}

/* Ranks that MPI does not join would each do the work of all, as under srun without --mpi. */
static enum status check_world(const struct launcher *launch, struct comm **comm)
{
    const size_t kind = find_kind(launch->library);
    const int rank = (*comm)->rank, size = (*comm)->size;
    if (rank == launch->rank && size == launch->size)
        return STATUS_OK;
    comm_close(*comm);
    *comm = NULL;
    FAIL(STATUS_INPUT,
         "%s says that this is rank %d of %d, but %s found rank %d of %d, expected the same: start "
         "prony by %s",
         launch->by, launch->rank, launch->size, kinds[kind].name, rank, size, kinds[kind].starts);
}

enum status launcher_open(const char *folder, const struct launcher *launch, struct comm **out)
{
    const struct comm_plugin *plugin;
    enum status status = launcher_plugin(folder, launch->library, &plugin);
    if (status != STATUS_OK)
        return status_prefix(status, "started as rank %d of %d (%s)", launch->rank, launch->size,
                             launch->by);
    TRY(plugin->open(out));
    return check_world(launch, out);
}
