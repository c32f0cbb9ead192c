/* cmd_comm.c: prony comm: how fast ranks sum their gradients, by every transport and way there is.
 *
 * Ranks are threads or processes that are started here; under mpirun this process is one of them,
 * and rank 0 prints. */
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "bench/comm/reduce_bench.h"
#include "cli/commands.h"
#include "cli/table/show_figure.h"
#include "cli/table/show_table.h"
#include "cli/table/wrap.h"
#include "cli/training/workers.h"
#include "comm/launcher.h"
#include "comm/shm.h"
#include "comm/threads.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct comm_flags {
    const char *workers, *bytes, *transport;
    double seconds, patience;
    bool json;
};

/* What ranks see; `rows` is in memory that forked processes share with us. */
struct comm_trial {
    struct reduce_request request;
    uint64_t patience_ns;
    struct reduce_rows *rows;
};

/* ---- what was asked for ---- */

/* Calls `read` with each word of "a,b,c". */
static enum status read_words(const char *option, const char *list,
                              enum status (*read)(const char *word, void *context), void *context)
{
    char word[32];
    for (const char *at = list;; at++) {
        const size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof word)
            FAIL(STATUS_INPUT, "--%s: found '%s', expected values with commas between them", option,
                 list);
        memcpy(word, at, length);
        word[length] = 0;
        TRY(read(word, context));
        at += length;
        if (!*at)
            return STATUS_OK;
    }
}

/* "4k", "1M", "50000000": bytes, in thousands. */
static enum status read_bytes(const char *word, void *context)
{
    static const char units[] = "kMG";
    struct reduce_request *request = context;
    char digits[32];
    size_t length = strlen(word);
    double scale = 1, value;
    memcpy(digits, word, length + 1);
    const char *unit = strchr(units, word[length - 1]);
    if (unit) {
        digits[length - 1] = 0;
        scale = pow(1000, (double)(unit - units + 1));
    }
    if (!text_to_real(digits, &value) || !(value * scale >= 4 && value * scale <= 4e9))
        FAIL(STATUS_INPUT, "--bytes: found '%s', expected 4 to 4G, such as 4k or 50M", word);
    if (request->size_count == REDUCE_SIZES)
        FAIL(STATUS_INPUT, "--bytes: at most %d sizes", REDUCE_SIZES);
    request->sizes[request->size_count++] = (size_t)(value * scale);
    return STATUS_OK;
}

struct numbers {
    int list[16], count;
};

static enum status read_workers(const char *word, void *context)
{
    struct numbers *numbers = context;
    int64_t value;
    if (!text_to_int(word, &value) || value < 1 || value > 64)
        FAIL(STATUS_INPUT, "--workers: found '%s', expected 1 to 64", word);
    if (numbers->count == 16)
        FAIL(STATUS_INPUT, "--workers: at most 16 numbers");
    numbers->list[numbers->count++] = (int)value;
    return STATUS_OK;
}

static const struct {
    const char *name;
    enum status (*run)(int size, comm_main *main, void *context);
} transports[] = {{"threads", threads_run}, {"shm", shm_run}};
enum { TRANSPORTS = sizeof transports / sizeof *transports };

static enum status read_transport(const char *word, void *context)
{
    bool *wanted = context;
    for (int i = 0; i < TRANSPORTS; i++)
        if (strcmp(word, transports[i].name) == 0) {
            wanted[i] = true;
            return STATUS_OK;
        }
    FAIL(STATUS_INPUT,
         "--transport: found '%s', expected threads or shm; MPI: mpirun -n 2 prony comm", word);
}

/* ---- what is printed ---- */

static void print_json(const struct reduce_rows *rows)
{
    for (int i = 0; i < rows->count; i++) {
        const struct reduce_row *row = &rows->rows[i];
        struct text text = {0};
        struct json_writer writer;
        json_begin(&writer, &text);
        json_object(&writer);
        json_key(&writer, "transport"), json_add_text(&writer, row->transport);
        json_key(&writer, "way"), json_add_text(&writer, row->way);
        json_key(&writer, "workers"), json_add_int(&writer, row->ranks);
        json_key(&writer, "bytes"), json_add_uint(&writer, row->bytes);
        json_key(&writer, "median_ns"), json_add_figure(&writer, row->median_ns);
        json_key(&writer, "mean_ns"), json_add_figure(&writer, row->mean_ns);
        json_key(&writer, "min_ns"), json_add_figure(&writer, row->min_ns);
        json_key(&writer, "bound_ns"), json_add_figure(&writer, row->bound_ns);
        json_key(&writer, "rounds"), json_add_int(&writer, row->rounds);
        json_key(&writer, "chosen"), json_add_bool(&writer, row->chosen);
        json_key(&writer, "right"), json_add_bool(&writer, row->right);
        json_end(&writer);
        puts(text_of(&text));
        text_free(&text);
    }
}

enum { CELLS = 8, LATENCY_BYTES = 256 * 1024 }; /* below it latency counts, not the bytes */

static void add_row(struct show_table *table, const struct reduce_row *row)
{
    struct text cells[CELLS] = {0};
    const char *shown[CELLS];
    text_add(&cells[0], row->transport);
    text_printf(&cells[1], "%d", row->ranks);
    show_scaled(&cells[2], (double)row->bytes, "B");
    text_printf(&cells[3], "%s%s", row->way, row->chosen ? " *" : "");
    show_time(&cells[4], row->median_ns);
    show_time(&cells[5], row->min_ns);
    if (row->ranks > 1 && row->bytes >= LATENCY_BYTES)
        text_printf(&cells[6], "%.2f", row->median_ns / row->bound_ns);
    else
        text_add(&cells[6], "–");
    text_add(&cells[7], row->right ? "correct" : "wrong");
    for (int i = 0; i < CELLS; i++)
        shown[i] = text_of(&cells[i]);
    show_table_row(table, shown);
    for (int i = 0; i < CELLS; i++)
        text_free(&cells[i]);
}

static enum status print_table(const struct reduce_rows *rows)
{
    struct show_table table = {.width = wrap_screen()};
    struct text out = {0};
    text_add(&table.title, "All-reduce of f32, the ways in turns");
    show_table_column(&table, "transport", SHOW_LEFT, SHOW_ALWAYS, 0);
    show_table_column(&table, "workers", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(&table, "size", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(&table, "way", SHOW_LEFT, SHOW_ALWAYS, 0);
    show_table_column(&table, "time", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(&table, "best", SHOW_RIGHT, 30, 0);
    show_table_column(&table, "× copying", SHOW_RIGHT, 50, 0);
    show_table_column(&table, "result", SHOW_LEFT, 40, 0);
    for (int i = 0; i < rows->count; i++)
        add_row(&table, &rows->rows[i]);
    show_table_foot(&table, "* the way that training takes at this size");
    show_table_foot(&table, "1 × copying: all workers at once copy 2 (P − 1) ÷ P of the bytes, in "
                            "the same run");
    show_table_print(&table, &out);
    enum status status = show_table_done(&table);
    fputs(text_of(&out), stdout);
    text_free(&out);
    show_table_free(&table);
    return status;
}

static enum status print_rows(const struct reduce_rows *rows, bool json)
{
    if (json)
        print_json(rows);
    else
        TRY(print_table(rows));
    for (int i = 0; i < rows->count; i++)
        if (!rows->rows[i].right)
            FAIL(STATUS_WRONG, "%s over %s: the sum is wrong", rows->rows[i].way,
                 rows->rows[i].transport);
    return STATUS_OK;
}

/* ---- runs ---- */

static enum status measure(struct comm *comm, void *context)
{
    const struct comm_trial *trial = context;
    comm->patience_ns = trial->patience_ns;
    return reduce_bench(comm, &trial->request, trial->rows);
}

static enum status run_launched(const struct cli *cli, const struct launcher *launcher,
                                struct comm_trial *trial, bool json)
{
    struct comm *comm;
    if (args_given(cli->args, &cli->found, "workers") ||
        args_given(cli->args, &cli->found, "transport"))
        FAIL(STATUS_INPUT,
             "%s says that %d ranks were started: leave out --workers and "
             "--transport, or start prony without it",
             launcher->by, launcher->size);
    TRY(worker_join(cli->folder, launcher, &comm));
    enum status status = measure(comm, trial);
    if (status == STATUS_OK && comm->rank == 0)
        status = print_rows(trial->rows, json);
    comm_close(comm);
    return status;
}

static enum status run_here(const struct comm_flags *flags, struct comm_trial *trial)
{
    struct numbers workers = {0};
    bool wanted[TRANSPORTS] = {0};
    TRY(read_words("workers", flags->workers, read_workers, &workers));
    TRY(read_words("transport", flags->transport, read_transport, wanted));
    for (int i = 0; i < TRANSPORTS; i++)
        for (int k = 0; k < workers.count && wanted[i] && !cli_interrupted(); k++)
            TRY(transports[i].run(workers.list[k], measure, trial));
    if (cli_interrupted())
        FAIL(STATUS_INTERRUPTED, "interrupted");
    return print_rows(trial->rows, flags->json);
}

static enum status run_comm(struct cli *cli, void *options)
{
    const struct comm_flags *flags = options;
    struct launcher launcher;
    struct comm_trial trial = {.request = {.seconds = flags->seconds, .stopped = cli_interrupted},
                               .patience_ns = (uint64_t)(flags->patience * 1e9)};
    TRY(read_words("bytes", flags->bytes, read_bytes, &trial.request));
    trial.rows =
        mmap(NULL, sizeof *trial.rows, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (trial.rows == MAP_FAILED)
        FAIL(STATUS_MEMORY, "out of memory");
    enum status status = launcher_found(&launcher)
                             ? run_launched(cli, &launcher, &trial, flags->json)
                             : run_here(flags, &trial);
    munmap(trial.rows, sizeof *trial.rows);
    return status;
}

static const struct arg rows[] = {
    {ARG(struct comm_flags, workers), "N,…", "how many ranks (2)", .otherwise = "2"},
    {ARG(struct comm_flags, bytes), "SIZE,…", "bytes of a gradient (4k,1M,50M)",
     .otherwise = "4k,1M,50M"},
    {ARG(struct comm_flags, transport), "NAME,…", "threads, shm (both)",
     .otherwise = "threads,shm"},
    {ARG(struct comm_flags, seconds), "S", "for each size (0.5)", ARG_FROM(0, 3600),
     .otherwise = "0.5"},
    {ARG(struct comm_flags, patience), "S", "a rank that is silent for so long has failed (60)",
     ARG_FROM(0.1, 86400), .otherwise = "60"},
    {ARG(struct comm_flags, json), NULL, "one JSON object a line"},
    ARG_END,
};

const struct command cmd_comm = {
    .summary = "measure how fast workers sum their gradients",
    .run = run_comm,
    .bytes = sizeof(struct comm_flags),
    .args = {.command = "prony comm",
             .usage = "[--workers N,…] [--bytes SIZE,…] [--transport NAME,…]",
             .summary = "Measures the all-reduce that data parallelism needs: every way of it, in "
                        "turns, beside a copy of as\nmany bytes. Under mpirun the ranks are those "
                        "that it started, and MPI_Allreduce is one of the ways.",
             .examples = "  prony comm                                  # 2 workers, this machine\n"
                         "  prony comm --workers 2,4 --bytes 50M        # the size of a gradient\n"
                         "  mpirun -n 2 prony comm                      # over MPI\n",
             .lists = {{rows, 0}}},
};
