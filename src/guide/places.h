/* places.h: the connections of a server: how many there are, how long each has kept its place, and
 * how many bytes of answers wait to be sent. Any thread may call any of these. */
#ifndef PRONY_GUIDE_PLACES_H
#define PRONY_GUIDE_PLACES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PLACES_MOST = 256,               /* connections, never more */
    PLACES_KEPT = 192,               /* with more than these the stalest is dropped */
    PLACES_BYTES = 128 * 1048576,    /* of answers on their way, of … */
    PLACES_SMALL = 65536,            /* … more than so many bytes each */
    PLACES_PATIENCE_NS = 2000000000, /* for which an answer may be read slowly when others wait */
};

struct place {
    int fd;
    bool taken;
    uint64_t active_ns; /* when it was made or its last request was complete */
    size_t bytes;       /* of its answer, on its way */
    /* Of the request that its thread reads: */
    size_t address; /* bytes */
    bool path_cut;  /* a NUL is in the path */
};

struct places {
    pthread_mutex_t lock; /* of what follows */
    struct place list[PLACES_MOST];
    size_t taken, bytes;
};

/* A place for a connection; the stalest is dropped where too many are taken. NULL: all are. *excess
 * is by how many there are too many until the dropped ones are gone. */
struct place *places_take(struct places *places, int fd, size_t *excess);
void places_leave(struct places *places, struct place *place);
/* A request is complete. */
void places_note(struct places *places, struct place *place);
/* May an answer of so many bytes be sent? If not, the stalest reader is dropped where it has had
 * time enough, so that another try succeeds. */
bool places_send(struct places *places, struct place *place, size_t bytes);
void places_sent(struct places *places, struct place *place);

#endif
