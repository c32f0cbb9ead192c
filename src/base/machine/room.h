/* room.h: does it fit into memory beside other programs? Asked before much is made: the system
 * promises memory that it does not have, and ends the process that writes to it. */
#ifndef PRONY_BASE_MACHINE_ROOM_H
#define PRONY_BASE_MACHINE_ROOM_H

#include "base/status.h"

/* Bytes that this process may hold now: mem_total() without what others hold. Its own count as
 * free. Reads files: not for every call. */
double room_bytes(void);

/* STATUS_MEMORY when the process cannot hold these bytes, counted with those that it has. The
 * format says what takes them: "out of memory: WHAT; this machine allows 512.0 MB", or how much of
 * that others hold. */
enum status room_check(double bytes, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
