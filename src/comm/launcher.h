/* launcher.h: ranks that somebody else started: mpirun, mpiexec or srun.
 *
 * MPI is a plugin, comm_openmpi.so or comm_mpich.so: the two cannot be called alike. Which one is
 * meant follows from the variables that the launcher leaves in the environment. SimGrid is a plugin
 * of the same kind, which needs no launcher. */
#ifndef PRONY_COMM_LAUNCHER_H
#define PRONY_COMM_LAUNCHER_H

#include "base/arena.h"
#include "core/comm.h"

struct simulator;

struct launcher {
    const char *library; /* "openmpi" or "mpich" */
    const char *by;      /* the variable that says so: "OMPI_COMM_WORLD_SIZE" */
    int rank, size;
};

/* Was this process started as one of several ranks, or of one by such a launcher? */
bool launcher_found(struct launcher *out);

/* What the plugin exports, as the data symbol `prony_plugin`. */
struct comm_plugin {
    int abi; /* COMM_ABI */
    const char *name;
    const char *version;                             /* of MPI's headers: "Open MPI 4.1.4" */
    void (*share)(struct error *(*host_last)(void)); /* status_share of the plugin's copy */
    enum status (*open)(struct comm **out);          /* the world's end, once in a process */
    const struct simulator *simulator;               /* of comm_simgrid.so (simulator.h), or NULL */
};

/* The plugin in `folder`, the executable's, or folder/../lib/prony. It stays loaded.
 * STATUS_UNSUPPORTED with what to install where it is not there. */
enum status launcher_plugin(const char *folder, const char *library,
                            const struct comm_plugin **out);
/* The version of a library whose plugin is there and can be loaded, for those who only ask; text
 * holds LAUNCHER_VERSION bytes. */
enum { LAUNCHER_VERSION = 64 };
enum status launcher_version(const char *folder, const char *library, char *text);
/* Opens the world of the launcher that launcher_found. STATUS_INPUT on every rank where MPI finds
 * another one. */
enum status launcher_open(const char *folder, const struct launcher *launch, struct comm **out);

#endif
