/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli-text.h"
#include "command.h"
#include "preload-library.h"
#include "show-doctor.h"

typedef struct DoctorOptions {
    bool json;
    int pid;
    OptionList only;
    const char *root;
    int color;
} DoctorOptions;

static const Option doctor_options[] = {
    {OPTION_PID, 'p', "pid", offsetof(DoctorOptions, pid), "PID",
     .help = N_("judge only the job of this process")},
    {OPTION_LIST, 0, "only", offsetof(DoctorOptions, only), "ID",
     .help = N_("look for this finding only, such as shm-orphans; repeat the option for more")},
    OPTION_JSON(DoctorOptions),
    OPTION_ROOT(DoctorOptions),
    OPTION_COLOR(DoctorOptions),
    {OPTION_END},
};

enum { CHECKS_MOST = 64 }; /* among which a near id is looked for */

static int id_complain(const char *id)
{
    const char *ids[CHECKS_MOST + 1] = {0};
    for (size_t i = 0; i < CHECKS_MOST && check_at(i); i++)
        ids[i] = check_at(i)->id;
    const char *nearest = nearest_name(id, ids);
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(id), &safe);
    return nearest ? complain(EX_USAGE, CLI_DOCTOR_ID_NEAR, buffer_text(&safe), nearest)
                   : complain(EX_USAGE, CLI_DOCTOR_ID, buffer_text(&safe));
}

static bool id_exists(const char *id)
{
    for (size_t i = 0; check_at(i); i++)
        if (strcmp(check_at(i)->id, id) == 0)
            return true;
    return false;
}

static bool is_wanted(const OptionList *only, Text id)
{
    for (size_t i = 0; i < only->n; i++)
        if (text_equal(id, only->items[i]))
            return true;
    return only->n == 0;
}

/* A skipped check begins with its id and a colon. */
static void findings_narrow(Findings *findings, const OptionList *only)
{
    size_t n = 0;
    for (size_t i = 0; i < findings->n; i++)
        if (is_wanted(only, text_of(findings->items[i].id)))
            findings->items[n++] = findings->items[i];
    findings->n = n;
    n = 0;
    for (size_t i = 0; i < findings->n_skipped; i++) {
        const char *skipped = findings->skipped[i];
        if (is_wanted(only, (Text){skipped, strcspn(skipped, ":")}))
            findings->skipped[n++] = skipped;
    }
    findings->n_skipped = n;
}

static int doctor_run(const Command *command, int argc, char **argv)
{
    DoctorOptions options = {0};
    Operands operands;
    int code = EX_OK;
    if (!command_parse(command, argc, argv, &options, &operands, &code))
        return code;
    for (size_t i = 0; i < options.only.n; i++)
        if (!id_exists(options.only.items[i]))
            return id_complain(options.only.items[i]);
    _cleanup_opened_survey_ OpenedSurvey opened = {0};
    code = survey_open(options.root, options.pid, SURVEY_PSS | SURVEY_MAPS | SURVEY_LEASES | SURVEY_MACHINE,
                       &opened);
    if (code != EX_OK)
        return code;

    _cleanup_arena_ Arena arena = {0};
    GuardOffer guard = guard_offer_find(&opened.survey.machine);
    Findings findings;
    int r = checks_run(&opened.survey, &guard, options.pid, &arena, &findings);
    if (r < 0)
        return complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);
    findings_narrow(&findings, &options.only);
    Terminal terminal = terminal_of(result_stream(), (ColorMode)options.color);
    if (options.json) {
        code = json_finish(
            json_doctor(terminal.out, terminal.is_tty, &opened.survey.machine, &guard, &findings));
        if (code != EX_OK)
            return code;
    } else
        show_doctor(&terminal, &opened.survey.machine, &guard, &findings);

    switch (findings_health(&findings)) {
    case HEALTH_WARNING:
        return 1;
    case HEALTH_CRITICAL:
        return 2;
    case HEALTH_OK:
        break;
    }
    return EX_OK;
}

const Command command_doctor = {
    .name = "doctor",
    .summary = N_("find what is wrong here, or soon will be, and what to do about it"),
    .about = N_("Checks shared memory, memory, limits and the jobs that run here, and says what you can do "
                "about each finding with the permissions that you have. Exit code: 0 if all is well, 1 after "
                "a warning, 2 if something is critical."),
    .options = doctor_options,
    .run = doctor_run,
};
