/* Several networks in one file: which lines are left, and what is refused. */
#include "check.h"
#include "nn/section.h"

static const char file[] = "optimiser sgd\n"
                           "  network first # the one\n"
                           "input 4\n"
                           "dense 2\n"
                           "network second\n"
                           "input 3\n"
                           "dense 1";

/* What is left of `text`; the caller frees it. */
static enum status take(const char *text, const char *wanted, struct text *out)
{
    *out = (struct text){0};
    text_add(out, text);
    return section_take("a.net", wanted, out);
}

static void check_left(const char *text, const char *wanted, const char *expected)
{
    struct text left;
    if (CHECK_OK(take(text, wanted, &left))) {
        CHECK_EQUAL_TEXT(text_of(&left), expected);
        CHECK_EQUAL_INT(left.length, strlen(expected));
    }
    text_free(&left);
}

static void check_refused(const char *text, const char *wanted, const char *message)
{
    struct text left;
    CHECK_STATUS(STATUS_INPUT, take(text, wanted, &left));
    CHECK_MESSAGE(message);
    text_free(&left);
}

TEST(keeps_lines_where_they_were)
{
    check_left("\xEF\xBB\xBF"
               "input 4\n",
               NULL, "input 4\n"); /* a byte-order mark */
    check_left(file, "first", "optimiser sgd\n\ninput 4\ndense 2\n\n\n");
    check_left(file, "second", "optimiser sgd\n\n\n\n\ninput 3\ndense 1");
}

TEST(leaves_a_file_of_one_network_alone)
{
    check_left("input 4\ndense 2\n", NULL, "input 4\ndense 2\n");
    check_left("", NULL, "");
    check_left("networks = dense 3\n", NULL, "networks = dense 3\n");
}

TEST(says_which_networks_there_are)
{
    check_refused(file, NULL,
                  "a.net holds several networks: first, second; expected one of them, "
                  "as in a.net:first");
    check_refused(file, "third", "there is no network 'third' in a.net; there are: first, second");
    check_refused("input 4\n", "first", "a.net holds one network without a name");
}

TEST(names_the_place_of_a_mistake)
{
    check_refused("input 4\nnetwork\n", "a", "a.net:2:8: found a network's name of 0 characters");
    check_refused("network a\n network a\n", "a", "a.net:2:10: the network 'a' is there twice");
    check_refused("network a dense\n", "a", "a.net:1:11: found 'dense', expected the end of");
}

CHECK_MAIN
