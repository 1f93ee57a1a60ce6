/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "preload-library.h"
#include "user-command.h"

/* As shells have it. */
enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

bool command_take_if_any(const Command *command, int argc, char **argv, void *values, char ***ret_words,
                         int *ret_code)
{
    Operands operands;
    int place = command_place(argc, argv);
    char **words = place < argc ? argv + place + 1 : argv + argc;
    argv[place] = NULL;
    if (!command_parse(command, place, argv, values, &operands, ret_code))
        return false;
    if (operands.n > 0) {
        _cleanup_buffer_ Buffer safe = {0};
        (void)text_escape(text_of(operands.items[0]), &safe);
        *ret_code = complain(EX_USAGE, "%s: put -- before the command: shmguard %s -- %s ...", command->name,
                             command->name, buffer_text(&safe));
        return false;
    }
    *ret_words = words;
    return true;
}

bool command_take(const Command *command, int argc, char **argv, void *values, char ***ret_words,
                  int *ret_code)
{
    if (!command_take_if_any(command, argc, argv, values, ret_words, ret_code))
        return false;
    if (**ret_words)
        return true;
    *ret_code = complain(EX_USAGE, "%s: no command; put it after --: shmguard %s -- python train.py",
                         command->name, command->name);
    return false;
}

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

int guard_serve(Run *run, char library[static PATH_MAX], const GuardWish *wish, bool say)
{
    int r = guard_library(library) ? run_guard(run, library, wish) : -ENOENT;
    if (!say)
        return r;
    if (r == -ENOENT)
        complain(0, "this build has no preload library; running without the guard");
    else if (r == -ENAMETOOLONG)
        complain(0, "%s: LD_PRELOAD cannot take a path with a colon or a blank; running without the guard",
                 library);
    else if (r < 0)
        complain(0, "memory for the guard is refused here (%s); running without the guard", strerror(-r));
    return r;
}

int start_complain(const char *name, const char *command, ChildStage stage, int error)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(command), &safe);
    if (stage == CHILD_NONE)
        return complain(EX_SOFTWARE, "%s: cannot create a process: %s", name, strerror(error));
    if (stage == CHILD_NO_SHM)
        return complain(EX_UNAVAILABLE, "%s: --shm: refused on the second try: %s", name, strerror(error));
    if (error == ENOENT)
        return complain(EXIT_NOT_FOUND, "%s: %s: command not found", name, buffer_text(&safe));
    return complain(EXIT_NOT_EXECUTABLE, "%s: %s: %s", name, buffer_text(&safe), strerror(error));
}

int end_judge(Run *run, const RunResult *result, const char *command, int start_error, Arena *arena,
              Evidence *ret_evidence, Diagnosis *ret)
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
    GuardOffer guard = guard_offer_find(known ? &machine : NULL);
    r = cause_judge(&evidence, known ? &machine : NULL, &guard, arena, ret);
    root_close(&root);
    if (r >= 0)
        *ret_evidence = evidence;
    return r;
}
