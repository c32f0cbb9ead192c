/* args.c: one pass over argv against a command's table. */
#include "base/args.h"

#include <math.h>
#include <string.h>

/* The i-th option, and where its value is in the command's struct. */
static const struct arg *find_at(const struct args *args, size_t i, size_t *offset)
{
    for (int l = 0; l < ARGS_LISTS && args->lists[l].rows; l++)
        for (const struct arg *arg = args->lists[l].rows; arg->help; arg++) {
            if (!arg->name || i--)
                continue;
            *offset = args->lists[l].offset + arg->offset;
            return arg;
        }
    return NULL;
}

const struct arg *args_at(const struct args *args, size_t i)
{
    size_t offset;
    return find_at(args, i, &offset);
}

/* Its number; ARGS_MOST: there is no such option. */
static size_t find_arg(const struct args *args, const char *name, size_t length)
{
    const struct arg *arg;
    for (size_t i = 0; (arg = args_at(args, i)); i++)
        if (strlen(arg->name) == length && memcmp(arg->name, name, length) == 0)
            return i;
    return ARGS_MOST;
}

bool args_given(const struct args *args, const struct args_found *found, const char *name)
{
    size_t i = find_arg(args, name, strlen(name));
    return i < ARGS_MOST && (found->given & (uint64_t)1 << i);
}

static enum status fail_unknown(const struct args *args, const char *word)
{
    const char *names[ARGS_MOST + 1] = {"help"};
    const struct arg *arg;
    size_t count = 1;
    while (count <= ARGS_MOST && (arg = args_at(args, count - 1)))
        names[count++] = arg->name;
    char name[64] = "";
    const char *bare = word + strspn(word, "-");
    size_t length = strcspn(bare, "=");
    if (length < sizeof name)
        memcpy(name, bare, length);
    const char *nearest = text_nearest(name, names, count);
    if (nearest)
        FAIL(STATUS_INPUT, "unknown option %s, did you mean --%s?", word, nearest);
    FAIL(STATUS_INPUT, "unknown option %s, expected one that %s --help lists", word, args->command);
}

/* "a whole number", "a number from 0 to 1", "a whole number of at least 1" */
static void describe_number(const struct arg *arg, struct text *out)
{
    text_add(out, arg->kind == ARG_INT     ? "a whole number"
                  : arg->kind == ARG_SHARE ? "a share such as 5%"
                                           : "a number");
    if (arg->low < arg->high && isinf(arg->high))
        text_printf(out, " of at least %.15g", arg->low);
    else if (arg->low < arg->high)
        text_printf(out, " from %.15g to %.15g", arg->low, arg->high);
}

/* "0.05" or "5%". A bare 5 would be 500 %, hardly what a user means. */
static bool read_share(const char *word, double *share)
{
    char number[32];
    size_t length = strlen(word);
    if (length == 0 || length >= sizeof number)
        return false;
    bool hundredths = word[length - 1] == '%';
    memcpy(number, word, length + 1);
    number[length - hundredths] = '\0';
    if (!text_to_real(number, share) || *share < 0 || (*share > 1 && !hundredths))
        return false;
    *share /= hundredths ? 100 : 1;
    return true;
}

/* A number of its kind, as a double beside it to be compared with the range. */
static bool read_number(const struct arg *arg, const char *word, int64_t *whole, double *real)
{
    if (arg->kind == ARG_SHARE)
        return read_share(word, real);
    if (arg->kind == ARG_REAL)
        return text_to_real(word, real);
    bool read = text_to_int(word, whole);
    *real = (double)*whole;
    return read;
}

static bool is_within(const struct arg *arg, double value)
{
    return arg->low >= arg->high || (value >= arg->low && value <= arg->high);
}

static void put_number(const struct arg *arg, int64_t whole, double real, void *value)
{
    const int32_t narrow = (int32_t)whole;
    if (arg->kind != ARG_INT)
        *(double *)value = real;
    else if (arg->bytes == sizeof narrow)
        *(int32_t *)value = narrow;
    else
        *(int64_t *)value = whole;
}

static enum status set_value(const struct arg *arg, const char *word, void *value)
{
    int64_t whole = 0;
    double real = 0;
    if (arg->kind == ARG_TEXT && !*word && !arg->empty)
        FAIL(STATUS_INPUT, "--%s: found an empty text, expected --%s %s", arg->name, arg->name,
             arg->meaning);
    if (arg->kind == ARG_TEXT) {
        *(const char **)value = word;
        return STATUS_OK;
    }
    if (read_number(arg, word, &whole, &real) && is_within(arg, real)) {
        put_number(arg, whole, real, value);
        return STATUS_OK;
    }
    struct text expected = {0};
    describe_number(arg, &expected);
    enum status status =
        status_fail(STATUS_INPUT, __FILE__, __LINE__, "--%s: found \"%s\", expected %s", arg->name,
                    word, text_of(&expected));
    text_free(&expected);
    return status;
}

/* A default need not be one that can be asked for: "-1" may stand for "not said". */
void args_defaults(const struct args *args, void *values)
{
    const struct arg *arg;
    size_t offset;
    for (size_t i = 0; (arg = find_at(args, i, &offset)); i++) {
        void *value = (char *)values + offset;
        int64_t whole = 0;
        double real = 0;
        if (arg->otherwise && arg->kind == ARG_TEXT)
            *(const char **)value = arg->otherwise;
        else if (arg->otherwise && read_number(arg, arg->otherwise, &whole, &real))
            put_number(arg, whole, real, value);
    }
}

/* argv[*at] is an option; moves *at on when its value is the next word. */
static enum status parse_option(const struct args *args, int argc, const char *const *argv, int *at,
                                void *values, struct args_found *found)
{
    const char *word = argv[*at], *name = word + 2;
    const char *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name), offset = 0;
    size_t i = text_starts(word, "--") ? find_arg(args, name, length) : ARGS_MOST;
    if (i == ARGS_MOST)
        return fail_unknown(args, word);
    const struct arg *arg = find_at(args, i, &offset);
    void *value = (char *)values + offset;
    if (found->given & (uint64_t)1 << i)
        FAIL(STATUS_INPUT, "--%s: found twice, expected once", arg->name);
    found->given |= (uint64_t)1 << i;
    if (arg->kind == ARG_FLAG) {
        if (equals)
            FAIL(STATUS_INPUT, "--%s: found \"%s\", expected no value", arg->name, equals + 1);
        *(bool *)value = true;
        return STATUS_OK;
    }
    if (equals)
        return set_value(arg, equals + 1, value);
    if (*at + 1 == argc || text_starts(argv[*at + 1], "--"))
        FAIL(STATUS_INPUT, "--%s: found no value, expected --%s %s", arg->name, arg->name,
             arg->meaning);
    ++*at;
    return set_value(arg, argv[*at], value);
}

static enum status check_positional(const struct args *args, const struct args_found *found)
{
    int count = found->count;
    if (found->program && count)
        FAIL(STATUS_INPUT, "found \"%s\" and a command after --, expected one of them: %s %s",
             found->positional[0], args->command, args->usage);
    if (found->program)
        return STATUS_OK;
    if (count < args->least)
        FAIL(STATUS_INPUT, "found %d argument%s, expected %s%d: %s %s", count,
             count == 1 ? "" : "s", args->most == args->least ? "" : "at least ", args->least,
             args->command, args->usage);
    if (args->most >= 0 && count > args->most)
        FAIL(STATUS_INPUT, "found %d argument%s, expected %s%d (\"%s\" is too many): %s %s", count,
             count == 1 ? "" : "s", args->most == args->least ? "" : "at most ", args->most,
             found->positional[args->most], args->command, args->usage);
    return STATUS_OK;
}

enum status args_parse(const struct args *args, int argc, const char *const *argv, void *values,
                       struct args_found *found)
{
    *found = (struct args_found){.positional = found->positional};
    args_defaults(args, values);
    bool options = true;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        bool is_option = options && word[0] == '-' && word[1]; /* a lone "-" is standard input */
        if (is_option && text_equal(word, "--") && args->program) {
            if (i + 1 == argc)
                FAIL(STATUS_INPUT, "found nothing after --, expected a command: %s %s",
                     args->command, args->usage);
            found->program = argv + i + 1;
            break;
        } else if (is_option && text_equal(word, "--")) {
            options = false;
        } else if (is_option && (text_equal(word, "--help") || text_equal(word, "-h"))) {
            found->help = true;
            found->help_all = i + 1 < argc && text_equal(argv[i + 1], "all");
            return STATUS_OK;
        } else if (is_option) {
            TRY(parse_option(args, argc, argv, &i, values, found));
        } else {
            found->positional[found->count++] = word;
        }
    }
    return check_positional(args, found);
}

static int left_width(const struct arg *arg)
{
    return text_width(arg->name) + (arg->kind == ARG_FLAG ? 0 : 1 + text_width(arg->meaning));
}

/* Its help begins in a column of its own, also where the lines go on. */
static void add_option(struct text *out, int column, int width, const struct arg *arg)
{
    enum { BEFORE = 4, BETWEEN = 2 }; /* "  --", and before the help */
    const bool flag = arg->kind == ARG_FLAG;
    const int indent = BEFORE + column + BETWEEN;
    text_printf(out, "  --%s%s%s%*s  ", arg->name, flag ? "" : " ", flag ? "" : arg->meaning,
                column - left_width(arg), "");
    text_add_wrapped(out, arg->help, indent, indent, width);
    text_add_char(out, '\n');
}

void args_summary(const struct args *args, struct text *out)
{
    text_add(out, args->summary);
    if (args->add_summary)
        args->add_summary(out);
}

/* The next word of a list, and its length; NULL: there is none. */
static const char *next_word(const char *list, size_t *length)
{
    list += strspn(list, " ");
    *length = strcspn(list, " ");
    return *length ? list : NULL;
}

static size_t args_count(const struct args *args)
{
    size_t count = 0;
    while (args_at(args, count))
        count++;
    return count;
}

/* Which options are shown, by number; how many. */
static size_t choose(const struct args *args, bool all, size_t shown[ARGS_MOST])
{
    enum { OFTEN = 10 };
    const size_t count = args_count(args);
    size_t used = 0, length;
    if (!all && count > ARGS_FEW && args->often) {
        for (const char *word = args->often; (word = next_word(word, &length)); word += length) {
            size_t i = find_arg(args, word, length);
            if (i < ARGS_MOST && used < ARGS_MOST)
                shown[used++] = i;
        }
        return used;
    }
    for (size_t i = 0; i < count && (all || count <= ARGS_FEW || i < OFTEN); i++)
        shown[used++] = i;
    return used;
}

static void add_options(const struct args *args, bool all, int width, struct text *out)
{
    const struct arg help = {.name = "help", .kind = ARG_FLAG, .help = "show this text"};
    const size_t count = args_count(args);
    size_t shown[ARGS_MOST];
    const size_t used = choose(args, all, shown);
    int column = left_width(&help);
    for (size_t i = 0; i < used; i++)
        if (left_width(args_at(args, shown[i])) > column)
            column = left_width(args_at(args, shown[i]));
    text_add(out, used < count ? "\noptions that people use most:\n" : "\noptions:\n");
    for (size_t i = 0; i < used; i++)
        add_option(out, column, width, args_at(args, shown[i]));
    if (used == count)
        add_option(out, column, width, &help);
    else
        text_printf(out, "\n%zu more: %s --help all\n", count - used, args->command);
}

/* Where a line that is too long is best broken: before an option. 0: nowhere. */
static size_t example_break(const char *line, size_t length, int width)
{
    size_t best = 0;
    for (size_t i = 1; i + 3 < length && (int)i + 2 <= width; i++)
        if (memcmp(line + i, " --", 3) == 0)
            best = i;
    return best;
}

/* Lines that can be pasted: one that is too long goes on after a backslash. */
static void add_examples(const char *lines, int width, struct text *out)
{
    enum { INDENT = 2, DEEPER = 6 };
    for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
        lines += strspn(lines, " ");
        length = strcspn(lines, "\n");
        int indent = INDENT;
        size_t left = length;
        const char *at = lines;
        for (size_t cut;
             (int)left > width - indent && (cut = example_break(at, left, width - indent)) > 0;
             indent = DEEPER) {
            text_printf(out, "%*s%.*s \\\n", indent, "", (int)cut, at);
            at += cut + 1;
            left -= cut + 1;
        }
        text_printf(out, "%*s%.*s\n", indent, "", (int)left, at);
    }
}

void args_help(const struct args *args, const char *title, bool all, int width, struct text *out)
{
    static const char usage[] = "usage: ";
    struct text summary = {0}, line = {0};
    text_printf(&line, "%s: %s", args->command, title);
    text_add_wrapped(out, text_of(&line), 0, 2, width);
    text_add_char(out, '\n');
    if (args->examples)
        add_examples(args->examples, width, out);
    text_clear(&line);
    text_printf(&line, "%s %s", args->command, args->usage);
    text_printf(out, "\n%s", usage);
    text_add_wrapped(out, text_of(&line), (int)sizeof usage - 1, (int)sizeof usage - 1, width);
    text_add(out, "\n\n");
    args_summary(args, &summary);
    text_add_wrapped(out, text_of(&summary), 0, 0, width);
    text_add_char(out, '\n');
    add_options(args, all, width, out);
    out->failed |= summary.failed || line.failed;
    text_free(&summary);
    text_free(&line);
}
