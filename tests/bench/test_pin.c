/* Which CPU two that are compared run on. */
#include "bench/meter/pin.h"
#include "check.h"

TEST(takes_one_after_the_other)
{
    struct pins pins = {.count = 3};
    for (int round = 0; round < 30; round++) {
        int index = pins_choose(&pins, round);
        CHECK_EQUAL_INT(index, round % 3);
        pins_note(&pins, index, 97, 100);
    }
}

TEST(goes_where_nobody_else_is_and_looks_again)
{
    struct pins pins = {.count = 2};
    int visits = 0;
    for (int round = 0; round < 100; round++) {
        int index = pins_choose(&pins, round);
        pins_note(&pins, index, index == 1 ? 50 : 98, 100);
        visits += index == 1;
    }
    CHECK(visits >= 3);
    CHECK(visits <= 10);
}

TEST(takes_all_when_others_are_everywhere)
{
    struct pins pins = {.count = 2};
    int visits[2] = {0, 0};
    for (int round = 0; round < 100; round++) {
        int index = pins_choose(&pins, round);
        pins_note(&pins, index, 50, 100);
        visits[index]++;
    }
    CHECK(visits[0] > 30);
    CHECK(visits[1] > 30);
}

TEST(nothing_to_choose_from)
{
    struct pins pins = {0};
    CHECK_EQUAL_INT(pins_choose(&pins, 5), 0);
}

CHECK_MAIN
