/* SPDX-License-Identifier: Apache-2.0 */
#include "begin.h"
#include "begin-text.h"
#include "options.h"
#include "terminal.h"

const StartingPoint starting_points[] = {
    {BEGIN_DIED,
     {{"shmguard explain train.log", BEGIN_EXPLAIN}, {"shmguard run -- python train.py", BEGIN_RUN}}},
    {BEGIN_STARTS,
     {{"shmguard run --check -- python train.py", BEGIN_CHECK},
      {"shmguard plan --sample 'float32[3,224,224]' --batch 64 --workers 8", BEGIN_PLAN}}},
    {BEGIN_GROWS,
     {{"shmguard record -o run.db --pid PID", BEGIN_RECORD}, {"shmguard report run.db", BEGIN_REPORT}}},
    {BEGIN_SLOW,
     {{"shmguard tune -- python train.py --batch {batch} --workers {workers}", BEGIN_TUNE},
      {"shmguard watch", BEGIN_WATCH}}},
    {BEGIN_ANYTHING, {{"shmguard doctor", BEGIN_DOCTOR}}},
    {NULL},
};

void begin_print(FILE *out)
{
    const Terminal terminal = {.out = out, .columns = HELP_COLUMNS};
    fprintf(out, "%s\n", BEGIN_TITLE);
    for (const StartingPoint *point = starting_points; point->when; point++) {
        fprintf(out, "\n%s\n", _(point->when));
        for (size_t i = 0; i < BEGIN_WAYS && point->ways[i].command; i++) {
            fprintf(out, "  %s\n      ", point->ways[i].command);
            terminal_wrap(&terminal, 6, 6, _(point->ways[i].what));
        }
    }
    fputc('\n', out);
    terminal_wrap(&terminal, 0, 0, BEGIN_MORE);
}
