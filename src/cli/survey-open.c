/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli-text.h"
#include "command.h"

static bool is_live(const char *path)
{
    return !path || strcmp(path, "/") == 0;
}

static int root_complain(const char *path, int r)
{
    if (is_live(path))
        return complain(EX_UNAVAILABLE, CLI_NO_PROC);
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    if (r == -EINVAL)
        return complain(EX_DATAERR, CLI_ROOT_NO_TREE, buffer_text(&safe));
    return complain(r == -EACCES ? EX_NOPERM : EX_DATAERR, CLI_ROOT_FAILED, buffer_text(&safe),
                    error_text(-r));
}

static int live_complain(int pid, int r)
{
    switch (r) {
    case -ESRCH:
        return complain(EX_DATAERR, CLI_NO_PROCESS, pid);
    case -ENOENT:
        return complain(EX_UNAVAILABLE, CLI_NO_PROC);
    case -EACCES:
    case -EPERM:
        return complain(EX_NOPERM, CLI_PROC_DENIED, error_text(-r));
    default: /* /proc is there, but what it holds is not the kernel's */
        return complain(EX_UNAVAILABLE, CLI_NO_MEMINFO, error_text(-r));
    }
}

static int tree_complain(const char *path, int pid, int r)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    switch (r) {
    case -ESRCH:
        return complain(EX_DATAERR, CLI_NO_PROCESS_IN_TREE, pid);
    case -ENOENT:
        return root_complain(path, -EINVAL);
    case -EACCES:
    case -EPERM:
        return complain(EX_NOPERM, CLI_ROOT_DENIED, buffer_text(&safe), error_text(-r));
    default:
        return complain(EX_DATAERR, CLI_ROOT_DAMAGED, buffer_text(&safe), error_text(-r));
    }
}

static int survey_complain(const char *path, int pid, int r)
{
    if (r == -ENOMEM)
        return complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);
    return is_live(path) ? live_complain(pid, r) : tree_complain(path, pid, r);
}

void survey_close(OpenedSurvey *opened)
{
    if (!opened->taken)
        return;
    survey_free(&opened->survey);
    root_close(&opened->root);
    *opened = (OpenedSurvey){0};
}

/* The process must exist, and its descriptors and mappings must be readable: an empty answer would mislead.
 */
static int process_check(const Survey *survey, const char *root_path, int pid)
{
    const Process *process = survey_process(survey, pid);
    if (!process)
        return survey_complain(root_path, pid, -ESRCH);
    if (!process->has_memory || process->readable)
        return EX_OK;
    return complain(EX_NOPERM, survey->machine.sandbox.root ? CLI_PROCESS_SANDBOXED : CLI_PROCESS_DENIED, pid,
                    process->uid);
}

int survey_open(const char *root_path, int pid, unsigned flags, OpenedSurvey *ret)
{
    OpenedSurvey opened = {0};
    int r = root_open(root_path, &opened.root);
    if (r < 0)
        return root_complain(root_path, r);
    r = survey_take(&opened.root, pid, flags, &opened.survey);
    if (r < 0) {
        root_close(&opened.root);
        return survey_complain(root_path, pid, r);
    }
    opened.taken = true;
    int code = pid ? process_check(&opened.survey, root_path, pid) : EX_OK;
    if (code != EX_OK)
        survey_close(&opened);
    else
        *ret = opened;
    return code;
}

int machine_open(const char *root_path, Arena *arena, Machine *ret)
{
    Root root;
    int r = root_open(root_path, &root);
    if (r < 0)
        return root_complain(root_path, r);
    r = machine_read(&root, 0, 0, arena, ret);
    root_close(&root);
    return r < 0 ? survey_complain(root_path, 0, r) : EX_OK;
}
