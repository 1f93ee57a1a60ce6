/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "shared-stats.h"

/* A reader finds what a supervisor has published. Here this process is both. */
static void test_figures_come_across(void **state)
{
    (void)state;
    Root root;
    assert_int_equal(root_open(NULL, &root), 0);
    assert_int_equal(shared_stats_find(&root, getpid()), -ENOENT);
    int fd = shared_stats_make();
    assert_true(fd >= 0);
    int number = shared_stats_find(&root, getpid());
    assert_int_equal(number, fd);

    GuardFigures read = {.waits = 77};
    assert_int_equal(shared_stats_read(&root, getpid(), number, &read), -EAGAIN);
    assert_int_equal(read.waits, 77);
    for (uint64_t i = 1; i < 4; i++) {
        GuardFigures wrote = {.segments_created = i,
                              .segments_reused = 2 * i,
                              .bytes_now = 3 * i,
                              .budget_bytes = i == 1 ? UINT64_MAX : 4 * i,
                              .waiting = 5 * i,
                              .waits = 6 * i,
                              .refused = 7 * i,
                              .batches = 8 * i};
        shared_stats_write(fd, &wrote);
        assert_int_equal(shared_stats_read(&root, getpid(), number, &read), 0);
        assert_memory_equal(&read, &wrote, sizeof read);
    }
    shared_stats_write(-EBADF, &read); /* when no memfd could be created */
    close(fd);
    assert_true(shared_stats_read(&root, getpid(), number, &read) < 0);
    root_close(&root);
}

/* A file with the same name that another program has made. */
static void test_strange_pages(void **state)
{
    (void)state;
    Root root;
    static const char *const contents[] = {"x", "a text that is longer than all of the figures together, "
                                                "and has neither their mark nor their version in it"};
    assert_int_equal(root_open(NULL, &root), 0);
    for (size_t i = 0; i < ARRAY_SIZE(contents); i++) {
        GuardFigures read = {.waits = 77};
        int fd = memfd_create("shmguard-figures", MFD_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, contents[i], strlen(contents[i])), strlen(contents[i]));
        assert_int_equal(shared_stats_read(&root, getpid(), shared_stats_find(&root, getpid()), &read),
                         -EPROTO);
        assert_int_equal(read.waits, 77);
        close(fd);
    }
    root_close(&root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures_come_across),
        cmocka_unit_test(test_strange_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
