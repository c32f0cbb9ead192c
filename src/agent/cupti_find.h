/* cupti_find.h: finds CUPTI for the agent, in a program that may have its own. */
#ifndef PRONY_AGENT_CUPTI_FIND_H
#define PRONY_AGENT_CUPTI_FIND_H

#include "agent/cupti_part.h"

#include <stdbool.h>

/* False: there is none that can be used, and `reason` says why. */
bool cupti_find(struct cupti *cupti, char *reason, size_t room);

/* The path of one that can be loaded here, without loading it into this process for good; false:
 * there is none. */
bool cupti_look(char *path, size_t room);

#endif
