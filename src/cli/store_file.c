/* store_file.c: see store_file.h. */
#include "cli/store_file.h"

enum status store_file_path(const char *given, struct text *out)
{
    if (!given)
        return store_path(out);
    text_add(out, given);
    return text_done(out);
}

enum status store_file_open(const char *given, enum store_access access, struct store **out)
{
    struct text path = {0};
    enum status status = store_file_path(given, &path);
    if (status == STATUS_OK)
        status = store_open(text_of(&path), access, out);
    text_free(&path);
    return status;
}
