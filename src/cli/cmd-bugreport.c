/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bugreport.h"
#include "cli-text.h"
#include "command.h"
#include "version.h"

typedef struct BugreportOptions {
    const char *output;
    const char *report;
} BugreportOptions;

static const Option bugreport_options[] = {
    {OPTION_TEXT, 'o', "output", offsetof(BugreportOptions, output), "FILE",
     .help = N_("write the archive to this new file (default: shmguard-bugreport-DATE.tar.gz)")},
    {OPTION_TEXT, 0, "report", offsetof(BugreportOptions, report), "FILE",
     .help = N_("also pack the report that shmguard run --report wrote to FILE")},
    {OPTION_END},
};

static int bugreport_run(const Command *command, int argc, char **argv)
{
    BugreportOptions options = {0};
    Operands operands;
    int code = EX_OK;
    if (!command_parse(command, argc, argv, &options, &operands, &code))
        return code;
    char name[64] = "";
    time_t now = time(NULL);
    struct tm local;
    if (localtime_r(&now, &local))
        (void)strftime(name, sizeof name, "shmguard-bugreport-%Y%m%d-%H%M%S.tar.gz", &local);
    char *versions = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&versions, &size);
    if (!out)
        return complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);
    {
        IN_ENGLISH;
        version_print(out);
    }
    if (fclose(out) != 0)
        return complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);
    int r = bugreport_become(options.output ? options.output : name, versions, options.report);
    free(versions);
    return r == -ENOENT ? complain(EX_UNAVAILABLE, CLI_BUGREPORT_NO_PYTHON)
                        : complain(EX_SOFTWARE, CLI_FAILED, "bugreport", error_text(-r));
}

const Command command_bugreport = {
    .name = "bugreport",
    .summary = N_("pack what a bug report needs, without secrets"),
    .about =
        N_("Writes one archive with the versions, a capture of this machine that --root can replay, and the "
           "report of a run, and lists what is in it. It has no environments, no contents of files and no "
           "arguments of commands; what looks like a password, token or key is left out. Requires python3."),
    .options = bugreport_options,
    .run = bugreport_run,
};
