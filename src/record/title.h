/* title.h: what a person calls a machine: "AMD EPYC, 2 cores", "Intel Xeon Gold 6338, 2 × 32
 * cores".
 *
 * The server's name (axis `server`) tells machines apart; a title tells a reader what they are. It
 * is made from the facts, so that records without one get it when they are read, unless the user
 * gave the machine a name (`prony machine --name`). */
#ifndef PRONY_RECORD_TITLE_H
#define PRONY_RECORD_TITLE_H

#include "base/json.h"
#include "base/status.h"
#include "base/text.h"

enum { TITLE_TEXT = 128 /* room for a title */, NAME_MOST = 60 /* bytes of a name, at most */ };

/* What a title is made of; texts may be "", numbers 0 where they are not known. */
struct title_facts {
    const char *server, *cpu, *gpu;
    int sockets, cores, threads_per_core, gpus;
};
const char *title_make(const struct title_facts *facts, char out[TITLE_TEXT]);

/* A CPU's model as the system spells it, without "(R)", "Processor", "@ 2.00GHz" and the like. */
const char *title_cpu(const char *model, char out[TITLE_TEXT]);

/* The title of a record's machine: the one it carries, else made from its facts; "" where it says
 * nothing. NULL is fine. Returns `out`. */
const char *machine_title(const struct json *machine, char out[TITLE_TEXT]);

/* The name that the user gave this machine, "" where there is none. It lies where the calibration
 * does. Setting refuses text that does not fit on a line of a table; "" removes it. */
void machine_name_find(char out[TITLE_TEXT]);
enum status machine_name_keep(const char *name);

#endif
