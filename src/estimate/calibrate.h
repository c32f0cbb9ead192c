/* calibrate.h: what this machine's units can do at best: the ceilings that floors are made of.
 *
 * Each ceiling is the best of short bursts (bursts.h) for one ISA, number of threads and, of
 * memory, size of pages and of the working set. Other processes, the host of a virtual machine and
 * its other guests can only make a burst slower, so the best one ever seen is kept, in a file of
 * the user's cache folder, and every run that needs a ceiling looks again for a moment until enough
 * time has gone into it. */
#ifndef PRONY_ESTIMATE_CALIBRATE_H
#define PRONY_ESTIMATE_CALIBRATE_H

#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "core/backend.h"
#include "estimate/bursts.h"

#include <stdint.h>

enum pages { PAGES_4K, PAGES_2M, PAGES_COUNT };
const char *pages_name(enum pages pages); /* "4k", "2m": as the axis pages has them */

enum { CEILING_UNIT = 64 }; /* room for a unit's name */

/* One ceiling. */
struct ceiling_row {
    enum ceiling ceiling;
    enum isa isa;
    int threads;
    enum pages pages;        /* of memory only */
    uint64_t set_bytes;      /* the working set; 0 for FLOP */
    double per_s;            /* FLOP, bytes or launches */
    double spent_ns;         /* how long it was looked for, in all */
    char unit[CEILING_UNIT]; /* "NVIDIA H200", which has no isa, threads and pages; "": the CPU */
};

/* A zeroed struct is ready, and knows nothing; freed by calibration_free. One thread at a time. */
struct calibration {
    struct ceiling_row *rows;
    size_t count, room;
    bool changed; /* since it was read or kept */
    struct {
        const struct backend *backend;
        struct device *device;
        char name[CEILING_UNIT];
    } unit; /* the one that was asked last and is no CPU; it stays open: opening takes long */
};
void calibration_free(struct calibration *calibration);
/* The row for this very ceiling, or NULL. */
struct ceiling_row *calibration_find(const struct calibration *calibration,
                                     const struct ceiling_row *like);
/* Takes a ceiling that was found elsewhere, where it is higher. */
enum status calibration_merge(struct calibration *calibration, const struct ceiling_row *found);

/* The highest that is known for it: what was seen with older instructions, fewer threads, smaller
 * pages or a larger working set can be done here too. 0 when nothing is known. */
double calibration_best(const struct calibration *calibration, const struct ceiling_row *like);

/* What a floor needs: of the best ISA, in fp32, on 2 MB pages where the system gives them; of a
 * GPU, in the precision asked for. */
struct ceilings {
    int threads;
    uint64_t set_bytes; /* the working set it was measured with */
    double flop_per_s;
    double read_per_s;   /* bytes read */
    double update_per_s; /* bytes read plus bytes written, in place */
    double launch_ns;    /* what starting something takes: shorter floors are latency; CPU: 0 */
};

/* For as many threads as there are cores at most. `precision` is as the axis has it, or NULL for
 * fp32, which is also what a CPU computes in that has no instructions for another. `set_bytes` is
 * taken within 16 KB … 1 GB and rounded down a little, which can only raise the ceiling. `again`
 * looks longer: something was faster than these ceilings allow. STATUS_UNSUPPORTED in a build that
 * is not optimised. */
enum status calibrate(struct calibration *calibration, int threads, const char *precision,
                      uint64_t set_bytes, bool again, struct ceilings *out);

/* Everything: peaks of every ISA and precision, and the curves over the working set for each
 * pattern and size of pages, for 1, 2, 4 … threads. `progress` (or NULL) is told how far it is,
 * from 0 to 1, and ends it by answering false. */
enum status calibrate_all(struct calibration *calibration, bool (*progress)(double share));

/* The same two for a unit that is no CPU, by its backend's bursts (backend.h). */
enum status calibrate_unit(struct calibration *calibration, const struct backend *backend,
                           const char *precision, uint64_t set_bytes, bool again,
                           struct ceilings *out);
enum status calibrate_unit_all(struct calibration *calibration, const struct backend *backend,
                               bool (*progress)(double share));
void calibration_close_unit(struct calibration *calibration);
/* What the unit is called: "NVIDIA H200"; its backend's name where it does not say. */
void unit_name(const struct backend *backend, const struct device *device, char out[CEILING_UNIT]);

/* Whose ceilings: those of so many threads of the CPU or, with a backend, of its unit. */
struct yardstick {
    struct calibration *calibration;
    int threads;
    const struct backend *backend; /* NULL: the CPU */
    const char *precision;         /* NULL is fp32 */
};
enum status yardstick_read(const struct yardstick *yardstick, uint64_t set_bytes, bool again,
                           struct ceilings *out);

/* `set_bytes` as calibrations have it: within 16 KB … 1 GB, rounded down to four binary digits and
 * the leading one. */
uint64_t calibration_set(uint64_t set_bytes);

/* All rows, as an object, each with the highest that is known for it (calibration_best): a row by
 * itself was looked at in moments of its own, and a busy one would show as a dent that is none. */
void calibration_write(const struct calibration *calibration, struct json_writer *writer);

/* Takes the rows of the file, which are of this CPU, where they are higher; a file that is not
 * there, or of another CPU, is no error. */
enum status calibration_read(struct calibration *calibration, const char *path);
/* Puts the rows into the file, whole or not at all, with those that others put there meanwhile. */
enum status calibration_keep(struct calibration *calibration, const char *path);
/* The file in the user's cache folder; appended. */
enum status calibration_path(struct text *out);

#endif
