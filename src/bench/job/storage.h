/* storage.h: what kind of storage a file lies on: "nvme", "ssd", "hdd", "network", "memory".
 *
 * The file system tells networks and memory; the device below it the rest, by its name and by
 * queue/rotational in sysfs. Behind a virtual disk anything may be: there it is "". */
#ifndef PRONY_BENCH_JOB_STORAGE_H
#define PRONY_BENCH_JOB_STORAGE_H

/* Of an open file; "" where nobody tells. */
const char *storage_of_file(int file);

/* By the magic number of a file system, as statfs has it; "" where the device decides. */
const char *storage_of_system(long type);
/* By a block device, as stat numbers it. `sys` is what /sys is. */
const char *storage_of_device(const char *sys, unsigned major, unsigned minor);

#endif
