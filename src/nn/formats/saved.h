/* saved.h: a network out of the file that its training, or quantise, saved: its text, its weights,
 * and how it computes in 8 bits. */
#ifndef PRONY_NN_FORMATS_SAVED_H
#define PRONY_NN_FORMATS_SAVED_H

#include "core/pass/quantise.h"
#include "nn/formats/safetensors.h"
#include "nn/network.h"

/* The notes of such a file that say it, the second only in 8 bits. */
#define SAVED_NETWORK "network"
#define SAVED_QUANTISED "quantisation"

/* Does a file of tensors begin so: with the length of a header of JSON? ONNX may begin alike. */
enum { SAVED_BEGIN = 9 };
bool saved_begins(const char *bytes, size_t count);
bool saved_is(const char *path);
/* The network with its weights. */
enum status saved_read(const char *path, struct network **out);
/* The network alone; the file stays open. */
enum status saved_parse(const struct safetensors *file, struct network **out);

void quantisation_write(const struct quantisation *how, struct text *out);
/* Into the arena; `name` is for messages. */
enum status quantisation_read(const char *name, const char *text, struct arena *arena,
                              struct quantisation **out);

#endif
