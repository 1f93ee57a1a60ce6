/* SPDX-License-Identifier: Apache-2.0 */
/* The guard and its test in one program, built with GUARD_CHECKS: a table that was torn ends the process when
 * the lock is given back. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "guard.h"
#include "torn.h"

static bool tensor_make(const char *name)
{
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    return fd >= 0 && ftruncate(fd, SEGMENT_MIN_BYTES) == 0 &&
           mmap(NULL, SEGMENT_MIN_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED &&
           shm_unlink(name) == 0;
}

/* The status of a process that tears its tables while it has the lock. */
static int status_after(void (*tear)(void))
{
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0};
        setrlimit(RLIMIT_CORE, &none);
        if (!tensor_make("/torch_1_1") || !tensor_make("/torch_1_2") || !guard_enter())
            _exit(1);
        if (tear)
            tear();
        guard_leave(false);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_whole_tables_pass(void **state)
{
    (void)state;
    assert_int_equal(status_after(NULL), 0);
}

static void test_torn_tables_are_noticed(void **state)
{
    const Tear *tears = *state;
    for (; tears->tear; tears++) {
        int status = status_after(tears->tear);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
            fail_msg("not noticed: %s", tears->what);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_tables_pass),
        cmocka_unit_test_prestate(test_torn_tables_are_noticed, (void *)pool_tears),
        cmocka_unit_test_prestate(test_torn_tables_are_noticed, (void *)views_tears),
        cmocka_unit_test_prestate(test_torn_tables_are_noticed, (void *)pins_tears),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
