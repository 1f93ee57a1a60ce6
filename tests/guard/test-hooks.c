/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange of addresses (native-hooks.c), in libraries that are easily broken by it. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "half-loaded.h"
#include "native-hooks.h"

static int seen;
static NativeFiles files;

static void *ours_calloc(size_t n, size_t size)
{
    seen++;
    return calloc(n, size);
}

static void *ours_malloc(size_t size)
{
    seen++;
    return malloc(size);
}

static void ours_free(void *pointer)
{
    seen++;
    free(pointer);
}

static NativeHook hooks[] = {{.name = "malloc", .ours = ours_malloc},
                             {.name = "calloc", .ours = ours_calloc},
                             {.name = "free", .ours = ours_free}};
enum { HOOKS = sizeof hooks / sizeof hooks[0] };

static size_t exchange(bool back)
{
    for (size_t i = 0; i < HOOKS; i++)
        hooks[i].real = native_function_find(hooks[i].name);
    return native_hooks_exchange(hooks, HOOKS, back, &files);
}

static void window(void)
{
    (void)exchange(false);
    (void)exchange(true);
}

static void *library_open(const char *variable, int flags)
{
    void *library = dlopen(getenv(variable), flags);
    if (!library)
        fail_msg("%s", dlerror());
    return library;
}

static void test_own_allocator_is_kept(void **state)
{
    (void)state;
    void *library = library_open("OWN_MALLOC", RTLD_LAZY | RTLD_DEEPBIND);
    bool (*own_is_kept)(void) = (bool (*)(void))dlsym(library, "own_is_kept");
    (void)exchange(false);
    bool kept = own_is_kept();
    (void)exchange(true);
    assert_true(kept);
    assert_true(own_is_kept());
}

static void test_half_loaded_library_is_left_alone(void **state)
{
    (void)state;
    void *word = mmap(HALF_LOADED_WORD, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    assert_ptr_equal(word, HALF_LOADED_WORD);
    HALF_LOADED_WORD->run = window;
    void *library = library_open("HALF_LOADED", RTLD_NOW);
    int (*half_use)(void) = (int (*)(void))dlsym(library, "half_use");
    assert_int_equal(half_use(), 1);
    assert_int_equal(seen, 0);

    assert_true(exchange(false) > 0);
    assert_int_equal(half_use(), 1);
    assert_true(exchange(false) > 0); /* as in a child that was forked meanwhile */
    assert_true(exchange(true) > 0);
    int before = seen;
    assert_int_equal(half_use(), 1);
    assert_true(before >= 2);
    assert_int_equal(seen, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_allocator_is_kept),
        cmocka_unit_test(test_half_loaded_library_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
