/* clock.h: time. Everything is nanoseconds. */
#ifndef PRONY_BASE_CLOCK_H
#define PRONY_BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_ns(void);      /* monotonic, for durations */
uint64_t clock_cpu_ns(void);  /* CPU time of this process, all threads, user + system */
uint64_t clock_cost_ns(void); /* the cost of a clock_ns(), rounded up; measured once */
void clock_sleep_ns(uint64_t nanoseconds);

/* The wall clock as "2026-11-15T10:03:58Z"; text holds at least CLOCK_STAMP bytes. */
enum { CLOCK_STAMP = 21 };
void clock_stamp(char *text);
void clock_stamp_of(int64_t seconds, char *text); /* … at any time since 1970 */

#endif
