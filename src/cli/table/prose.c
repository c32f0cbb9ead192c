/* prose.c: see prose.h. */
#include "cli/table/prose.h"

#include "base/text.h"
#include "cli/screen.h"

#include <stdio.h>
#include <string.h>

void prose_print(const char *line, int hang)
{
    const int width = screen_width(stdout);
    size_t blanks = strspn(line, " ");
    int column = 0;
    while (line[blanks]) {
        const char *word = line + blanks;
        const size_t length = text_unbroken(word);
        const int characters = text_width_of(word, length);
        if (column > hang && column + (int)blanks + characters > width) {
            printf("\n%*s", hang, "");
            column = hang;
            blanks = 0;
        }
        printf("%*s%.*s", (int)blanks, "", (int)length, word);
        column += (int)blanks + characters;
        line = word + length;
        blanks = strspn(line, " ");
    }
    printf("\n");
}

void prose_printf(int hang, const char *format, ...)
{
    struct text line = {0};
    va_list list;
    va_start(list, format);
    text_vprintf(&line, format, list);
    va_end(list);
    prose_print(text_of(&line), hang);
    text_free(&line);
}
