/* third.c: a third of its time is spent in batch(), two thirds in step(), for as many rounds as it
 * is told. Ends with status 3, so that a test sees whose status it gets. */
#include <stdio.h>
#include <stdlib.h>

void work(long count);
void batch(void);
void step(void);

static volatile double sink;

__attribute__((noinline)) void work(long count)
{
    double sum = 1;
    for (long i = 0; i < count; i++)
        sum = sum * 1.0000001 + 1e-9;
    sink = sum;
}

__attribute__((noinline)) void batch(void)
{
    work(500000);
    __asm__ volatile("");
}

__attribute__((noinline)) void step(void)
{
    work(1000000);
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 100;
    for (long i = 0; i < rounds; i++) {
        batch();
        step();
    }
    puts("its own output");
    return 3;
}
