/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the journal costs: journal-cost SECONDS COMMAND [ARG…]
 *
 * Runs the command as the supervisor would, and looks at it once a second. Measuring starts when no new
 * process has appeared for SETTLED looks. Prints one line of JSON: the number of processes, the CPU time per
 * look in milliseconds, and the CPU time of reading one small file of /proc READS times, taken right after
 * each look: it shows how fast the machine is at that moment.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "journal.h"

enum { SECONDS_MAX = 3600, SETTLED = 3, UNSETTLED_MAX = 60, READS = 1000 };

static double cpu_milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void read_often(void)
{
    char text[1024];
    for (int i = 0; i < READS; i++) {
        int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, text, sizeof text) <= 0)
            exit(70);
        close(fd);
    }
}

static int double_order(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

int main(int argc, char **argv)
{
    static double looks[SECONDS_MAX];
    int seconds = argc > 2 ? atoi(argv[1]) : 0;
    if (seconds < 1 || seconds > SECONDS_MAX) {
        fprintf(stderr, "usage: journal-cost SECONDS COMMAND [ARG...]\n");
        return 64;
    }
    Root root;
    Journal *journal = NULL;
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (root_open(NULL, &root) < 0 || journal_open(&root, &journal) < 0)
        return 70;
    journal_expect(journal, "/none/libshmguard-preload.so", "none"); /* every process is searched for it */
    int pid = fork();
    if (pid == 0) {
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    journal_begin(journal, pid);
    uint64_t before_processes = 1;
    for (int i = 0, settled = 0; i < UNSETTLED_MAX && settled < SETTLED; i++) {
        sleep(1);
        journal_tick(journal);
        uint64_t processes = journal_peaks(journal).processes;
        settled = processes > 1 && processes == before_processes ? settled + 1 : 0;
        before_processes = processes;
    }
    double sum = 0;
    double reads = 0;
    for (int i = 0; i < seconds; i++) {
        sleep(1);
        double before = cpu_milliseconds();
        journal_tick(journal);
        looks[i] = cpu_milliseconds() - before;
        sum += looks[i];
        before = cpu_milliseconds();
        read_often();
        reads += cpu_milliseconds() - before;
    }
    qsort(looks, (size_t)seconds, sizeof looks[0], double_order);
    Peaks peaks = journal_peaks(journal);
    printf("{\"processes\": %llu, \"fds\": %llu, \"mean_ms\": %.3f, \"median_ms\": %.3f, \"most_ms\": %.3f, "
           "\"reads_ms\": %.3f}\n",
           (unsigned long long)peaks.processes, (unsigned long long)peaks.fds, sum / seconds,
           looks[seconds / 2], looks[seconds - 1], reads / seconds);
    kill(pid, SIGTERM);
    waitpid(pid, NULL, 0);
    journal_free(journal);
    root_close(&root);
    return 0;
}
