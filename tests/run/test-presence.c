/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "presence.h"

#define LIBRARY "/opt/lib/libshmguard-preload.so"

static void test_environment(void **state)
{
    (void)state;
    static const struct {
        Text environment;
        Absence mapped, missing;
    } cases[] = {
        {TEXT(""), ABSENCE_NO_SOCKET, ABSENCE_NO_PRELOAD},
        {TEXT("A=b\0LD_PRELOAD=" LIBRARY "\0SHMGUARD_SOCKET=ours\0"), ABSENCE_NONE, ABSENCE_UNKNOWN},
        {TEXT("LD_PRELOAD=jemalloc.so:" LIBRARY "\0SHMGUARD_SOCKET=ours"), ABSENCE_NONE, ABSENCE_UNKNOWN},
        {TEXT("LD_PRELOAD=\0SHMGUARD_SOCKET=\0"), ABSENCE_NO_SOCKET, ABSENCE_NO_PRELOAD},
        {TEXT("LD_PRELOAD=jemalloc.so\0SHMGUARD_SOCKET=theirs\0"), ABSENCE_INNER_RUN, ABSENCE_OTHER_PRELOAD},
        {TEXT("LD_PRELOAD=" LIBRARY "\0LD_PRELOAD=a.so\0"), ABSENCE_NO_SOCKET, ABSENCE_OTHER_PRELOAD},
        {TEXT("SHMGUARD=off\0LD_PRELOAD=" LIBRARY "\0SHMGUARD_SOCKET=ours\0"), ABSENCE_OFF, ABSENCE_OFF},
        {TEXT("SHMGUARD=/usr/bin/shmguard\0SHMGUARD_SOCKET=ours\0"), ABSENCE_NONE, ABSENCE_NO_PRELOAD},
        {TEXT("SHMGUARD\0LD_PRELOAD\0LD_PRELOADED=" LIBRARY), ABSENCE_NO_SOCKET, ABSENCE_NO_PRELOAD},
        {TEXT("\0\0\0="), ABSENCE_NO_SOCKET, ABSENCE_NO_PRELOAD},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(absence_of_mapped(cases[i].environment, "ours"), cases[i].mapped);
        assert_int_equal(absence_of_missing(cases[i].environment, LIBRARY), cases[i].missing);
    }
}

/* Starts a process that, seen from outside, has our library mapped. file NULL: without it. */
static int process_start(const char *file)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int fd = file ? open(file, O_RDONLY) : -1;
        if (file && mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
            _exit(1);
        close(ends[1]);
        for (;;)
            pause();
    }
    close(ends[1]);
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), 0); /* end of file: the child is running */
    close(ends[0]);
    return pid;
}

static void test_processes(void **state)
{
    (void)state;
    char directory[] = "/tmp/shmguard-test-XXXXXX";
    char file[64];
    assert_non_null(mkdtemp(directory));
    snprintf(file, sizeof file, "%s/libshmguard-preload.so", directory);
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
    assert_int_equal(ftruncate(fd, 4096), 0);
    close(fd);

    Root root;
    _cleanup_buffer_ Buffer scratch = {0};
    assert_int_equal(root_open(NULL, &root), 0);
    int with = process_start(file);
    int without = process_start(NULL);
    PresenceWish wish = {LIBRARY, "ours"}; /* any copy will do */
    Presence found = {0};
    presence_search(&root, with, 0, 1, &wish, &scratch, &found);
    assert_true(found.known && found.loaded);
    assert_int_equal(found.why, ABSENCE_NO_SOCKET);
    Presence missed = {0};
    presence_search(&root, without, 0, 1, &wish, &scratch, &missed); /* at once: its C library is loaded */
    assert_true(missed.known && !missed.loaded);
    assert_int_equal(missed.why, ABSENCE_NO_PRELOAD);

    Presence inherited = {0};
    bool can_ask = presence_inherit(&root, with, &found, &wish, &scratch, &inherited);
    if (can_ask) /* before Linux 6.11 the caller searches instead */
        assert_true(inherited.known && inherited.loaded && inherited.why == found.why);
    assert_false(presence_inherit(&root, without, &found, &wish, &scratch, &inherited));
    int another = process_start(NULL); /* also forked from us */
    inherited = (Presence){0};
    assert_int_equal(presence_inherit(&root, another, &missed, &wish, &scratch, &inherited), can_ask);
    if (can_ask)
        assert_true(inherited.known && !inherited.loaded && inherited.why == missed.why);
    kill(another, SIGKILL);
    assert_int_equal(waitpid(another, NULL, 0), another);

    kill(with, SIGKILL);
    kill(without, SIGKILL);
    assert_int_equal(waitpid(with, NULL, 0), with);
    assert_int_equal(waitpid(without, NULL, 0), without);
    Presence gone = {0};
    presence_search(&root, with, 0, 1, &wish, &scratch, &gone);
    assert_false(gone.known);
    root_close(&root);
    unlink(file);
    rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
