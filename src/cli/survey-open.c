/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "command.h"

static bool is_live(const char *path)
{
    return !path || strcmp(path, "/") == 0;
}

static int no_proc(void)
{
    return complain(EX_UNAVAILABLE, "there is no /proc to read; mount one: mount -t proc proc /proc");
}

static int root_complain(const char *path, int r)
{
    if (is_live(path))
        return no_proc();
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    const char *shown = buffer_text(&safe);
    if (r == -EINVAL)
        return complain(EX_DATAERR,
                        "--root %s: no captured tree (it holds no proc); make one with "
                        "scripts/capture-root",
                        shown);
    return complain(r == -EACCES ? EX_NOPERM : EX_DATAERR,
                    "--root %s: %s; a captured tree is made with scripts/capture-root", shown, strerror(-r));
}

static int tree_complain(int code, const char *path, const char *what, int r)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    return complain(code, "--root %s: %s (%s)", buffer_text(&safe), what, strerror(-r));
}

static int survey_complain(const char *path, int pid, int r)
{
    switch (r) {
    case -ESRCH:
        return complain(EX_DATAERR, "there is no process %d%s; shmguard ps lists the training processes", pid,
                        is_live(path) ? "" : " in that tree");
    case -ENOENT:
        return is_live(path) ? no_proc() : root_complain(path, -EINVAL);
    case -EACCES:
    case -EPERM:
        if (!is_live(path))
            return tree_complain(EX_NOPERM, path, "it may not be read, become its owner or copy it", r);
        return complain(EX_NOPERM, "/proc may not be read: %s", strerror(-r));
    case -ENOMEM:
        return complain(EX_SOFTWARE, "out of memory");
    default: /* there, but no text of the kernel's */
        if (is_live(path))
            return complain(EX_UNAVAILABLE, "/proc/meminfo cannot be read: %s", strerror(-r));
        return tree_complain(EX_DATAERR, path,
                             "proc/meminfo is damaged, capture the tree anew with scripts/capture-root", r);
    }
}

void survey_close(OpenedSurvey *opened)
{
    if (!opened->taken)
        return;
    survey_free(&opened->survey);
    root_close(&opened->root);
    *opened = (OpenedSurvey){0};
}

/* The process must be there, and its descriptors and mappings ours to read: an empty answer would mislead. */
static int process_check(const Survey *survey, const char *root_path, int pid)
{
    const Process *process = survey_process(survey, pid);
    if (!process)
        return survey_complain(root_path, pid, -ESRCH);
    if (process->has_memory && !process->readable && survey->machine.sandbox.root)
        return complain(EX_NOPERM,
                        "process %d (uid %u) may not be read from here, not even by root; run shmguard where "
                        "it was started, outside of this container or sandbox",
                        pid, process->uid);
    if (process->has_memory && !process->readable)
        return complain(EX_NOPERM,
                        "process %d is of another user (uid %u) and may not be read; run shmguard as that "
                        "user or as root",
                        pid, process->uid);
    return EX_OK;
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
