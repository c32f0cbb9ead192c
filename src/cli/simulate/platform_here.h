/* platform_here.h: this machine as a platform: its workers are processes, by measured figures. */
#ifndef PRONY_CLI_PLATFORM_HERE_H
#define PRONY_CLI_PLATFORM_HERE_H

#include "simulate/platform.h"

/* Measures for a moment what messages between two processes take. */
enum status platform_here(struct platform *out);

#endif
