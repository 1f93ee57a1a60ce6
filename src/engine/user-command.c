/* SPDX-License-Identifier: Apache-2.0 */
#include "user-command.h"
#include "language.h"
#include "preload-library.h"

int command_join(char *const *words, Buffer *out)
{
    int r = 0;
    for (char *const *word = words; r >= 0 && *word; word++) {
        r = word == words ? 0 : buffer_append_text(out, " ");
        if (r >= 0)
            r = buffer_append_text(out, *word);
    }
    return r;
}

int guard_serve(Run *run, char library[static PATH_MAX], const GuardWish *wish)
{
    return guard_library(library) ? run_guard(run, library, wish) : -ENOENT;
}

int end_judge(Run *run, const RunResult *result, const char *command, int start_error, Arena *arena,
              Evidence *ret_evidence, Diagnosis *ret, Diagnosis *ret_shown)
{
    Evidence evidence;
    int r = run_evidence(run, result, arena, &evidence);
    if (r < 0)
        return r;
    evidence.start_error = start_error;
    evidence.command = command;

    Root root = ROOT_NONE;
    Machine machine;
    bool known = (result->code != 0 || result->guard.refused > 0) && root_open(NULL, &root) >= 0 &&
                 machine_read(&root, 0, 0, arena, &machine) >= 0;
    if (known) { /* the supervisor has read the log */
        machine.kills = evidence.kills;
        machine.kills_error = evidence.kills_error;
    }
    GuardOffer guard = guard_offer_find(known ? &machine : NULL);
    r = cause_judge(&evidence, known ? &machine : NULL, &guard, arena, ret_shown);
    if (r >= 0) {
        IN_ENGLISH;
        r = cause_judge(&evidence, known ? &machine : NULL, &guard, arena, ret);
    }
    root_close(&root);
    if (r >= 0)
        *ret_evidence = evidence;
    return r;
}
