/* device_info.h: what an opened device is, as its backend tells. A plain value. */
#ifndef PRONY_CORE_DEVICE_INFO_H
#define PRONY_CORE_DEVICE_INFO_H

#include <stdint.h>

enum { DEVICE_NAME = 128, DEVICE_VERSION = 32, DEVICE_SOFTWARE = 4 };

/* A library and its version. */
struct device_software {
    const char *name; /* static; NULL: there are no more */
    char version[DEVICE_VERSION];
};

/* What it does not tell is 0, NULL or "". */
struct device_info {
    char name[DEVICE_NAME];  /* "NVIDIA H200" */
    int threads;             /* that compute */
    const char *isa, *pages; /* values of these axes; static */
    uint64_t memory_bytes, l2_bytes;
    int multiprocessors;
    char compute_capability[DEVICE_VERSION], driver[DEVICE_VERSION]; /* "9.0", "13.0" */
    struct device_software software[DEVICE_SOFTWARE]; /* the libraries that it computes with */
};

#endif
