/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "temp-root.h"
#include "threads.h"

static int visit(Text name, void *context)
{
    Buffer *names = context;
    assert_int_equal(buffer_printf(names, "[%.*s]", (int)name.size, name.data), 0);
    return text_equal(name, "last") ? 7 : 0;
}

static void test_names(void **state)
{
    (void)state;
    _cleanup_buffer_ Buffer names = {0};
    TempRoot made = temp_root_make();
    temp_root_write(&made, "proc/12/task/12/comm", "python\n");
    temp_root_write(&made, "proc/12/task/junk/comm", "no thread\n");
    temp_root_write(&made, "proc/12/task/14/other", "it has just ended\n");
    temp_root_write(&made, "proc/13/task/13/comm", "last\n");
    (void)temp_root_open(&made);
    assert_int_equal(threads_visit(&made.root, 12, visit, &names), 0);
    assert_string_equal(buffer_text(&names), "[python]");
    assert_int_equal(threads_visit(&made.root, 13, visit, &names), 7);
    assert_int_equal(threads_visit(&made.root, 99, visit, &names), -ENOENT);
    temp_root_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
