/* safetensors.h: parameters in a file, in the published layout that other frameworks read:
 *
 *     8 bytes   length of the header, little-endian
 *     header    JSON: {"__metadata__": {key: text}, name: {"dtype", "shape", "data_offsets"} …}
 *     data      the tensors' bytes, without gaps; offsets count from here
 *
 * A weight file has the params and statistics of a network. A checkpoint also has the run's state
 * (names prefixed with "state.") and its control block (metadata "control.step" …), so that the run
 * goes on as if it had never stopped. */
#ifndef PRONY_NN_FORMATS_SAFETENSORS_H
#define PRONY_NN_FORMATS_SAFETENSORS_H

#include "base/arena.h"
#include "base/json.h"
#include "core/params.h"

enum safetensors_content { SAFETENSORS_WEIGHTS, SAFETENSORS_CHECKPOINT };

struct safetensors_note {
    const char *key, *value;
};

/* Written whole or not at all. */
enum status safetensors_write(const char *path, const struct params *params,
                              enum safetensors_content content,
                              const struct safetensors_note *notes, size_t note_count);

struct safetensors {
    struct arena arena;
    const char *name;    /* of the file, for messages */
    struct json *header; /* checked: every tensor lies within the data, none overlaps another */
    const unsigned char *data;
    size_t data_bytes;
    void *loaded; /* the whole file, when it was opened by path */
};

/* Opens and checks a file; a zeroed *file is filled. */
enum status safetensors_open(const char *path, struct safetensors *file);
/* The same from memory, which must outlive *file. */
enum status safetensors_parse(const char *name, const void *bytes, size_t length,
                              struct safetensors *file);
void safetensors_close(struct safetensors *file); /* fine after a failed open */

/* A metadata value, or NULL. */
const char *safetensors_note(const struct safetensors *file, const char *key);

/* A tensor of the file, as one member of its header says. */
struct safetensors_tensor {
    enum dtype dtype;
    struct shape shape;
    const void *data; /* in the file */
    uint64_t bytes;
};
/* False: it is no tensor of weights, or of a type that prony has not. */
bool safetensors_find(const struct safetensors *file, const struct json *member,
                      struct safetensors_tensor *out);

/* Fills the entries of params, each of which must be there with its type and shape; a tensor that
 * params does not know is refused, but for state when only weights are asked for. */
enum status safetensors_load(const struct safetensors *file, enum safetensors_content content,
                             struct params *params);
/* Fills one entry, also of state; with zeros, if the file does not have it. */
enum status safetensors_load_entry(const struct safetensors *file, struct params *params,
                                   int32_t entry);
/* The weights of one network out of a file of several, where their names begin with `prefix`. */
enum status safetensors_load_part(const struct safetensors *file, const char *prefix,
                                  struct params *params);

#endif
