/* job_peer.h: a job that is another framework, in a child process behind a line protocol
 * (docs/peers.md). It knows nothing of networks: what the peer is asked, and whether its answer to
 * the check is right, comes from the caller. */
#ifndef PRONY_BENCH_PEER_JOB_PEER_H
#define PRONY_BENCH_PEER_JOB_PEER_H

#include "base/arena.h"
#include "bench/peer/child.h"
#include "core/job.h"

#include <sys/types.h>

/* Processes that have done their work and wait for more, and what is known of executables. Starting
 * one takes seconds (PyTorch on a GPU about six), often longer than what is measured. A zeroed
 * struct is empty. */
enum { PEER_BANK = 4 };
struct peer_bank {
    struct peer_kept {
        char *path;
        struct child child;
    } list[PEER_BANK];
    int count;
    struct arena arena; /* of what follows */
    struct peer_asked {
        const char *path;
        bool is_prony;
        struct peer_asked *next;
    } * asked; /* executables that were asked what they are */
    struct peer_absent {
        const char *path, *reason;
        struct peer_absent *next;
    } * absent; /* those that cannot be started here */
};
void peer_bank_close(struct peer_bank *bank);

/* Why the executable cannot be started; NULL where nobody found that yet. */
const char *peer_bank_absent(const struct peer_bank *bank, const char *path);
/* Keeps the reason, for whoever would start it again. */
enum status peer_bank_leave_out(struct peer_bank *bank, const char *path, const char *reason);

/* Is the executable another prony, which has our backends? It is started and asked, once. Who
 * cannot say is not, and its record tells why. */
enum status peer_bank_is_prony(struct peer_bank *bank, const char *path, bool *out);

/* What a peer that is another prony was asked for on an axis. */
struct peer_axis {
    const char *key;
    char value[32];
};

enum { PEER_CHECKS = 2, PEER_AXES = 8 };
struct peer_work {
    const char *path;                 /* the executable */
    int64_t workers;                  /* processes that it is told to be, unless one */
    const char *prepare;              /* the request lines, as docs/peers.md has them */
    struct peer_axis axes[PEER_AXES]; /* … of prepare: what must come back; key NULL: no more */
    const char *checks[PEER_CHECKS];  /* asked one after the other; NULL: no more */
    /* Compares the answers to the checks with what they should be, as job_kind's check does. */
    enum status (*compare)(void *context, const struct json *const *answers, double *error);
    /* Writes the network as ONNX, where the request says; asked when the peer reads that. */
    enum status (*export)(void *context);
    void *context;          /* of both */
    bool exactly;           /* a run is the iterations that it is asked for, without one before to
                               warm up: each is a call that somebody waits for */
    uint64_t patience_ns;   /* the longest that one request may take */
    uint64_t search_ns;     /* prepare may take so much longer, for a search of settings */
    bool (*stopped)(void);  /* asked while it is waited for: STATUS_INTERRUPTED when it says so; or
                               NULL */
    struct peer_bank *bank; /* where its process comes from and goes to, or NULL: a new one */
};

/* The texts and the context must outlive the job. Starts nothing yet. */
enum status job_peer_open(const struct peer_work *work, struct job **out);

/* Starts the executable, only to ask what it is: appends "python 3.11.2, numpy 1.24.2". */
enum status job_peer_probe(const char *path, struct text *out);

/* From now on a run is the iterations that it is asked for and no other: what is counted is theirs.
 */
void job_peer_run_exactly(struct job *job);

/* Did it say what it is? Whoever did not is no peer on this machine, whatever it was to compute. */
bool job_peer_answered(const struct job *job);

/* Asks what its layers take in so many iterations, watched: the answer, in the arena. */
enum status job_peer_profile(struct job *job, int64_t iterations, struct arena *arena,
                             const struct json **out);

/* What the workers of such a process said that communication took, of an iteration: false where
 * nobody said anything. */
struct peer_traffic {
    double exposed_ns, hidden_ns, sent_bytes;
    double staleness,
        staleness_most; /* of gradients, in updates; below 0: there is no such thing */
};
bool job_peer_traffic(const struct job *job, struct peer_traffic *out);

/* The process, for the meters; 0 before prepare. */
pid_t job_peer_process(const struct job *job);

#endif
