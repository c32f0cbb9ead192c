/* platform.h: the machines that workers are simulated on: units in servers, servers in clusters.
 *
 * A platform is a few lines of text (docs/simulation.md), which become a file of SimGrid's for a
 * number of workers; or such a file itself. Worker r is unit r: servers are filled one after the
 * other, and clusters get as many servers each. */
#ifndef PRONY_SIMULATE_PLATFORM_H
#define PRONY_SIMULATE_PLATFORM_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>

/* A link: what it carries in a second, each way, and how long a message is under way. */
struct platform_link {
    double bytes_per_s, latency_s; /* 0: there is none */
};

enum { PLATFORM_TEXT = 128 };

struct platform {
    char name[PLATFORM_TEXT], title[PLATFORM_TEXT];
    int units;                    /* of a server */
    bool here;                    /* workers are processes of one machine */
    int clusters;                 /* joined by slower lines */
    struct platform_link inside;  /* of a unit to the others of its server */
    struct platform_link outside; /* of a server to the others of its cluster … */
    bool outside_each;            /* … or of each of its units */
    struct platform_link between; /* of a cluster to the others */
    double feed; /* samples, in bytes a second, to all units of a server; 0: no limit */
    char file[PLATFORM_TEXT * 4]; /* a file of SimGrid's: nothing else is known; or "" */
};

/* By the name of one that ships, or a path. `here` is what the name "here" means: this machine. */
enum status platform_open(const char *name, struct platform *out);
/* The text of a platform; `name` stands before messages, with the line. */
enum status platform_read(const char *name, const char *text, struct platform *out);
/* Those that ship: their names, from 0 on; NULL ends them. */
const char *platform_shipped(int index);

/* Are so many workers on one server? */
bool platform_near(const struct platform *platform, int workers);
int platform_servers(const struct platform *platform, int workers);
/* SimGrid's file for so many workers. */
enum status platform_write(const struct platform *platform, int workers, struct text *out);
/* The host of a worker, and the one that feeds it: names in that file. */
enum { PLATFORM_HOST = 24 };
const char *platform_host(int worker, char text[PLATFORM_HOST]);
const char *platform_feeder(const struct platform *platform, int worker, char text[PLATFORM_HOST]);

#endif
