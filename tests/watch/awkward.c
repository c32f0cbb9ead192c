/* awkward.c: programs that are hard to watch, one for each word. Ends with 0 where all went as it
 * would have without being watched. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static volatile double sink;

__attribute__((noinline)) static void *spin(void *seconds)
{
    double until = now() + *(double *)seconds;
    while (now() < until)
        for (int i = 0; i < 1000; i++)
            sink = sink + i;
    return NULL;
}

static double half = 0.7;

/* Closes everything, as daemons do, and opens a file of its own: nothing but its own bytes must
 * come to stand there. */
static int descriptors(void)
{
    char path[] = "/tmp/prony_awkward.XXXXXX", bytes[64];
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    int files[8];
    for (int i = 0; i < 8; i++)
        files[i] = dup(0);
    int mine = mkstemp(path);
    spin(&half);
    lseek(mine, 0, SEEK_SET);
    ssize_t found = read(mine, bytes, sizeof bytes);
    unlink(path);
    return found != 0 || files[0] < 3;
}

static volatile sig_atomic_t urgent;
static void on_urgent(int number)
{
    (void)number;
    urgent++;
}

/* Has a handler of its own for the signal that asks. */
static int own_signal(void)
{
    signal(SIGURG, on_urgent);
    spin(&half);
    return 0;
}

static int blocks(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    spin(&half);
    return 0;
}

__attribute__((noinline)) static double deeper(int left)
{
    volatile char room[64];
    room[0] = (char)left;
    if (!left)
        spin(&half);
    return left ? deeper(left - 1) + (room[0] != 0) : 0;
}

/* A thread with hardly any stack. */
static int tiny(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 32768);
    if (pthread_create(&thread, &attributes, spin, &half))
        return 1;
    return pthread_join(thread, NULL);
}

/* Parent and child work at once. */
static int forks(void)
{
    int how = 0;
    pid_t child = fork();
    if (child == 0) {
        spin(&half);
        _exit(0);
    }
    spin(&half);
    waitpid(child, &how, 0);
    return how;
}

/* Becomes another program again and again, while it is being asked. */
static int execs(char **argv, int left)
{
    static double little = 0.02;
    char number[16];
    spin(&little);
    if (!left)
        return 0;
    snprintf(number, sizeof number, "%d", left - 1);
    execl("/proc/self/exe", argv[0], "exec", number, (char *)NULL);
    return 1;
}

static int threads(void)
{
    pthread_t list[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&list[i], NULL, spin, &half))
            return 1;
    for (int i = 0; i < 4; i++)
        pthread_join(list[i], NULL);
    return 0;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    if (!strcmp(way, "descriptors"))
        return descriptors();
    if (!strcmp(way, "signal"))
        return own_signal();
    if (!strcmp(way, "blocks"))
        return blocks();
    if (!strcmp(way, "deep"))
        return deeper(20000) < 0;
    if (!strcmp(way, "tiny"))
        return tiny();
    if (!strcmp(way, "fork"))
        return forks();
    if (!strcmp(way, "exec"))
        return execs(argv, argc > 2 ? (int)strtol(argv[2], NULL, 10) : 40);
    if (!strcmp(way, "threads"))
        return threads();
    return 2;
}
