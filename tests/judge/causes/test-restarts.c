/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "restarts.h"

static void test_cases(void **state)
{
    (void)state;
    static const struct {
        const char *words[8];
        const char *environment;
        RestartsBy by;
        uint64_t most;
        const char *launcher;
        LauncherNames names;
    } cases[] = {
        {{"python3", "train.py"}, NULL, RESTARTS_OURS, U64_UNKNOWN, ""},
        {{"torchrun", "train.py"}, NULL, RESTARTS_OURS, U64_UNKNOWN, ""},
        {{"torchrun", "--max-restarts=0", "train.py"}, NULL, RESTARTS_OURS, U64_UNKNOWN, ""},
        {{"torchrun", "--max-restarts=3", "train.py"}, NULL, RESTARTS_COMMAND, 3, "torchrun"},
        {{"/opt/bin/torchrun", "--max_restarts", "2", "train.py"}, NULL, RESTARTS_COMMAND, 2, "torchrun"},
        {{"python3", "-m", "torch.distributed.run", "--max_restarts=1", "x.py"},
         NULL,
         RESTARTS_COMMAND,
         1,
         "torchrun"},
        {{"accelerate", "launch", "--max_restarts", "5", "x.py"}, NULL, RESTARTS_COMMAND, 5, "accelerate"},
        {{"env", "A=b", "torchrun", "x.py"}, "4", RESTARTS_COMMAND, 4, "torchrun"},
        {{"python3", "x.py"}, "4", RESTARTS_OURS, U64_UNKNOWN, ""},
        /* the training's own option, and what is no number */
        {{"torchrun", "x.py", "--max-restarts=3"}, NULL, RESTARTS_OURS, U64_UNKNOWN, ""},
        {{"torchrun", "-m", "x", "--max-restarts=3"}, NULL, RESTARTS_OURS, U64_UNKNOWN, ""},
        {{"torchrun", "--max-restarts=many", "x.py"}, NULL, RESTARTS_OURS, U64_UNKNOWN, ""},
        {{"torchrun", "--max-restarts"}, NULL, RESTARTS_OURS, U64_UNKNOWN, ""},
        {{"torchrun", "--max-restarts-in-a-row=3"}, NULL, RESTARTS_OURS, U64_UNKNOWN, ""},
        /* below a launcher */
        {{"python3", "x.py"},
         NULL,
         RESTARTS_LAUNCHER,
         3,
         "torchrun",
         {.rank = "1", .ranks = "8", .restarts_most = "3", .launcher = LAUNCHER_TORCHRUN}},
        {{"python3", "x.py"},
         NULL,
         RESTARTS_NOBODY,
         0,
         "torchrun",
         {.rank = "1", .ranks = "8", .restarts_most = "0", .launcher = LAUNCHER_TORCHRUN}},
        {{"python3", "x.py"},
         NULL,
         RESTARTS_NOBODY,
         U64_UNKNOWN,
         "srun",
         {.rank = "1", .ranks = "8", .launcher = LAUNCHER_SRUN}},
        {{"python3", "x.py"}, NULL, RESTARTS_OURS, U64_UNKNOWN, "", {.rank = "0", .ranks = "1"}},
        {{"python3", "x.py"}, NULL, RESTARTS_OURS, U64_UNKNOWN, "", {.rank = "0", .launcher = LAUNCHER_SRUN}},
        /* srun starts one torchrun on each node: that one starts the job again */
        {{"torchrun", "--max-restarts=3", "x.py"},
         NULL,
         RESTARTS_COMMAND,
         3,
         "torchrun",
         {.rank = "0", .ranks = "2", .launcher = LAUNCHER_SRUN}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Restarts restarts =
            restarts_judge((char *const *)cases[i].words, cases[i].environment, &cases[i].names);
        if (restarts.by != cases[i].by || restarts.most != cases[i].most ||
            strcmp(restarts.launcher, cases[i].launcher) != 0)
            fail_msg("case %zu", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
