/* sample_file.h: rows of numbers as a file: CSV, NPY, or pictures side by side as PGM, by its
 * ending. */
#ifndef PRONY_CLI_SAMPLE_FILE_H
#define PRONY_CLI_SAMPLE_FILE_H

#include "base/status.h"

#include <stdint.h>

struct samples {
    int64_t rows, width; /* numbers a row */
    const float *values; /* [rows, width] */
    int64_t high, wide;  /* of the picture that a row is; 0: it is none */
};

/* Can a file of that ending be written? Better asked before the samples are made. */
enum status sample_file_check(const char *path, const struct samples *samples);
/* Written whole or not at all. Pictures are in shades of grey between the least and the greatest
 * value of all of them. */
enum status sample_file_write(const char *path, const struct samples *samples);

#endif
