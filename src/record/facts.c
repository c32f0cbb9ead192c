/* facts.c: see facts.h. Each fact is read where the system says it; a file that is not there (other
 * system, container, no permission) leaves its fact empty. */
#include "record/facts.h"
#include "record/title.h"
#include "record/version.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define TEXT_OF(number) #number
#define VERSION(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)
#ifdef __clang__
#define COMPILER "clang " VERSION(__clang_major__, __clang_minor__, __clang_patchlevel__)
#elif defined __GNUC__
#define COMPILER "gcc " VERSION(__GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__)
#else
#define COMPILER "unknown"
#endif

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ ||                                 \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BUILD "sanitized"
#elif !defined NDEBUG || !defined __OPTIMIZE__
#define BUILD "debug"
#else
#define BUILD "release"
#endif

/* Copies the first line, cut to what fits. */
static void set_text(char out[FACTS_TEXT], const char *text)
{
    snprintf(out, FACTS_TEXT, "%.*s", (int)strcspn(text, "\n"), text);
}

/* The first line of a file that starts with `prefix`; what follows the prefix goes to `out`. */
static bool find_line(const char *path, const char *prefix, char *out, size_t size)
{
    FILE *file = fopen(path, "re");
    bool found = false;
    size_t length = strlen(prefix);
    while (file && !found && fgets(out, (int)size, file)) {
        found = strncmp(out, prefix, length) == 0;
        if (found)
            memmove(out, out + length, strlen(out + length) + 1);
    }
    if (file)
        fclose(file);
    if (!found)
        out[0] = '\0';
    return found;
}

static void find_system(struct facts *out)
{
    char line[FACTS_TEXT];
    struct utsname name;
    if (uname(&name) == 0) {
        set_text(out->server, name.nodename);
        snprintf(out->kernel, sizeof out->kernel, "%.40s %.80s", name.sysname, name.release);
    }
    if (find_line("/etc/os-release", "PRETTY_NAME=\"", line, sizeof line)) {
        line[strcspn(line, "\"\n")] = '\0';
        set_text(out->system, line);
    }
    if (find_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "", line, sizeof line))
        set_text(out->governor, line);
}

/* Of the jiffies /proc/stat counts: user nice system idle iowait irq softirq steal. */
static double find_steal(void)
{
    enum { KINDS = 8, STEAL = 7 };
    char line[256];
    double sum = 0, steal = 0;
    if (!find_line("/proc/stat", "cpu ", line, sizeof line))
        return NAN;
    char *at = line;
    for (int kind = 0; kind < KINDS; kind++) {
        char *end;
        double jiffies = strtod(at, &end);
        if (end == at)
            return NAN;
        sum += jiffies;
        steal = kind == STEAL ? jiffies : 0;
        at = end;
    }
    return sum > 0 ? steal / sum : (double)NAN;
}

static double find_memory_free(void)
{
    char line[128];
    if (!find_line("/proc/meminfo", "MemAvailable:", line, sizeof line))
        return NAN;
    return strtod(line, NULL) * 1024;
}

void facts_find(struct facts *out)
{
    memset(out, 0, sizeof *out);
    cpu_detect(&out->cpu);
    find_system(out);
    facts_find_server("/sys", "/proc", out);
    machine_name_find(out->name);
    if (getloadavg(&out->load, 1) != 1)
        out->load = NAN;
    out->steal = find_steal();
    out->memory_free_bytes = find_memory_free();
    out->version = version_number;
    out->commit = version_commit;
    out->compiler = COMPILER;
    out->build = BUILD;
}

static void write_text(struct json_writer *writer, const char *key, const char *text)
{
    if (text[0]) {
        json_put_text(writer, key, text);
    }
}

/* Leaves out what is not known: 0 or NaN, unless 0 is a value too. */
static void write_count(struct json_writer *writer, const char *key, uint64_t number)
{
    if (number) {
        json_put_uint(writer, key, number);
    }
}

static void write_real(struct json_writer *writer, const char *key, double number)
{
    if (!isnan(number)) {
        json_put_real(writer, key, number);
    }
}

static void write_gpu(struct json_writer *writer, const struct facts_gpu *gpu)
{
    if (!gpu->name[0])
        return;
    json_key(writer, "gpu");
    json_object(writer);
    write_text(writer, "name", gpu->name);
    write_count(writer, "memory_bytes", gpu->memory_bytes);
    write_count(writer, "multiprocessors", (uint64_t)gpu->multiprocessors);
    write_text(writer, "driver", gpu->driver);
    write_real(writer, "power_limit", gpu->power_limit > 0 ? gpu->power_limit : (double)NAN);
    json_end(writer);
}

/* What a person calls it: the name they gave it, else what it is. */
static void write_title(struct json_writer *writer, const struct facts *facts)
{
    char title[TITLE_TEXT];
    const struct title_facts of = {
        .server = facts->server,
        .cpu = facts->cpu.model,
        .gpu = facts->gpu.name[0] ? facts->gpu.name : facts->gpu_model,
        .sockets = facts->cpu.sockets,
        .cores = facts->cpu.cores,
        .threads_per_core = facts->cpu.threads_per_core,
        .gpus = facts->gpus,
    };
    write_text(writer, "title", facts->name[0] ? facts->name : title_make(&of, title));
}

/* The GPUs of the server: how many, on which nodes, and CPUs : GPUs. */
static void write_gpus(struct json_writer *writer, const struct facts *facts)
{
    char ratio[32];
    if (!facts->gpus)
        return;
    write_count(writer, "gpus", (uint64_t)facts->gpus);
    write_text(writer, "gpu_model", facts->gpu_model);
    write_text(writer, "gpu_nodes", facts->gpu_nodes);
    if (facts->cpu.sockets < 1)
        return;
    snprintf(ratio, sizeof ratio, "%d:%d", facts->cpu.sockets, facts->gpus);
    write_text(writer, "cpu_gpu", ratio);
}

/* "AVX-512 VNNI, AVX-512 BF16" */
static void write_extensions(struct json_writer *writer, const struct cpu *cpu)
{
    char names[128] = "";
    for (int i = 0; i < EXTENSION_COUNT; i++)
        if (cpu_extends(cpu, (enum extension)i))
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                     names[0] ? ", " : "", extension_words((enum extension)i));
    write_text(writer, "extensions", names);
}

void facts_write_machine(const struct facts *facts, struct json_writer *writer)
{
    const struct cpu *cpu = &facts->cpu;
    json_object(writer);
    write_text(writer, "server", facts->server);
    write_title(writer, facts);
    write_text(writer, "model", facts->model);
    write_text(writer, "cpu", cpu->model);
    write_text(writer, "vendor", cpu->vendor);
    write_count(writer, "sockets", (uint64_t)cpu->sockets);
    write_count(writer, "cores", (uint64_t)cpu->cores);
    write_real(writer, "cpu_quota", cpu->quota > 0 ? cpu->quota : (double)NAN);
    write_count(writer, "threads_per_core", (uint64_t)cpu->threads_per_core);
    write_real(writer, "ghz", cpu->ghz > 0 ? cpu->ghz : (double)NAN);
    write_text(writer, "isa", isa_name(cpu->isa));
    write_extensions(writer, cpu);
    write_count(writer, "l1_bytes", cpu->l1_bytes);
    write_count(writer, "l2_bytes", cpu->l2_bytes);
    write_count(writer, "l3_bytes", cpu->l3_bytes);
    write_count(writer, "memory_bytes", cpu->memory_bytes);
    write_real(writer, "memory_free_bytes", facts->memory_free_bytes);
    write_text(writer, "huge_pages", cpu->huge_pages);
    write_text(writer, "governor", facts->governor);
    write_text(writer, "runtime", facts->runtime);
    write_real(writer, "load", facts->load);
    write_real(writer, "steal", facts->steal);
    write_gpu(writer, &facts->gpu);
    write_gpus(writer, facts);
    json_end(writer);
}

void facts_write_software(const struct facts *facts, struct json_writer *writer)
{
    json_object(writer);
    write_text(writer, "prony", facts->version);
    write_text(writer, "commit", facts->commit);
    write_text(writer, "compiler", facts->compiler);
    write_text(writer, "build", facts->build);
    write_text(writer, "system", facts->system);
    write_text(writer, "kernel", facts->kernel);
    json_end(writer);
}

static enum status make_tree(const struct facts *facts, struct arena *arena,
                             void write(const struct facts *, struct json_writer *),
                             const struct json **out)
{
    struct text text = {0};
    struct json_writer writer;
    struct json *tree = NULL;
    json_begin(&writer, &text);
    write(facts, &writer);
    enum status status = text_done(&text);
    if (status == STATUS_OK)
        status = json_parse(arena, "facts", text_of(&text), text.length, &tree);
    text_free(&text);
    *out = tree;
    return status;
}

enum status facts_trees(const struct facts *facts, struct arena *arena, const struct json **machine,
                        const struct json **software)
{
    TRY(make_tree(facts, arena, facts_write_machine, machine));
    return make_tree(facts, arena, facts_write_software, software);
}

void facts_set_point(const struct facts *facts, struct point *point)
{
    snprintf(point->server, sizeof point->server, "%s", facts->server);
    snprintf(point->software, sizeof point->software, "prony %s%s%s, %s%s%s", facts->version,
             facts->commit[0] ? " " : "", facts->commit, facts->compiler,
             facts->runtime[0] ? ", " : "", facts->runtime);
    if (strcmp(point->unit, "cpu") == 0)
        snprintf(point->unit_name, sizeof point->unit_name, "%s", facts->cpu.model);
    else if (strcmp(point->unit, "gpu") == 0)
        snprintf(point->unit_name, sizeof point->unit_name, "%s",
                 facts->gpu.name[0] ? facts->gpu.name : facts->gpu_model);
}
