/* sharing.c: see sharing.h. */
#include "train/workers/sharing.h"

#include <string.h>

static const struct {
    const char *name;
    enum parallelism parallelism;
    bool copied;
} ways[] = {
    {"data", PARALLEL_DATA, false},
    {"model", PARALLEL_MODEL, false},
    {"pipeline", PARALLEL_PIPELINE, false},
    {"data-model", PARALLEL_MODEL, true},
    {"data-pipeline", PARALLEL_PIPELINE, true},
    {"server", PARALLEL_SERVER, false},
    {"async-server", PARALLEL_ASYNC_SERVER, false},
};
enum { WAYS = sizeof ways / sizeof *ways };

const char *sharing_name(const struct sharing *sharing)
{
    int i = 0;
    while (ways[i].parallelism != sharing->parallelism || ways[i].copied != sharing->copied)
        i++;
    return ways[i].name;
}

void sharing_tell(const struct sharing *sharing, int micros, struct text *out)
{
    if (sharing->copied)
        text_printf(out, "%d copies of the network, ", sharing_copies(sharing));
    if (sharing->parallelism == PARALLEL_PIPELINE)
        text_printf(out, "pipeline of %d micro-batches, %s", micros,
                    pipeline_schedule_name(sharing->schedule));
    else
        text_printf(out, sharing->servers ? "%s" : "%s parallel", sharing_name(sharing));
    if (sharing->servers > 1)
        text_printf(out, ", %d of them serve", sharing->servers);
    if (sharing->average == 1)
        text_add(out, ", the mean of parameters after every step");
    else if (sharing->average)
        text_printf(out, ", the mean of parameters every %d steps", sharing->average);
}

static enum status read_parallelism(const char *text, struct sharing *out)
{
    for (int i = 0; i < WAYS; i++)
        if (strcmp(text, ways[i].name) == 0) {
            out->parallelism = ways[i].parallelism;
            out->copied = ways[i].copied;
            return STATUS_OK;
        }
    FAIL(STATUS_INPUT,
         "--parallelism: found '%s', expected data, model, pipeline, data-model, data-pipeline, "
         "server or async-server",
         text);
}

enum status sharing_read(const struct sharing_flags *flags, enum parallelism usual,
                         struct sharing *out)
{
    out->parallelism = usual;
    out->copied = false;
    if (flags->parallelism)
        TRY(read_parallelism(flags->parallelism, out));
    if (out->parallelism != PARALLEL_PIPELINE && (flags->schedule || flags->micros))
        FAIL(STATUS_INPUT, "--micro-batches and --pipeline are for --parallelism pipeline");
    if (!out->copied && flags->copies)
        FAIL(STATUS_INPUT, "--copies: found --parallelism %s, expected data-model or data-pipeline",
             sharing_name(out));
    const bool serves =
        out->parallelism == PARALLEL_SERVER || out->parallelism == PARALLEL_ASYNC_SERVER;
    if (flags->servers && !serves)
        FAIL(STATUS_INPUT, "--servers: found --parallelism %s, expected server or async-server",
             sharing_name(out));
    if (flags->schedule)
        TRY(pipeline_schedule_read(flags->schedule, &out->schedule));
    out->micros = (int32_t)flags->micros;
    out->copies = (int32_t)flags->copies;
    out->servers = !serves ? 0 : flags->servers ? (int32_t)flags->servers : 1;
    return STATUS_OK;
}

/* The fewest workers, two or more, that all of them can be grouped by. */
static int least_group(int workers)
{
    int group = 2;
    while (group < workers && workers % group)
        group++;
    return group;
}

int sharing_copies_of(const struct sharing *sharing, int workers)
{
    if (sharing->parallelism == PARALLEL_DATA)
        return workers;
    if (!sharing->copied)
        return 1;
    return sharing->copies ? sharing->copies : workers / least_group(workers);
}

int sharing_copies(const struct sharing *sharing)
{
    return sharing_copies_of(sharing, sharing_workers(sharing));
}

int sharing_parts(const struct sharing *sharing)
{
    return sharing_workers(sharing) / sharing_copies(sharing);
}

int sharing_copy(const struct sharing *sharing)
{
    return sharing->comm ? sharing->comm->rank / sharing_parts(sharing) : 0;
}

int sharing_samples(const struct sharing *sharing)
{
    return sharing_serves(sharing) ? sharing->comm->size - sharing->servers
                                   : sharing_copies(sharing);
}

enum status sharing_check(const struct sharing *sharing, int workers, const char *name,
                          int64_t batch)
{
    const int least = workers / least_group(workers);
    if (!sharing->copied)
        return STATUS_OK;
    if (least < 2)
        FAIL(STATUS_INPUT,
             "--parallelism %s: found %d worker%s, expected two copies of the network or more, of "
             "two workers or more each: --workers 4, or --parallelism data",
             sharing_name(sharing), workers, workers == 1 ? "" : "s");
    if (sharing->copies &&
        (workers % sharing->copies || sharing->copies < 2 || workers / sharing->copies < 2))
        FAIL(STATUS_INPUT,
             "--copies: found %d for %d workers, expected two copies or more, of two workers or "
             "more each: --copies %d",
             sharing->copies, workers, least);
    const int copies = sharing_copies_of(sharing, workers);
    if (batch % copies)
        FAIL(STATUS_INPUT,
             "%s: found batches of %lld samples and %d copies of the network, expected as many "
             "samples for each: --batch %lld",
             name, (long long)batch, copies, (long long)(batch / copies + 1) * copies);
    return STATUS_OK;
}

enum status sharing_check_servers(const struct sharing *sharing, int workers)
{
    if (sharing->servers && sharing->servers >= workers)
        FAIL(STATUS_INPUT,
             "--parallelism %s: found %d %s, expected at least %d, since %d of them %s: "
             "--workers %d",
             sharing_name(sharing), workers, workers == 1 ? "worker" : "workers",
             sharing->servers + 1, sharing->servers, sharing->servers == 1 ? "serves" : "serve",
             sharing->servers + 1);
    return STATUS_OK;
}
