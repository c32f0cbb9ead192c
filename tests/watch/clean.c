/* Programs without a fault, for tools/clean-check: clean KIND SECONDS. Each kind uses the machine
 * as it should, so that advice has nothing to say. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LENGTH = 1 << 18 };
static float data[LENGTH];
static double end_s;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static float sweep(float *values, int length)
{
    float sum = 0;
    for (int i = 0; i < length; i++) {
        values[i] = sqrtf(values[i] * 0.5F + 1);
        sum += values[i];
    }
    return sum;
}

/* One thread computes on memory that it keeps. */
static void loop(void)
{
    while (now_s() < end_s)
        sweep(data, LENGTH);
}

/* A tree on the heap: many small pieces that come and go, none to the system. */
static void heap(void)
{
    void *kept[512] = {NULL};
    for (unsigned i = 0; now_s() < end_s; i++)
        for (unsigned k = 0; k < 4096; k++) {
            void **piece = &kept[(i * 31 + k * 17) % 512];
            free(*piece);
            *piece = malloc(16 + (i + k) % 240);
            memset(*piece, 1, 16);
        }
}

/* As many threads as asked, each with work of its own; the first waits for the others, asleep. */
static void *worker(void *part)
{
    while (now_s() < end_s)
        sweep(part, LENGTH / 4);
    return NULL;
}

static void pool(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, worker, data + i * (LENGTH / 2));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

/* It wakes for a little work, as a server does. */
static void sleeper(void)
{
    while (now_s() < end_s) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        sweep(data, 4096);
    }
}

/* It writes a file and reads it again, both from memory. */
static void files(void)
{
    char path[] = "/tmp/clean.XXXXXX";
    const int file = mkstemp(path);
    unlink(path);
    while (file >= 0 && now_s() < end_s) {
        if (pwrite(file, data, sizeof data, 0) < 0 || pread(file, data, sizeof data, 0) < 0)
            break;
        sweep(data, LENGTH);
    }
    close(file);
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } kinds[] = {
        {"loop", loop}, {"heap", heap}, {"pool", pool}, {"sleeper", sleeper}, {"files", files}};
    end_s = now_s() + (count > 2 ? atof(words[2]) : 3);
    for (size_t i = 0; count > 1 && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(words[1], kinds[i].name) == 0) {
            kinds[i].run();
            return 0;
        }
    fputs("expected one of loop, heap, pool, sleeper, files\n", stderr);
    return 2;
}
