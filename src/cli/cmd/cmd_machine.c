/* cmd_machine.c: prony machine: what this machine is, and what can be measured on it. */
#include "agent/cupti_find.h"
#include "base/arena.h"
#include "base/memory.h"
#include "bench/meter/meters.h"
#include "bench/meter/passes.h"
#include "bench/peer/job_peer.h"
#include "bench/peer/peers.h"
#include "cli/commands.h"
#include "cli/peer_folder.h"
#include "cli/program/agents.h"
#include "cli/progress.h"
#include "cli/table/show_table.h"
#include "cli/table/wrap.h"
#include "comm/launcher.h"
#include "estimate/calibration_kept.h"
#include "record/facts.h"
#include "record/title.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Something that is there or not, and why not. */
struct ability {
    const char *name;
    const char *about;  /* unit, version … or "" */
    const char *reason; /* NULL: available */
};

struct abilities {
    struct ability *list;
    size_t count;
};

static enum status find_backends(const struct registry *registry, struct arena *arena,
                                 struct abilities *out)
{
    NEED(out->list = arena_array(arena, REGISTRY_MOST, sizeof *out->list));
    for (int i = 0; i < registry->count; i++) {
        const struct backend *backend = registry->list[i].backend;
        struct ability *ability = &out->list[out->count++];
        *ability = (struct ability){registry->list[i].name, backend ? backend->unit : "",
                                    registry->list[i].problem};
        if (backend && backend->probe() != STATUS_OK)
            NEED(ability->reason = arena_text(arena, status_message()));
    }
    return STATUS_OK;
}

/* The first backend there is that computes on the unit of number i's; several may. */
static bool is_first(const struct registry *registry, int i)
{
    const struct backend *backend = registry->list[i].backend;
    if (!backend || backend->probe() != STATUS_OK)
        return false;
    for (int k = 0; k < i; k++) {
        const struct backend *other = registry->list[k].backend;
        if (other && strcmp(other->unit, backend->unit) == 0 && other->probe() == STATUS_OK)
            return false;
    }
    return true;
}

/* A unit beside the CPU, as its backend describes it. */
struct unit {
    const char *kind; /* "gpu" */
    struct device_info info;
};

static void find_units(const struct registry *registry, struct unit list[REGISTRY_MOST], int *count)
{
    const struct device_options usual = {.isa = ISA_BEST};
    for (int i = 0; i < registry->count; i++) {
        const struct backend *backend = registry->list[i].backend;
        struct device *device;
        if (!is_first(registry, i) || strcmp(backend->unit, "cpu") == 0 ||
            backend->open(&usual, &device) != STATUS_OK)
            continue; /* the list of backends says why */
        list[*count].kind = backend->unit;
        backend->describe(device, &list[(*count)++].info);
        backend->close(device);
    }
}

static enum status find_frameworks(const char *folder, struct arena *arena, struct abilities *out)
{
    const char *const *names;
    size_t count;
    struct text about = {0};
    enum status status = STATUS_OK;

    TRY(peers_list(folder, arena, &names, &count));
    NEED(out->list = arena_array(arena, count + 1, sizeof *out->list));
    for (size_t i = 0; i < count; i++) {
        struct ability *ability = &out->list[out->count++];
        const char *path;
        *ability = (struct ability){.name = names[i], .about = ""};
        text_clear(&about);
        if (peers_find(folder, names[i], arena, &path) != STATUS_OK ||
            job_peer_probe(path, &about) != STATUS_OK)
            NEED_OR(done, ability->reason = arena_text(arena, status_message()));
        else
            NEED_OR(done, ability->about = arena_text(arena, text_of(&about)));
    }
done:
    text_free(&about);
    return status;
}

/* Each meter is tried on this process. */
static enum status find_meters(struct arena *arena, struct abilities *out)
{
    const struct family ours = {.count = 0};
    struct meters meters = {0};
    struct record_meter rows[METERS_COUNT + PASSES_ROWS];
    size_t more;

    meters_begin(&meters, &ours);
    meters_end(&meters, &ours);
    meters_report(&meters, &ours, rows);
    TRY(passes_try(arena, rows + METERS_COUNT, &more));
    NEED(out->list = arena_array(arena, METERS_COUNT + more, sizeof *out->list));
    for (size_t i = 0; i < METERS_COUNT + more; i++)
        if (!strchr(rows[i].name, '.')) /* the calls by name are one meter */
            out->list[out->count++] = (struct ability){rows[i].name, "", rows[i].unavailable};
    return STATUS_OK;
}

/* By what workers talk to each other. */
static enum status find_transports(const char *folder, struct arena *arena, struct abilities *out)
{
    static const char *const libraries[] = {"openmpi", "mpich", "simgrid"};
    NEED(out->list = arena_array(arena, 5, sizeof *out->list));
    out->list[out->count++] = (struct ability){"threads", "workers of one process", NULL};
    out->list[out->count++] = (struct ability){"shm", "processes of this machine", NULL};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        struct ability *ability = &out->list[out->count++];
        char version[LAUNCHER_VERSION];
        *ability = (struct ability){.name = libraries[i], .about = ""};
        if (launcher_version(folder, libraries[i], version) != STATUS_OK)
            NEED(ability->reason = arena_text(arena, status_message()));
        else
            NEED(ability->about = arena_text(arena, version));
    }
    return STATUS_OK;
}

/* What can look into programs. */
static enum status find_watchers(const struct cli *cli, struct arena *arena, struct abilities *out)
{
    static const char absent[] = "found no %s beside prony: make builds it";
    const char *cpu, *gpu;
    char path[PATH_MAX];
    TRY(agent_find(cli, AGENT_OF_CPU, arena, &cpu));
    TRY(agent_find(cli, AGENT_OF_GPU, arena, &gpu));
    NEED(out->list = arena_array(arena, 2, sizeof *out->list));
    struct ability *samples = &out->list[out->count++], *records = &out->list[out->count++];
    *samples = (struct ability){"CPU", "samples", NULL};
    *records = (struct ability){"GPU", "", NULL};
    if (!cpu)
        NEED(samples->reason = arena_format(arena, absent, AGENT_OF_CPU));
    if (!gpu)
        NEED(records->reason = arena_format(arena, absent, AGENT_OF_GPU));
    else if (cupti_look(path, sizeof path))
        NEED(records->about = arena_format(arena, "CUPTI, %s", path));
    else
        records->reason = "found no CUPTI (libcupti.so) of NVIDIA's CUDA toolkit; a program that "
                          "brings its own, as PyTorch does, can be watched";
    return STATUS_OK;
}

/* A table of two columns without headings: a name, and what is said of it. */
static struct show_table start_list(void)
{
    enum { NAME_ROOM = 16, TEXT_LEAST = 20 };
    struct show_table table = {.width = wrap_screen(), .indent = 2};
    show_table_column(&table, "", SHOW_LEFT, SHOW_ALWAYS, NAME_ROOM);
    show_table_flex(&table, show_table_column(&table, "", SHOW_LEFT, SHOW_ALWAYS, 0), TEXT_LEAST);
    return table;
}

static enum status print_list(struct show_table *table)
{
    struct text out = {0};
    show_table_print(table, &out);
    enum status status = show_table_done(table);
    if (status == STATUS_OK)
        status = text_done(&out);
    fputs(text_of(&out), stdout);
    text_free(&out);
    show_table_free(table);
    return status;
}

/* Why something is not there is told once, under its mark. */
static enum status print_abilities(const char *title, const struct abilities *abilities)
{
    struct show_table table = start_list();
    printf("\n%s\n", title);
    for (size_t i = 0; i < abilities->count; i++) {
        const struct ability *ability = &abilities->list[i];
        struct text note = {0}, cell = {0};
        text_printf(&note, "not available: %s", ability->reason ? ability->reason : "");
        if (ability->reason)
            text_printf(&cell, "not available%s", show_table_mark(&table, text_of(&note)));
        else
            text_printf(&cell, "available%s%s", ability->about[0] ? ": " : "", ability->about);
        show_table_row(&table, (const char *const[]){ability->name, text_of(&cell)});
        table.failed |= note.failed || cell.failed;
        text_free(&note);
        text_free(&cell);
    }
    return print_list(&table);
}

/* Lines of a name and what it is, as "  CPU              AMD EPYC"; others stand by themselves. */
static enum status print_facts_list(const struct text *lines)
{
    enum { NAME_FROM = 2, NAME_BYTES = 16 };
    struct show_table table = start_list();
    for (const char *line = text_of(lines); *line;) {
        size_t length = strcspn(line, "\n");
        struct text name = {0}, value = {0};
        bool listed = length > NAME_FROM + NAME_BYTES && line[0] == ' ';
        text_add_bytes(&name, line + (listed ? NAME_FROM : 0), listed ? NAME_BYTES : length);
        if (listed)
            text_add_bytes(&value, line + NAME_FROM + NAME_BYTES + 1,
                           length - NAME_FROM - NAME_BYTES - 1);
        while (name.length && name.data[name.length - 1] == ' ')
            name.data[--name.length] = '\0';
        if (listed)
            show_table_row(&table, (const char *const[]){text_of(&name), text_of(&value)});
        else
            show_table_line(&table, text_of(&name));
        table.failed |= name.failed || value.failed;
        text_free(&name);
        text_free(&value);
        line += length + (line[length] == '\n');
    }
    return print_list(&table);
}

static void write_abilities(const char *key, const struct abilities *abilities,
                            struct json_writer *writer)
{
    json_key(writer, key);
    json_array(writer);
    for (size_t i = 0; i < abilities->count; i++) {
        const struct ability *ability = &abilities->list[i];
        json_object(writer);
        json_put_text(writer, "name", ability->name);
        json_put_text(writer, "about", ability->about);
        json_put_bool(writer, "available", !ability->reason);
        json_put_text(writer, "reason", ability->reason);
        json_end(writer);
    }
    json_end(writer);
}

static void print_size(struct text *text, const char *name, double bytes)
{
    if (bytes > 0) {
        text_printf(text, ", %s ", name);
        text_add_size(text, bytes);
    }
}

/* "  GPU  NVIDIA H200, memory 139.8 GB, …": what it is first, then whatever it tells. */
static void print_unit(struct text *text, const struct unit *unit)
{
    const struct device_info *info = &unit->info;
    text_printf(text, "  %-16s %s", strcmp(unit->kind, "gpu") == 0 ? "GPU" : "unit",
                info->name[0] ? info->name : "unknown");
    print_size(text, "memory", (double)info->memory_bytes);
    print_size(text, "L2", (double)info->l2_bytes);
    if (info->threads)
        text_printf(text, ", %d threads", info->threads);
    if (info->multiprocessors)
        text_printf(text, ", %d multiprocessors", info->multiprocessors);
    if (info->compute_capability[0])
        text_printf(text, ", compute_capability %s", info->compute_capability);
    if (info->driver[0])
        text_printf(text, ", cuda_driver %s", info->driver);
    for (int i = 0; i < DEVICE_SOFTWARE && info->software[i].name; i++)
        text_printf(text, ", %s %s", info->software[i].name, info->software[i].version);
    text_add(text, "\n");
}

static void write_text(struct json_writer *writer, const char *key, const char *value)
{
    if (value && value[0]) {
        json_put_text(writer, key, value);
    }
}

static void write_count(struct json_writer *writer, const char *key, uint64_t count)
{
    if (count) {
        json_put_uint(writer, key, count);
    }
}

static void write_unit(const struct unit *unit, struct json_writer *writer)
{
    const struct device_info *info = &unit->info;
    json_object(writer);
    write_text(writer, "unit", unit->kind);
    write_text(writer, "unit_name", info->name);
    write_count(writer, "threads", (uint64_t)info->threads);
    write_text(writer, "isa", info->isa);
    write_text(writer, "pages", info->pages);
    write_count(writer, "memory_bytes", info->memory_bytes);
    write_count(writer, "multiprocessors", (uint64_t)info->multiprocessors);
    write_count(writer, "l2_bytes", info->l2_bytes);
    write_text(writer, "compute_capability", info->compute_capability);
    write_text(writer, "cuda_driver", info->driver);
    json_key(writer, "software");
    json_object(writer);
    for (int i = 0; i < DEVICE_SOFTWARE && info->software[i].name; i++)
        write_text(writer, info->software[i].name, info->software[i].version);
    json_end(writer);
    json_end(writer);
}

/* "AMD EPYC, 2 cores", and the names that it goes by. */
static enum status add_title(const struct facts *facts, struct text *out)
{
    char title[TITLE_TEXT];
    struct arena arena = {0};
    const struct json *machine, *software;
    enum status status = facts_trees(facts, &arena, &machine, &software);
    if (status == STATUS_OK)
        text_printf(out, "%s\n", machine_title(machine, title));
    arena_free(&arena);
    text_printf(out, "  %-16s %s%s%s\n", "server", facts->server, facts->model[0] ? ", " : "",
                facts->model);
    return status;
}

/* The GPUs that the server has, by its CPUs and nodes, where it has any. */
static void add_gpus(const struct facts *facts, struct text *out)
{
    if (!facts->gpus)
        return;
    text_printf(out, "  %-16s %d", "GPUs", facts->gpus);
    if (facts->cpu.sockets > 0)
        text_printf(out, ", CPU : GPU %d:%d", facts->cpu.sockets, facts->gpus);
    text_printf(out, ", on NUMA node%s %s\n", facts->gpus == 1 ? "" : "s", facts->gpu_nodes);
}

/* What the CPU has for small numbers, or what it has not. */
static void add_extensions(const struct cpu *cpu, struct text *out)
{
    text_printf(out, "  %-16s ", "small numbers");
    for (int i = 0; i < EXTENSION_COUNT; i++)
        if (cpu_extends(cpu, (enum extension)i))
            text_printf(out, "%s%s", cpu->extensions & ((1u << i) - 1) ? ", " : "",
                        extension_words((enum extension)i));
    text_add(out,
             cpu->extensions ? "\n" : "no instructions of their own: bf16 saves bytes alone\n");
}

static enum status print_facts(const struct facts *facts, const struct unit *units, int count)
{
    const struct cpu *cpu = &facts->cpu;
    struct text text = {0};

    TRY(add_title(facts, &text));
    text_printf(&text, "  %-16s %s, %d core%s", "CPU", cpu->model[0] ? cpu->model : "unknown",
                cpu->cores, cpu->cores == 1 ? "" : "s");
    if (cpu->quota > 0)
        text_printf(&text, " (its control group allows %.3g)", cpu->quota);
    if (cpu->ghz > 0)
        text_printf(&text, ", %.2f GHz", cpu->ghz);
    text_printf(&text, ", %s\n", isa_name(cpu->isa));
    add_extensions(cpu, &text);
    text_printf(&text, "  %-16s ", "caches");
    struct text caches = {0};
    print_size(&caches, "L1", (double)cpu->l1_bytes);
    print_size(&caches, "L2", (double)cpu->l2_bytes);
    print_size(&caches, "L3", (double)cpu->l3_bytes);
    text_printf(&text, "%s\n  %-16s ", caches.length ? text_of(&caches) + 2 : "unknown", "memory");
    text_add_size(&text, (double)cpu->memory_bytes);
    if (cpu->memory_bytes < mem_installed()) {
        text_add(&text, " (the limit of its control group or ulimit -v; the machine has ");
        text_add_size(&text, (double)mem_installed());
        text_add(&text, ")");
    }
    text_printf(&text, ", 2 MB pages %s\n", cpu->huge_pages[0] ? cpu->huge_pages : "unknown");
    for (int i = 0; i < count; i++)
        print_unit(&text, &units[i]);
    add_gpus(facts, &text);
    text_printf(&text, "  %-16s %s, %s%s%s\n", "system", facts->system, facts->kernel,
                facts->runtime[0] ? ", " : "", facts->runtime);
    text_printf(&text, "  %-16s %s %s, %s, %s build\n", "prony", facts->version, facts->commit,
                facts->compiler, facts->build);
    text_free(&caches);
    enum status status = text_done(&text);
    if (status == STATUS_OK)
        status = print_facts_list(&text);
    text_free(&text);
    return status;
}

/* What this machine is and has. */
struct machine {
    struct facts facts;
    struct unit units[REGISTRY_MOST];
    int unit_count;
    struct abilities backends, frameworks, transports, watchers, meters;
};

static enum status print_json(const struct machine *machine, const struct calibration *calibration)
{
    struct text text = {0};
    struct json_writer writer;

    json_begin(&writer, &text);
    json_object(&writer);
    json_key(&writer, "machine");
    facts_write_machine(&machine->facts, &writer);
    json_key(&writer, "units");
    json_array(&writer);
    for (int i = 0; i < machine->unit_count; i++)
        write_unit(&machine->units[i], &writer);
    json_end(&writer);
    json_key(&writer, "software");
    facts_write_software(&machine->facts, &writer);
    write_abilities("backends", &machine->backends, &writer);
    write_abilities("frameworks", &machine->frameworks, &writer);
    write_abilities("transports", &machine->transports, &writer);
    write_abilities("watches", &machine->watchers, &writer);
    write_abilities("meters", &machine->meters, &writer);
    json_key(&writer, "calibration");
    calibration_write(calibration, &writer);
    json_end(&writer);
    enum status status = text_done(&text);
    if (status == STATUS_OK)
        puts(text_of(&text));
    text_free(&text);
    return status;
}

static enum status describe_machine(const struct cli *cli, bool json, struct arena *arena,
                                    const struct calibration *calibration)
{
    struct machine machine = {0};
    const char *peers;

    facts_find(&machine.facts);
    TRY(cli_peers(cli, arena, &peers));
    TRY(find_backends(cli->registry, arena, &machine.backends));
    find_units(cli->registry, machine.units, &machine.unit_count);
    TRY(find_frameworks(peers, arena, &machine.frameworks));
    TRY(find_transports(cli->folder, arena, &machine.transports));
    TRY(find_watchers(cli, arena, &machine.watchers));
    TRY(find_meters(arena, &machine.meters));
    if (json)
        return print_json(&machine, calibration);
    TRY(print_facts(&machine.facts, machine.units, machine.unit_count));
    TRY(print_abilities("backends", &machine.backends));
    TRY(print_abilities("other frameworks", &machine.frameworks));
    TRY(print_abilities("workers talk by", &machine.transports));
    TRY(print_abilities("programs are watched on", &machine.watchers));
    return print_abilities("meters", &machine.meters);
}

static bool show_progress(double share)
{
    progress_share("calibrating", share);
    return !cli_interrupted();
}

/* The CPU and whatever else computes here, or only the unit that was asked for. */
static enum status calibrate_units(const struct cli *cli, const char *unit,
                                   struct calibration *calibration)
{
    const struct registry *registry = cli->registry;
    const struct backend *asked;

    if (unit)
        TRY(registry_first(registry, unit, &asked));
    if (!unit || strcmp(unit, "cpu") == 0)
        TRY(calibrate_all(calibration, show_progress));
    for (int i = 0; i < registry->count; i++) {
        const struct backend *backend = registry->list[i].backend;
        if (is_first(registry, i) && backend->burst && (!unit || strcmp(unit, backend->unit) == 0))
            TRY(calibrate_unit_all(calibration, backend, show_progress));
    }
    return STATUS_OK;
}

/* What is found raises what is kept, also where it was stopped. `remark`: what a reader should know
 * of how they compare. */
static enum status calibrate_anew(const struct cli *cli, const char *unit, struct calibration *kept,
                                  struct text *remark)
{
    struct calibration found = {0};
    enum status status = calibrate_units(cli, unit, &found);
    for (size_t i = 0; i < found.count; i++)
        if (calibration_merge(kept, &found.rows[i]) != STATUS_OK && status == STATUS_OK)
            status = STATUS_MEMORY;
    kept->changed = true;
    calibration_compare(kept, &found, remark);
    calibration_free(&found);
    return status;
}

struct machine_flags {
    bool calibrate, json;
    const char *unit, *name;
};

static enum status describe_all(const struct cli *cli, const struct machine_flags *flags,
                                struct arena *arena)
{
    struct calibration calibration = {0};
    struct text table = {0}, remark = {0};
    enum status status = calibration_open(&calibration);

    if (status == STATUS_OK && flags->calibrate)
        status = calibrate_anew(cli, flags->unit, &calibration, &remark);
    if (status == STATUS_OK)
        status = describe_machine(cli, flags->json, arena, &calibration);
    if (status == STATUS_OK && !flags->json) {
        struct cpu cpu;
        cpu_detect(&cpu);
        if (flags->calibrate)
            calibration_text(&calibration, &table);
        else
            calibration_brief(&calibration, &cpu, &table);
        text_add(&table, text_of(&remark));
        status = text_done(&table);
        fputs(text_of(&table), stdout);
    }
    text_free(&table);
    text_free(&remark);
    calibration_close(&calibration);
    return status;
}

static enum status rename_machine(const char *name)
{
    struct facts facts;
    struct text text = {0};
    TRY(machine_name_keep(name));
    facts_find(&facts);
    enum status status = add_title(&facts, &text);
    if (status == STATUS_OK)
        status = text_done(&text);
    if (status == STATUS_OK)
        printf("New results call this machine: %.*s\n", (int)strcspn(text_of(&text), "\n"),
               text_of(&text));
    text_free(&text);
    return status;
}

static enum status run_machine(struct cli *cli, void *options)
{
    const struct machine_flags *flags = options;
    if (flags->unit && !flags->calibrate)
        FAIL(STATUS_INPUT, "--unit needs --calibrate: prony machine --calibrate --unit %s",
             flags->unit);
    if (flags->name && (flags->calibrate || flags->json))
        FAIL(STATUS_INPUT, "--name takes no other flag: prony machine --name \"lab server 3\"");
    return flags->name ? rename_machine(flags->name) : describe_all(cli, flags, &cli->arena);
}

static const struct arg rows[] = {
    {ARG(struct machine_flags, calibrate), NULL,
     "first measure the best rates of the units (under a minute); the best ever seen is kept"},
    {ARG(struct machine_flags, unit), "UNIT", "calibrate this unit only: cpu, gpu"},
    {ARG(struct machine_flags, name), "NAME",
     "the machine's name in new results (\"\": its CPU and cores)", .empty = true},
    {ARG(struct machine_flags, json), NULL, "one JSON object"},
    ARG_END,
};

const struct command cmd_machine = {
    .summary = "describe this machine and what can be measured on it",
    .run = run_machine,
    .bytes = sizeof(struct machine_flags),
    .args = {.command = "prony machine",
             .usage = "[--calibrate [--unit UNIT]] [--name NAME] [--json]",
             .summary = "Describes this machine, and what can be measured on it.",
             .lists = {{rows, 0}}},
};
