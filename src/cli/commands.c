/* SPDX-License-Identifier: Apache-2.0 */
/* Apart from command.c, so that the C API, which has some of the commands, is not linked with all of them. */
#include "command.h"

const Command *const commands[COMMANDS + 1] = {
    &command_doctor, &command_ps,    &command_clean,  &command_explain,   &command_plan,
    &command_run,    &command_tune,  &command_record, &command_report,    &command_watch,
    &command_serve,  &command_where, &command_kernel, &command_bugreport,
};
