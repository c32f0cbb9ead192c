/* title.c: see title.h. A model is taken apart into words; words that say nothing are dropped. */
#include "record/title.h"

#include "base/file.h"
#include "base/plain.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char name_file[] = "/machine-name";

/* What stands for itself, and is spelled in a way that only its makers understand. */
static const struct {
    const char *begins, *title;
} special[] = {
    {"QEMU Virtual CPU", "QEMU virtual CPU"}, {"Common KVM processor", "KVM virtual CPU"},
    {"Common 32-bit KVM", "KVM virtual CPU"}, {"Virtual CPU ", "virtual CPU"},
    {"VirtualApple", "Apple silicon"},
};

/* Signs within words, and what ends the part that names the model. */
static const char *const signs[] = {"(R)", "(TM)", "(C)", "\u00ae", "\u2122"};
static const char *const ends[] = {"@",      " with ",         " w/ ",          " Radeon ",
                                   " APU ",  ", implementer ", ", IBRS",        ", no TSX",
                                   ", IBPB", " version ",      " (with ",       " (v7l)",
                                   " rev ",  " 0 @",           " Compute Cores"};
static const char *const dropped[] = {"CPU",       "Processor", "processor", "Genuine",   "Gen",
                                      "Dual-Core", "Quad-Core", "Six-Core",  "Eight-Core"};
/* Some clouds shout. */
static const char *const cased[] = {"Intel",  "Xeon",   "Gold", "Platinum",
                                    "Silver", "Bronze", "Core", "Arm"};

static bool starts_with(const char *text, const char *prefix)
{
    return strncasecmp(text, prefix, strlen(prefix)) == 0;
}

/* Copies the text without signs; whatever is no printing character becomes a blank. */
static void remove_signs(const char *text, char out[TITLE_TEXT])
{
    size_t used = 0;
    while (*text && used + 1 < TITLE_TEXT) {
        size_t i = 0, count = sizeof signs / sizeof *signs;
        while (i < count && !starts_with(text, signs[i]))
            i++;
        if (i < count) {
            text += strlen(signs[i]);
            continue;
        }
        out[used++] = (unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text;
        text++;
    }
    out[used] = '\0';
}

static void cut_end(char *text)
{
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char *end = strstr(text, ends[i]);
        if (end && end > text)
            *end = '\0';
    }
}

/* "64-Core", "64-Cores", "11th" (of "11th Gen"). */
static bool is_count(const char *word, const char *next)
{
    size_t digits = strspn(word, "0123456789");
    const char *rest = word + digits;
    if (!digits)
        return false;
    return strcasecmp(rest, "-Core") == 0 || strcasecmp(rest, "-Cores") == 0 ||
           (strlen(rest) == 2 && isalpha((unsigned char)*rest) && next && !strcmp(next, "Gen"));
}

static bool is_dropped(const char *word, const char *next)
{
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        if (strcmp(word, dropped[i]) == 0)
            return true;
    return is_count(word, next);
}

static const char *spell(const char *word)
{
    for (size_t i = 0; i < sizeof cased / sizeof *cased; i++)
        if (strcasecmp(word, cased[i]) == 0)
            return cased[i];
    return word;
}

/* Closes a bracket whose end was cut off, and takes away an empty one. */
static void mend_bracket(char out[TITLE_TEXT])
{
    char *open = strrchr(out, '(');
    size_t length = strlen(out);
    if (!open || strchr(open, ')'))
        return;
    if (open[1] && length + 1 < TITLE_TEXT)
        memcpy(out + length, ")", 2);
    else
        *open = '\0';
}

const char *title_cpu(const char *model, char out[TITLE_TEXT])
{
    char text[TITLE_TEXT], *rest, *word, *next;
    size_t used = 0;
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (starts_with(model, special[i].begins)) {
            snprintf(out, TITLE_TEXT, "%s", special[i].title);
            return out;
        }
    remove_signs(model, text);
    cut_end(text);
    out[0] = '\0';
    for (word = strtok_r(text, " ", &rest); word; word = next) {
        next = strtok_r(NULL, " ", &rest);
        if (!is_dropped(word, next))
            used += (size_t)snprintf(out + used, TITLE_TEXT - used, "%s%s", used ? " " : "",
                                     spell(word));
    }
    mend_bracket(out);
    return out;
}

/* "2 cores", "2 × 32 cores"; CPUs that are no whole number of cores are "3 threads". */
static void add_cores(const struct title_facts *facts, struct text *out)
{
    const int sockets = facts->sockets > 1 ? facts->sockets : 1;
    const int each = facts->threads_per_core > 1 ? facts->threads_per_core : 1;
    const char *between = out->length ? ", " : "";
    if (facts->cores < 1)
        return;
    if (facts->cores % (sockets * each) == 0 && sockets > 1)
        text_printf(out, "%s%d × %d", between, sockets, facts->cores / sockets / each);
    else if (facts->cores % each == 0)
        text_printf(out, "%s%d", between, facts->cores / each);
    else {
        text_printf(out, "%s%d threads", between, facts->cores);
        return;
    }
    text_add(out, facts->cores == each ? " core" : " cores");
}

const char *title_make(const struct title_facts *facts, char out[TITLE_TEXT])
{
    char cpu[TITLE_TEXT];
    struct text text = {0};
    title_cpu(facts->cpu, cpu);
    text_add(&text, cpu[0] ? cpu : facts->server);
    add_cores(facts, &text);
    if (facts->gpu[0] && facts->gpus > 1)
        text_printf(&text, "%s%d × %s", text.length ? ", " : "", facts->gpus, facts->gpu);
    else if (facts->gpu[0])
        text_printf(&text, "%s%s", text.length ? ", " : "", facts->gpu);
    plain_copy(out, TITLE_TEXT, text_of(&text));
    text_free(&text);
    return out;
}

static int count_of(const struct json *object, const char *key)
{
    const struct json *value = object ? json_get(object, key) : NULL;
    const bool known = value && value->kind == JSON_NUMBER;
    return known && value->number >= 1 && value->number <= 1e4 ? (int)value->number : 0;
}

const char *machine_title(const struct json *machine, char out[TITLE_TEXT])
{
    out[0] = '\0';
    if (!machine)
        return out;
    const char *title = json_text(machine, "title", "");
    const struct json *gpu = json_get(machine, "gpu");
    const struct title_facts facts = {
        .server = json_text(machine, "server", ""),
        .cpu = json_text(machine, "cpu", ""),
        .gpu = json_text(gpu, "name", json_text(machine, "gpu_model", "")),
        .sockets = count_of(machine, "sockets"),
        .cores = count_of(machine, "cores"),
        .threads_per_core = count_of(machine, "threads_per_core"),
        .gpus = count_of(machine, "gpus"),
    };
    if (!title[0])
        return title_make(&facts, out);
    plain_copy(out, TITLE_TEXT, title);
    return out;
}

/* Text that prints as it stands, on one line, without blanks at its ends. */
static enum status check_name(const char *name)
{
    char shown[4 * TITLE_TEXT];
    const size_t length = strlen(name);
    if (length > NAME_MOST)
        FAIL(STATUS_INPUT, "--name: found %zu bytes, expected at most %d", length, NAME_MOST);
    plain_copy(shown, sizeof shown, name);
    if (strcmp(shown, name) != 0)
        FAIL(STATUS_INPUT, "--name: found \"%s\", expected text without control characters", shown);
    if (length && (name[0] == ' ' || name[length - 1] == ' '))
        FAIL(STATUS_INPUT, "--name: found \"%s\", expected no blank at either end", shown);
    return STATUS_OK;
}

static enum status name_path(struct text *out)
{
    TRY(file_cache_folder(out));
    text_add(out, name_file);
    return text_done(out);
}

void machine_name_find(char out[TITLE_TEXT])
{
    struct text path = {0}, name = {0};
    const struct error before = *status_last(); /* no name is no error */
    out[0] = '\0';
    if (name_path(&path) == STATUS_OK && file_exists(text_of(&path)) &&
        file_read(text_of(&path), TITLE_TEXT, &name) == STATUS_OK && name.length) {
        name.data[strcspn(name.data, "\n")] = '\0';
        if (check_name(name.data) == STATUS_OK)
            snprintf(out, TITLE_TEXT, "%s", name.data);
    }
    *status_last() = before;
    text_free(&path);
    text_free(&name);
}

enum status machine_name_keep(const char *name)
{
    struct text path = {0}, line = {0};
    TRY(check_name(name));
    enum status status = name_path(&path);
    text_printf(&line, "%s\n", name);
    if (status == STATUS_OK)
        status = text_done(&line);
    if (status == STATUS_OK && name[0])
        status = file_write(text_of(&path), text_of(&line), line.length);
    else if (status == STATUS_OK && file_exists(text_of(&path)) && unlink(text_of(&path)) != 0)
        status = status_fail(STATUS_IO, __FILE__, __LINE__, "cannot remove %s", text_of(&path));
    text_free(&path);
    text_free(&line);
    return status;
}
