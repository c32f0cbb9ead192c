/* httpd.c: see httpd.h. */
#include "guide/httpd.h"

#include "base/load/dynamic.h"

static struct httpd calls; /* written once, before anybody reads it */
const struct httpd *const httpd = &calls;

enum status httpd_load(void)
{
    static const struct dynamic_function functions[] = {
#define CALL(name) {"MHD_" #name, &calls.name},
#include "guide/httpd.def"
#undef CALL
    };
    static struct dynamic_library library = {
        .file = "libmicrohttpd.so.12",
        .need = "the guide needs libmicrohttpd (Debian: apt install libmicrohttpd12)",
        .functions = functions,
        .count = sizeof functions / sizeof *functions,
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    return dynamic_load(&library);
}
