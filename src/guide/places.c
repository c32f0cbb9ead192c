/* places.c: see places.h. A connection is dropped by shutting its socket down; the thread that
 * serves it sees the end, closes it, and gives its place back. */
#include "guide/places.h"

#include "base/clock.h"

#include <sys/socket.h>

/* The one that has gone longest without completing a request; of those that read, where it is asked
 * for. NULL: there is none that was not dropped already. */
static struct place *stalest(struct places *places, bool reads)
{
    struct place *found = NULL;
    for (size_t i = 0; i < PLACES_MOST; i++) {
        struct place *place = &places->list[i];
        if (place->taken && place->active_ns != UINT64_MAX && (!reads || place->bytes) &&
            (!found || place->active_ns < found->active_ns))
            found = place;
    }
    return found;
}

static void drop(struct place *place)
{
    if (!place)
        return;
    shutdown(place->fd, SHUT_RDWR);
    place->active_ns = UINT64_MAX; /* not to be chosen again */
}

/* The list is never full below the library's own limit. */
struct place *places_take(struct places *places, int fd, size_t *excess)
{
    struct place *place = places->list;
    pthread_mutex_lock(&places->lock);
    while (place < places->list + PLACES_MOST && place->taken)
        place++;
    if (place == places->list + PLACES_MOST) {
        place = NULL;
    } else {
        if (places->taken >= PLACES_KEPT)
            drop(stalest(places, false));
        *place = (struct place){.fd = fd, .taken = true, .active_ns = clock_ns()};
        places->taken++;
    }
    *excess = places->taken > PLACES_KEPT ? places->taken - PLACES_KEPT : 0;
    pthread_mutex_unlock(&places->lock);
    return place;
}

static void forget_answer(struct places *places, struct place *place)
{
    places->bytes -= place->bytes;
    place->bytes = 0;
}

void places_leave(struct places *places, struct place *place)
{
    pthread_mutex_lock(&places->lock);
    forget_answer(places, place);
    place->taken = false;
    places->taken--;
    pthread_mutex_unlock(&places->lock);
}

void places_note(struct places *places, struct place *place)
{
    pthread_mutex_lock(&places->lock);
    if (place->active_ns != UINT64_MAX)
        place->active_ns = clock_ns();
    pthread_mutex_unlock(&places->lock);
}

bool places_send(struct places *places, struct place *place, size_t bytes)
{
    pthread_mutex_lock(&places->lock);
    bool fits = bytes <= PLACES_SMALL || bytes <= PLACES_BYTES - places->bytes;
    if (fits && bytes > PLACES_SMALL) {
        place->bytes = bytes;
        places->bytes += bytes;
    }
    struct place *slow = fits ? NULL : stalest(places, true);
    if (slow && clock_ns() - slow->active_ns > PLACES_PATIENCE_NS)
        drop(slow);
    pthread_mutex_unlock(&places->lock);
    return fits;
}

void places_sent(struct places *places, struct place *place)
{
    pthread_mutex_lock(&places->lock);
    forget_answer(places, place);
    pthread_mutex_unlock(&places->lock);
}
