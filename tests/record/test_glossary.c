/* The glossary: short sentences, terms that are found. */
#include "check.h"
#include "record/words/glossary.h"

/* Sentences of at most 25 words, three at most. */
TEST(terms_are_short_and_found)
{
    const char *near;
    for (size_t i = 0; i < TERM_COUNT; i++) {
        int words = 0, stops = 0;
        for (const char *at = glossary[i].text; *at; at++) {
            words = *at == '.' && (at[1] == ' ' || !at[1]) ? 0 : words + (*at == ' ');
            stops += *at == '.' && (at[1] == ' ' || !at[1]);
            if (!CHECK(words <= 25 && stops <= 3))
                printf("%s\n", glossary[i].text);
        }
        CHECK_EQUAL_INT(glossary[i].text[strlen(glossary[i].text) - 1], '.');
        CHECK(glossary_find(glossary[i].key, &near) != NULL);
        CHECK(glossary_find(glossary[i].term, &near) == &glossary[i] ||
              strchr(glossary[i].term, ','));
    }
    CHECK(glossary_find("Arithmetic-Intensity", &near) == &glossary[TERM_intensity]);
    CHECK(glossary_find("efficiency", &near) == &glossary[TERM_speedup]);
    CHECK(!glossary_find("throughputt", &near));
    CHECK_EQUAL_TEXT(near, "throughput");
    CHECK(!glossary_find("", &near));
}

CHECK_MAIN
