/* crossover.h: from where on is the GPU faster than the CPU? A sweep over batches of a network, or
 * over the width of a stack of layers, with the best backend of both units in turns, and what its
 * records say. */
#ifndef PRONY_BENCH_CROSSOVER_H
#define PRONY_BENCH_CROSSOVER_H

#include "bench/sweep/request.h"
#include "record/tables/table.h"

/* Fills in what the request leaves open: both units, batches, threads, phases, a short time;
 * without models those of growing width. Whether there is a GPU is not asked. */
enum status crossover_ask(const struct registry *registry, struct bench_request *request,
                          struct arena *arena, const char *const **models, int *count);

/* A table for each network, phase and precision (widths: for each batch of them), with the sentence
 * below it. */
enum status crossover_print(const struct table_row *rows, size_t count, bool widths,
                            struct text *out);

#endif
