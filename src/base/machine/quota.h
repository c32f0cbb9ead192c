/* quota.h: how much CPU time and memory the control groups of this process allow it. */
#ifndef PRONY_BASE_MACHINE_QUOTA_H
#define PRONY_BASE_MACHINE_QUOTA_H

/* CPUs' worth of time: the least of all groups from the process's own up to the root, as version 2
 * (cpu.max) or 1 (cpu.cfs_quota_us) of control groups has it; 0: no limit, or none that can be
 * read. `groups` is what /proc/self/cgroup is, `root` what /sys/fs/cgroup is. */
double quota_cpus(const char *groups, const char *root);

/* Bytes, in the same way: the least of memory.max and memory.high, or memory.limit_in_bytes. */
double quota_memory(const char *groups, const char *root);

/* Bytes that the groups still give: the least of limit - use, without cached files that are not in
 * use; at least 1, and 0 where there is no limit. */
double quota_memory_left(const char *groups, const char *root);

#endif
