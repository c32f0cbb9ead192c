/* guide_absent.c: stands in for the guide where it was left out of the build. */
#include "guide/guide.h"

enum status guide_start(const char *store, const struct http_place *place, struct guide **out)
{
    (void)store, (void)place, (void)out;
    FAIL(STATUS_UNSUPPORTED, "this prony was built without the guide, which needs libmicrohttpd "
                             "and npm (Debian: apt install libmicrohttpd-dev npm); install them "
                             "and build again");
}

uint16_t guide_port(const struct guide *guide)
{
    (void)guide;
    return 0;
}

const char *guide_token(const struct guide *guide)
{
    (void)guide;
    return "";
}

void guide_stop(struct guide *guide)
{
    (void)guide;
}
