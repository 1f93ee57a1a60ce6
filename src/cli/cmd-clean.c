/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli-text.h"
#include "command.h"
#include "orphans.h"
#include "shmfs-remove.h"
#include "show-clean.h"

typedef struct CleanOptions {
    bool json;
    bool dry_run;
    bool private;
    int user;
    int color;
} CleanOptions;

static const Option clean_options[] = {
    {OPTION_FLAG, 'n', "dry-run", offsetof(CleanOptions, dry_run), .help = "only list what would be removed"},
    {OPTION_FLAG, 0, "private", offsetof(CleanOptions, private),
     .help = "in a container: no process outside it uses this /dev/shm"},
    {OPTION_COUNT, 0, "user", offsetof(CleanOptions, user), "UID",
     .help = "only segments of this user; if it has no process left, they need not be a minute old"},
    OPTION_JSON(CleanOptions),
    OPTION_COLOR(CleanOptions),
    {OPTION_END},
};

/* One run: what was found, and what was done about it. */
typedef struct Clean {
    const Survey *survey;
    int user; /* whose segments are meant; negative: everybody's */
    bool user_is_gone;
    Arena arena;
    Cleaning cleaning;
    size_t n_denied;       /* orphans that could not be removed for lack of permission */
    const Segment *denied; /* the last of them */
    int denied_error;
} Clean;

static void clean_free(Clean *clean)
{
    arena_free(&clean->arena);
}

static bool has_name_here(const Segment *segment)
{
    return segment->backing == BACKING_SHM && segment->on_mount && !segment->deleted;
}

static int list_add(Clean *clean, CleanedList *list, const Segment *segment, const char *why)
{
    Cleaned *item = ARENA_PUSH(&clean->arena, list->items, list->n, list->capacity);
    if (!item)
        return -ENOMEM;
    *item = (Cleaned){segment, why};
    return 0;
}

static int keep(Clean *clean, const Segment *segment, const char *why)
{
    return why ? list_add(clean, &clean->cleaning.kept, segment, why) : -ENOMEM;
}

static int count_removed(Clean *clean, const Segment *segment, uint64_t freed_bytes)
{
    clean->cleaning.freed_bytes += freed_bytes;
    return list_add(clean, &clean->cleaning.removed, segment, NULL);
}

static int keep_failed(Clean *clean, const Segment *segment, int error)
{
    if (error == -ENOENT)
        return keep(clean, segment, CLI_KEPT_GONE);
    if (error == -EACCES || error == -EPERM || error == -EROFS) {
        clean->n_denied++;
        clean->denied = segment;
        clean->denied_error = error;
    }
    return keep(clean, segment, arena_printf(&clean->arena, CLI_KEPT_FAILED, strerror(-error), segment->uid));
}

static int remove_one(Clean *clean, const Root *root, const Segment *segment)
{
    FileStat expected = {.device = segment->device, .inode = segment->inode, .changed = segment->changed};
    ShmRemoval outcome = SHM_KEPT_UNSURE;
    uint64_t freed_bytes = 0;
    int r = shmfs_remove(root, segment->name, &expected, &outcome, &freed_bytes);
    if (r < 0)
        return keep_failed(clean, segment, r);
    switch (outcome) {
    case SHM_REMOVED:
        return count_removed(clean, segment, freed_bytes);
    case SHM_KEPT_OPEN:
        return keep(clean, segment, CLI_KEPT_OPENED);
    case SHM_KEPT_CHANGED:
        return keep(clean, segment, CLI_KEPT_CHANGED);
    case SHM_KEPT_UNSURE:
        return keep(clean, segment, CLI_KEPT_UNSURE);
    }
    return 0;
}

static Orphan judge(Clean *clean, const Segment *segment, const char **ret_why)
{
    return clean->user_is_gone ? orphan_judge_of_gone(clean->survey, segment, &clean->arena, ret_why)
                               : orphan_judge(clean->survey, segment, &clean->arena, ret_why);
}

static int clean_segments(Clean *clean, const Root *root)
{
    int r = 0;
    for (size_t i = 0; i < clean->survey->n_segments && r >= 0; i++) {
        const Segment *segment = &clean->survey->segments[i];
        const char *why = NULL;
        if (!has_name_here(segment) || (clean->user >= 0 && segment->uid != (uint32_t)clean->user))
            continue;
        if (segment->kind == KIND_OTHER)
            r = keep(clean, segment, CLI_KEPT_OTHER);
        else if (judge(clean, segment, &why) != ORPHAN_YES)
            r = keep(clean, segment, why);
        else if (clean->cleaning.dry_run)
            r = count_removed(clean, segment, segment->allocated_bytes);
        else
            r = remove_one(clean, root, segment);
    }
    return r;
}

static int denied_complain(const Clean *clean)
{
    _cleanup_buffer_ Buffer name = {0};
    (void)text_escape(clean->denied->name, &name);
    size_t n = clean->n_denied;
    if (clean->denied_error == -EROFS)
        return complain(EX_NOPERM, PLURAL(n, CLI_CLEAN_READ_ONLY_ONE, CLI_CLEAN_READ_ONLY_MANY), n,
                        buffer_text(&name));
    return complain(EX_NOPERM, PLURAL(n, CLI_CLEAN_DENIED_ONE, CLI_CLEAN_DENIED_MANY), n, buffer_text(&name),
                    clean->denied->uid);
}

static int clean_run(const Command *command, int argc, char **argv)
{
    CleanOptions options = {.user = -1};
    Operands operands;
    int code = EX_OK;
    if (!command_parse(command, argc, argv, &options, &operands, &code))
        return code;
    _cleanup_opened_survey_ OpenedSurvey opened = {0};
    code = survey_open(NULL, 0, SURVEY_LEASES, &opened);
    if (code != EX_OK)
        return code;
    ShmState shm = opened.survey.machine.shm.state;
    if (shm != SHM_OK)
        return complain(EX_UNAVAILABLE, shm == SHM_NOT_TMPFS ? CLI_CLEAN_NOT_TMPFS
                                        : shm == SHM_ABSENT  ? CLI_CLEAN_NO_SHM
                                                             : CLI_CLEAN_UNREADABLE);

    /* The user vouches for what cannot be seen from a pid namespace; what /proc hides inside it stays hidden.
     */
    Sandbox *sandbox = &opened.survey.machine.sandbox;
    sandbox->sees_all = sandbox->sees_all || (options.private && !sandbox->hidepid);

    _cleanup_(clean_free) Clean clean = {
        .survey = &opened.survey,
        .user = options.user,
        .user_is_gone = options.user >= 0 && user_is_gone(&opened.survey, (uint32_t)options.user),
        .cleaning = {.dry_run = options.dry_run},
    };
    int r = clean_segments(&clean, &opened.root);
    /* Shows what was done, even if the rest failed. */
    Terminal terminal = terminal_of(stdout, (ColorMode)options.color);
    if (options.json)
        code = json_finish(json_cleaning(stdout, terminal.is_tty, &clean.cleaning));
    else
        show_cleaning(&terminal, &clean.cleaning);
    if (r < 0)
        return complain(EX_SOFTWARE, CLI_CLEAN_STOPPED, strerror(-r));
    return clean.n_denied > 0 ? denied_complain(&clean) : code;
}

const Command command_clean = {
    .name = "clean",
    .summary = "remove shared memory that provably no process uses",
    .about = "Removes segments of /dev/shm that are of a known kind, that no process holds, and that have "
             "not changed for a minute. Right before each removal, the kernel is asked again whether any "
             "process has the segment open. Segments that are kept are listed with the reason.",
    .options = clean_options,
    .run = clean_run,
};
