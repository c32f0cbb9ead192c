/* args.c: one pass over argv against a command's table. */
#include "base/args.h"

#include <math.h>
#include <string.h>

static struct arg *find_arg(const struct args *args, const char *name, size_t length)
{
    for (size_t i = 0; i < args->count; i++)
        if (strlen(args->list[i].name) == length && memcmp(args->list[i].name, name, length) == 0)
            return &args->list[i];
    return NULL;
}

static enum status fail_unknown(const struct args *args, const char *word)
{
    enum { MOST_NAMES = 128 };
    const char *names[MOST_NAMES] = {"help"};
    size_t count = 1;
    for (size_t i = 0; i < args->count && count < MOST_NAMES; i++)
        names[count++] = args->list[i].name;
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

/* "0.05" or "5%". A bare 5 would be 500 %, which nobody means. */
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

static bool read_number(const struct arg *arg, const char *word)
{
    int64_t whole = 0;
    double real = 0;
    bool is_int = arg->kind == ARG_INT;
    if (is_int                   ? !text_to_int(word, &whole)
        : arg->kind == ARG_SHARE ? !read_share(word, &real)
                                 : !text_to_real(word, &real))
        return false;
    double value = is_int ? (double)whole : real;
    if (arg->low < arg->high && (value < arg->low || value > arg->high))
        return false;
    if (is_int)
        *(int64_t *)arg->value = whole;
    else
        *(double *)arg->value = real;
    return true;
}

static enum status set_value(const struct arg *arg, const char *word)
{
    if (arg->kind == ARG_TEXT && !*word)
        FAIL(STATUS_INPUT, "--%s: found an empty text, expected --%s %s", arg->name, arg->name,
             arg->meaning);
    if (arg->kind == ARG_TEXT) {
        *(const char **)arg->value = word;
        return STATUS_OK;
    }
    if (read_number(arg, word))
        return STATUS_OK;
    struct text expected = {0};
    describe_number(arg, &expected);
    enum status status =
        status_fail(STATUS_INPUT, __FILE__, __LINE__, "--%s: found \"%s\", expected %s", arg->name,
                    word, text_of(&expected));
    text_free(&expected);
    return status;
}

/* argv[*at] is an option; moves *at on when its value is the next word. */
static enum status parse_option(struct args *args, int argc, const char *const *argv, int *at)
{
    const char *word = argv[*at], *name = word + 2;
    const char *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    struct arg *arg = text_starts(word, "--") ? find_arg(args, name, length) : NULL;
    if (!arg)
        return fail_unknown(args, word);
    if (arg->given)
        FAIL(STATUS_INPUT, "--%s: found twice, expected once", arg->name);
    arg->given = true;
    if (arg->kind == ARG_FLAG) {
        if (equals)
            FAIL(STATUS_INPUT, "--%s: found \"%s\", expected no value", arg->name, equals + 1);
        *(bool *)arg->value = true;
        return STATUS_OK;
    }
    if (equals)
        return set_value(arg, equals + 1);
    if (*at + 1 == argc || text_starts(argv[*at + 1], "--"))
        FAIL(STATUS_INPUT, "--%s: found no value, expected --%s %s", arg->name, arg->name,
             arg->meaning);
    ++*at;
    return set_value(arg, argv[*at]);
}

static enum status check_positional(const struct args *args)
{
    int count = args->positional_count;
    if (count < args->least)
        FAIL(STATUS_INPUT, "found %d argument%s, expected %s%d: %s %s", count,
             count == 1 ? "" : "s", args->most == args->least ? "" : "at least ", args->least,
             args->command, args->usage);
    if (args->most >= 0 && count > args->most)
        FAIL(STATUS_INPUT, "found %d argument%s, expected %s%d (\"%s\" is too many): %s %s", count,
             count == 1 ? "" : "s", args->most == args->least ? "" : "at most ", args->most,
             args->positional[args->most], args->command, args->usage);
    return STATUS_OK;
}

enum status args_parse(struct args *args, int argc, const char *const *argv)
{
    args->positional_count = 0;
    args->help = false;
    for (size_t i = 0; i < args->count; i++)
        args->list[i].given = false;
    bool options = true;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        bool is_option = options && word[0] == '-' && word[1]; /* a lone "-" is standard input */
        if (is_option && text_equal(word, "--")) {
            options = false;
        } else if (is_option && (text_equal(word, "--help") || text_equal(word, "-h"))) {
            args->help = true;
            return STATUS_OK;
        } else if (is_option) {
            TRY(parse_option(args, argc, argv, &i));
        } else {
            args->positional[args->positional_count++] = word;
        }
    }
    return check_positional(args);
}

/* Characters, not bytes: a meaning may hold "…". */
static int width(const char *string)
{
    int count = 0;
    for (; *string; string++)
        count += (*string & 0xC0) != 0x80;
    return count;
}

static int left_width(const struct arg *arg)
{
    return width(arg->name) + (arg->kind == ARG_FLAG ? 0 : 1 + width(arg->meaning));
}

static void add_option(struct text *out, int column, const struct arg *arg)
{
    bool flag = arg->kind == ARG_FLAG;
    text_printf(out, "  --%s%s%s%*s  %s\n", arg->name, flag ? "" : " ", flag ? "" : arg->meaning,
                column - left_width(arg), "", arg->help);
}

void args_help(const struct args *args, struct text *out)
{
    const struct arg help = {.name = "help", .kind = ARG_FLAG, .help = "show this text"};
    int column = left_width(&help);
    for (size_t i = 0; i < args->count; i++)
        if (left_width(&args->list[i]) > column)
            column = left_width(&args->list[i]);
    text_printf(out, "usage: %s %s\n\n%s\n\noptions:\n", args->command, args->usage, args->summary);
    for (size_t i = 0; i < args->count; i++)
        add_option(out, column, &args->list[i]);
    add_option(out, column, &help);
    if (args->examples)
        text_printf(out, "\nexamples:\n%s", args->examples);
}
