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
        {ENVIRONMENT("PMIX_NAMESPACE=prterun-n1-7@1\0PMIX_RANK=2\0PMI_SIZE=4"),
         {"prterun-n1-7@1", "2", "", "", "4", .launcher = LAUNCHER_MPIRUN}},
        {ENVIRONMENT("GROUP_RANK=1\0SLURM_NODEID=0\0SLURMD_NODENAME=n-17\0WORLD_SIZE=16\0RANK=9\0"
                     "SLURM_STEP_NUM_TASKS=2\0TORCHELASTIC_RESTART_COUNT=1\0TORCHELASTIC_MAX_RESTARTS=3"),
         {"", "9", "n-17", "1", "16", "1", "3", LAUNCHER_TORCHRUN}},
        /* a batch script is one process, whatever was asked for */
        {ENVIRONMENT("SLURM_PROCID=0\0SLURM_NTASKS=64\0SLURM_RESTART_COUNT=2"),
         {"", "0", "", "", "", "2", "", LAUNCHER_SRUN}},
        {{"RANK=7", 6}, {"", "7"}}, /* cut off before its NUL */
        {{"", 0}, {"", ""}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        LauncherNames names = launcher_names_parse(cases[i].environment);
        assert_string_equal(names.job, cases[i].names.job);
        assert_string_equal(names.rank, cases[i].names.rank);
        assert_string_equal(names.node, cases[i].names.node);
        assert_string_equal(names.node_number, cases[i].names.node_number);
        assert_string_equal(names.ranks, cases[i].names.ranks);
        assert_string_equal(names.restarts, cases[i].names.restarts);
        assert_string_equal(names.restarts_most, cases[i].names.restarts_most);
        if (cases[i].names.launcher != LAUNCHER_NONE)
            assert_int_equal(names.launcher, cases[i].names.launcher);
        assert_int_equal(names.launcher == LAUNCHER_NONE, names.rank[0] == '\0');
    }
}

static void test_number(void **state)
{
    (void)state;
    assert_int_equal(launcher_number("17"), 17);
    assert_int_equal(launcher_number(""), U64_UNKNOWN);
    assert_string_equal(launcher_name(LAUNCHER_SRUN), "srun");
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parse), cmocka_unit_test(test_number),
                                       cmocka_unit_test(test_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
