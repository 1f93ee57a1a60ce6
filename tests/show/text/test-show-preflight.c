/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "show-preflight.h"

static void test_threats(void **state)
{
    (void)state;
    Preflight preflight = {
        .items = {{"shm-too-small", SEVERITY_CRITICAL, "/dev/shm has only 64.0 MiB for all batches in flight",
                   "Remove --no-guard: the guard keeps tensors out of it."},
                  {"disk-low", SEVERITY_WARNING, "a \033[2Jtext", "Do something."}},
        .n = 2};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    Terminal terminal = {.out = out, .columns = 80};
    show_preflight(&terminal, &preflight);
    preflight.n = 0;
    show_preflight(&terminal, &preflight);
    fclose(out);
    assert_string_equal(text,
                        "shmguard: critical: /dev/shm has only 64.0 MiB for all batches in flight. Remove\n"
                        "          --no-guard: the guard keeps tensors out of it.\n"
                        "shmguard: warning: a \\x1b[2Jtext. Do something.\n");
    free(text);
}

static void test_fine(void **state)
{
    (void)state;
    Machine machine = {
        .memory = {.available_bytes = UINT64_C(48) << 30},
        .shm = {.state = SHM_OK, .size_bytes = 64 << 20, .available_bytes = 63 << 20},
        .cgroup = {.memory_limit_bytes = U64_UNKNOWN, .memory_room_bytes = U64_UNKNOWN},
        .has_disk = true,
        .disk = {.available_bytes = UINT64_C(280) << 30},
    };
    Machine unknown = {.memory = {.available_bytes = U64_UNKNOWN},
                       .cgroup = {.memory_limit_bytes = U64_UNKNOWN, .memory_room_bytes = U64_UNKNOWN}};
    PreflightPlan guarded = {.guarded = true};
    PreflightPlan own = {.private_shm_bytes = UINT64_C(8) << 30};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    Terminal terminal = {.out = out, .columns = 80};
    show_preflight_fine(&terminal, &machine, &guarded);
    show_preflight_fine(&terminal, &machine, &own);
    show_preflight_fine(&terminal, &unknown, &guarded);
    fclose(out);
    assert_string_equal(text,
                        "shmguard: found no threat to this job. Memory available: 48.0 GiB. Free in\n"
                        "          /dev/shm: 63.0 MiB (tensors do not need it). Free on the disk: 280.0\n"
                        "          GiB.\n"
                        "shmguard: found no threat to this job. Memory available: 48.0 GiB. Free in the\n"
                        "          job's own /dev/shm: 8.0 GiB. Free on the disk: 280.0 GiB.\n"
                        "shmguard: found no threat to this job.\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threats), cmocka_unit_test(test_fine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
