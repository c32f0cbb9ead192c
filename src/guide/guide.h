/* guide.h: the web explorer. It serves the results of one store, as a JSON API (docs/api.md) and as
 * the page that is embedded in the program, to browsers on this machine. It only reads. */
#ifndef PRONY_GUIDE_GUIDE_H
#define PRONY_GUIDE_GUIDE_H

#include "base/status.h"
#include "guide/http.h"

#include <stdint.h>

struct guide;

/* Serves from a thread of its own until guide_stop. `store` is a file as store_open takes it. */
enum status guide_start(const char *store, const struct http_place *place, struct guide **out);
uint16_t guide_port(const struct guide *guide);
const char *guide_token(const struct guide *guide); /* that one has to bring; "": none */
void guide_stop(struct guide *guide);               /* NULL is fine */

#endif
