/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "macro.h"
#include "names.h"

/* Numbers that cannot be open descriptors: the table closes them, which does nothing. */
static int fd_of(unsigned i)
{
    return 1 << 29 | (int)i;
}

static void test_empty(void **state)
{
    (void)state;
    Names names = {0};
    assert_int_equal(names_find(&names, "/torch_1_2_3"), -ENOENT);
    assert_int_equal(names_remove(&names, "/torch_1_2_3"), -ENOENT);
    names_free(&names);
}

/* Compares the table with a plain array while names come and go. A name whose slot was taken must still be
 * found after the name in that slot is removed. */
static void test_like_an_array(void **state)
{
    (void)state;
    enum { NAMES = 3000, STEPS = 60000 };
    int means[NAMES];
    size_t n = 0;
    Names names = {0};
    for (unsigned i = 0; i < NAMES; i++)
        means[i] = -ENOENT;
    uint32_t random = 1;
    for (unsigned step = 0; step < STEPS; step++) {
        random = random * 1664525 + 1013904223;
        unsigned i = random / 65536 % NAMES;
        char name[32];
        snprintf(name, sizeof name, "/torch_%u_%u", i % 7, i);
        assert_int_equal(names_find(&names, name), means[i]);
        if (random >> 31) {
            assert_int_equal(names_put(&names, name, fd_of(step), false), 0);
            n += means[i] < 0;
            means[i] = fd_of(step);
        } else {
            assert_int_equal(names_remove(&names, name), means[i] < 0 ? -ENOENT : 0);
            n -= means[i] >= 0;
            means[i] = -ENOENT;
        }
        assert_int_equal(names.n, n);
        assert_true(names.n * 4 <= names.capacity * 3);
    }
    names_free(&names);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void test_owns_descriptors(void **state)
{
    (void)state;
    Names names = {0};
    int fds[4];
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(names_put(&names, "/a", fds[0], false), 0);
    assert_int_equal(names_put(&names, "/a", fds[1], true), 0);
    assert_false(is_open(fds[0]));
    assert_int_equal(names_put(&names, "/b", fds[2], false), 0);
    assert_int_equal(names_put(&names, "/c", fds[3], false), 0);
    assert_int_equal(names_remove(&names, "/b"), 0);
    assert_false(is_open(fds[2]));
    assert_true(is_open(fds[1]) && is_open(fds[3]));
    names_free(&names);
    assert_false(is_open(fds[1]) || is_open(fds[3]));
}

static void test_many(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    Names names = {0};
    char name[32];
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "/torch_%u_%u_%u", 1000 + i % 64, i * 2654435761U, i);
        assert_int_equal(names_put(&names, name, fd_of(i), false), 0);
    }
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "/torch_%u_%u_%u", 1000 + i % 64, i * 2654435761U, i);
        assert_int_equal(names_find(&names, name), fd_of(i));
        assert_int_equal(names_remove(&names, name), 0);
    }
    assert_int_equal(names.n, 0);
    names_free(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_like_an_array),
        cmocka_unit_test(test_owns_descriptors),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
