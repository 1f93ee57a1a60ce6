/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "proc-environ.h"
#include "temp-root.h"

#define ENVIRONMENT(literal)                                                                                 \
    {                                                                                                        \
        literal, sizeof(literal)                                                                             \
    }

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        Text environment;
        LauncherNames names;
    } cases[] = {
        {ENVIRONMENT("HOME=/root\0SLURM_JOB_ID=4711\0SLURM_PROCID=3"), {"4711", "3"}},
        /* torchrun below srun: the rank is torchrun's, wherever it stands */
        {ENVIRONMENT("RANK=11\0SLURM_PROCID=1\0SLURM_JOB_ID=4711\0TORCHELASTIC_RUN_ID=mine"), {"4711", "11"}},
        {ENVIRONMENT("SLURM_PROCID=1\0RANK=11"), {"", "11"}},
        {ENVIRONMENT("TORCHELASTIC_RUN_ID=none\0RANK=0"), {"", "0"}},
        {ENVIRONMENT("TORCHELASTIC_RUN_ID=resnet-50:a.b@c[1]\0RANK=1234567"),
         {"resnet-50:a.b@c[1]", "1234567"}},
        {ENVIRONMENT("OMPI_COMM_WORLD_RANK=5\0PBS_JOBID=12.server"), {"12.server", "5"}},
        {ENVIRONMENT("XRANK=1\0RANKS=2\0RANK\0RANK=\0RANK=-1\0RANK= 1\0RANK=0x1\0RANK=12345678"), {"", ""}},
        {ENVIRONMENT("SLURM_JOB_ID=a b\0PBS_JOBID=\"\0LSB_JOBID=\xc3\xa9\0TORCHELASTIC_RUN_ID="), {"", ""}},
        {ENVIRONMENT("SLURM_JOB_ID=0123456789012345678901234567890123456789012345678901234567890123"),
         {"", ""}},
        {ENVIRONMENT("SLURM_JOB_ID=012345678901234567890123456789012345678901234567890123456789012"),
         {"012345678901234567890123456789012345678901234567890123456789012", ""}},
        {{"RANK=7", 6}, {"", "7"}}, /* cut off before its NUL */
        {{"", 0}, {"", ""}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        LauncherNames names = launcher_names_parse(cases[i].environment);
        assert_string_equal(names.job, cases[i].names.job);
        assert_string_equal(names.rank, cases[i].names.rank);
    }
}

static void test_read(void **state)
{
    (void)state;
    _cleanup_root_ Root root = ROOT_NONE;
    LauncherNames names;
    assert_int_equal(root_open(NULL, &root), 0);
    assert_int_equal(launcher_names_read(&root, getpid(), &names), 0);
    assert_int_equal(launcher_names_read(&root, 1 << 30, &names), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parse), cmocka_unit_test(test_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
