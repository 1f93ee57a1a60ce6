/* SPDX-License-Identifier: Apache-2.0 */
#include "cli-text.h"
#include "command.h"
#include "preload-library.h"
#include "show-doctor.h"

typedef struct DoctorOptions {
    bool json;
    int pid;
    const char *root;
    int color;
} DoctorOptions;

static const Option doctor_options[] = {
    {OPTION_PID, 'p', "pid", offsetof(DoctorOptions, pid), "PID",
     .help = N_("judge only the job of this process")},
    OPTION_JSON(DoctorOptions),
    OPTION_ROOT(DoctorOptions),
    OPTION_COLOR(DoctorOptions),
    {OPTION_END},
};

static int doctor_run(const Command *command, int argc, char **argv)
{
    DoctorOptions options = {0};
    Operands operands;
    int code = EX_OK;
    if (!command_parse(command, argc, argv, &options, &operands, &code))
        return code;
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
