/* pools.c: as many threads as OPENBLAS_NUM_THREADS says (8) compute in turns, and those that have
 * nothing to do ask again and again whether it is their turn, as the threads of BLAS libraries and
 * of OpenMP do. With more threads than cores, whose turn it is may have to wait for a core. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { ROUNDS = 150, MOST = 64 };
static _Atomic long turn;
static long threads;
static volatile double sink;

static void compute(void)
{
    double sum = 1;
    for (long i = 0; i < 200000; i++)
        sum = sum * 1.0000001 + 1e-9;
    sink = sum;
}

void do_spin(long round);
__attribute__((noinline)) void do_spin(long round)
{
    while (atomic_load(&turn) != round)
        sink = sink + 1;
}

static void *run(void *number)
{
    long mine = (long)number;
    for (long round = mine; round < ROUNDS; round += threads) {
        do_spin(round);
        compute();
        atomic_store(&turn, round + 1);
    }
    return NULL;
}

int main(void)
{
    const char *said = getenv("OPENBLAS_NUM_THREADS");
    pthread_t list[MOST];
    threads = said ? strtol(said, NULL, 10) : 8;
    if (threads < 1 || threads > MOST)
        return 2;
    for (long i = 0; i < threads; i++)
        if (pthread_create(&list[i], NULL, run, (void *)i))
            return 1;
    for (long i = 0; i < threads; i++)
        pthread_join(list[i], NULL);
    return 0;
}
