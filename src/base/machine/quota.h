/* quota.h: how much CPU time and memory the control groups of this process allow it. */
#ifndef PRONY_BASE_MACHINE_QUOTA_H
#define PRONY_BASE_MACHINE_QUOTA_H

/* CPUs' worth of time: the least of all groups from the process's own up to the root. Version 2 of
 * control groups has it in cpu.max, version 1 in cpu.cfs_quota_us. 0: no limit, or none that can be
 * read. `groups` is what /proc/self/cgroup is, `root` what /sys/fs/cgroup is. */
double quota_cpus(const char *groups, const char *root);

/* Bytes, in the same way: the least of memory.max and memory.high, or memory.limit_in_bytes. */
double quota_memory(const char *groups, const char *root);

/* Bytes that the groups still give: the least of limit - use. Cached files that are not in use
 * count as free. At least 1; 0 where there is no limit. */
double quota_memory_left(const char *groups, const char *root);

#endif
