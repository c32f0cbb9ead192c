/* launched.h: the world of the launcher (mpirun) that started this very test. */
#ifndef PRONY_TESTS_LAUNCHED_H
#define PRONY_TESTS_LAUNCHED_H

#include "check.h"
#include "comm/launcher.h"

#include <string.h>
#include <unistd.h>

/* NULL: none did. The plugins lie in the folder above the tests'. MPI can be begun once, so that a
 * script names one test each time. */
static inline struct comm *open_launched(void)
{
    struct launcher launch;
    struct comm *comm = NULL;
    char folder[4096];
    if (!launcher_found(&launch)) {
        check_skip("mpirun did not start this test; tests/comm/mpirun.sh does");
        return NULL;
    }
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 4);
    if (!CHECK(length > 0))
        return NULL;
    folder[length] = 0;
    memcpy(strrchr(folder, '/'), "/..", sizeof "/..");
    if (!CHECK_OK(launcher_open(folder, &launch, &comm)))
        return NULL;
    CHECK_EQUAL_INT(comm->rank, launch.rank);
    CHECK_EQUAL_INT(comm->size, launch.size);
    CHECK_EQUAL_TEXT(comm->transport->name, launch.library);
    return comm;
}

#endif
