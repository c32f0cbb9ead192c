/* calibrate_unit.c: ceilings of units that are no CPU, by their backends' bursts. A GPU has nobody
 * beside us: a short look is enough, and what is known is looked for again only in doubt. */
#include "estimate/calibrate.h"

#include <stdio.h>
#include <string.h>

static const uint64_t UNIT_LOOK_NS = 20000000, UNIT_AGAIN_NS = 200000000;
static const uint64_t UNIT_SET_LEAST = (uint64_t)1 << 24; /* smaller ones are as fast */
static const uint64_t UNIT_SET_MOST = (uint64_t)1 << 30;

void unit_name(const struct backend *backend, const struct device *device, char out[CEILING_UNIT])
{
    struct device_info info;
    backend->describe(device, &info);
    snprintf(out, CEILING_UNIT, "%s", info.name[0] ? info.name : backend->name);
}

void calibration_close_unit(struct calibration *calibration)
{
    if (calibration->unit.device)
        calibration->unit.backend->close(calibration->unit.device);
    calibration->unit.device = NULL;
    calibration->unit.backend = NULL;
}

static enum status open_unit(struct calibration *calibration, const struct backend *backend)
{
    const struct device_options usual = {.isa = ISA_BEST};
    if (calibration->unit.backend == backend)
        return STATUS_OK;
    calibration_close_unit(calibration);
    if (!backend->burst)
        FAIL(STATUS_UNSUPPORTED, "the backend %s cannot be calibrated", backend->name);
    TRY(backend->probe());
    TRY(backend->open(&usual, &calibration->unit.device));
    calibration->unit.backend = backend;
    unit_name(backend, calibration->unit.device, calibration->unit.name);
    return STATUS_OK;
}

/* One ceiling of the opened unit, looked for where it is not known, and for `least_ns` anyway. */
static enum status find_ceiling(struct calibration *calibration, enum ceiling ceiling,
                                uint64_t set_bytes, uint64_t least_ns, double *per_s)
{
    struct ceiling_row like = {.ceiling = ceiling, .set_bytes = set_bytes};

    memcpy(like.unit, calibration->unit.name, sizeof like.unit);
    const struct ceiling_row *known = calibration_find(calibration, &like);
    uint64_t limit_ns = known ? least_ns : UNIT_LOOK_NS + least_ns;
    if (limit_ns) {
        like.spent_ns = (known ? known->spent_ns : 0) + (double)limit_ns;
        TRY(calibration->unit.backend->burst(calibration->unit.device, ceiling_name(ceiling),
                                             set_bytes, limit_ns, &like.per_s));
        TRY(calibration_merge(calibration, &like));
        calibration->changed = true;
    }
    *per_s = calibration_best(calibration, &like);
    return STATUS_OK;
}

enum status calibrate_unit(struct calibration *calibration, const struct backend *backend,
                           const char *precision, uint64_t set_bytes, bool again,
                           struct ceilings *out)
{
    const uint64_t least_ns = again ? UNIT_AGAIN_NS : 0;
    enum ceiling flop = CEILING_FP32;
    double launches;

    TRY(open_unit(calibration, backend));
    if (precision && precision[0] && (!ceiling_parse(precision, &flop) || !ceiling_is_flop(flop)))
        FAIL(STATUS_UNSUPPORTED, "%s has no ceiling in %s", calibration->unit.name, precision);
    set_bytes = calibration_set(set_bytes);
    *out = (struct ceilings){.set_bytes = set_bytes < UNIT_SET_LEAST ? UNIT_SET_LEAST : set_bytes};
    TRY(find_ceiling(calibration, flop, 0, least_ns, &out->flop_per_s));
    TRY(find_ceiling(calibration, CEILING_READ, out->set_bytes, least_ns, &out->read_per_s));
    TRY(find_ceiling(calibration, CEILING_UPDATE, out->set_bytes, least_ns, &out->update_per_s));
    TRY(find_ceiling(calibration, CEILING_LAUNCH, 0, 0, &launches));
    out->launch_ns = 1e9 / launches;
    return STATUS_OK;
}

/* All of one kind. A precision that the unit has not is left out. */
static enum status find_all(struct calibration *calibration, enum ceiling ceiling)
{
    uint64_t set = ceiling_is_memory(ceiling) ? UNIT_SET_LEAST : 0;
    double per_s;
    do {
        enum status status = find_ceiling(calibration, ceiling, set, UNIT_LOOK_NS, &per_s);
        if (status != STATUS_OK)
            return status == STATUS_UNSUPPORTED ? STATUS_OK : status;
        set = set ? calibration_set(set + set / 2) : UNIT_SET_MOST;
    } while (set < UNIT_SET_MOST);
    return STATUS_OK;
}

enum status calibrate_unit_all(struct calibration *calibration, const struct backend *backend,
                               bool (*progress)(double share))
{
    TRY(open_unit(calibration, backend));
    for (int ceiling = 0; ceiling < CEILING_COUNT; ceiling++) {
        if (progress && !progress((double)ceiling / CEILING_COUNT))
            FAIL(STATUS_INTERRUPTED, "stopped");
        TRY(find_all(calibration, (enum ceiling)ceiling));
    }
    return STATUS_OK;
}

enum status yardstick_read(const struct yardstick *yardstick, uint64_t set_bytes, bool again,
                           struct ceilings *out)
{
    struct calibration *calibration = yardstick->calibration;
    if (yardstick->backend)
        return calibrate_unit(calibration, yardstick->backend, yardstick->precision, set_bytes,
                              again, out);
    return calibrate(calibration, yardstick->threads, yardstick->precision, set_bytes, again, out);
}
