/* httpd.h: the functions of libmicrohttpd that http.c calls, loaded when a server is started. So
 * prony measures where the library is not installed. */
#ifndef PRONY_GUIDE_HTTPD_H
#define PRONY_GUIDE_HTTPD_H

#include "base/status.h"

#include <microhttpd.h>

struct httpd {
#define CALL(name) __typeof__(MHD_##name) *name;
#include "guide/httpd.def"
#undef CALL
};
/* httpd->start_daemon(…) is MHD_start_daemon(…). Valid after httpd_load. */
extern const struct httpd *const httpd;

/* STATUS_UNSUPPORTED, with the package to install, where the library is missing. Any thread may
 * call it, any number of times. */
enum status httpd_load(void);

#endif
