/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli-text.h"
#include "command.h"
#include "preload-library.h"
#include "show-explain.h"

typedef struct ExplainOptions {
    bool json;
    int color;
} ExplainOptions;

static const Option explain_options[] = {
    OPTION_JSON(ExplainOptions),
    OPTION_COLOR(ExplainOptions),
    {OPTION_END},
};

static void explainer_free_pointer(Explainer **explainer)
{
    explainer_free(*explainer);
}

static int input_complain(const char *path, int error)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    int code = error == EACCES || error == EPERM ? EX_NOPERM : EX_DATAERR;
    return complain(code, CLI_EXPLAIN_INPUT, buffer_text(&safe), error_text(error));
}

/* NULL or "-" is standard input. Returns a descriptor, or the negative exit code. */
static int input_open(const char *path)
{
    if (path && strcmp(path, "-") != 0) {
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        return fd < 0 ? -input_complain(path, errno) : fd;
    }
    if (isatty(STDIN_FILENO))
        fprintf(stderr, "%s\n", CLI_EXPLAIN_PROMPT);
    int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? -input_complain(CLI_STANDARD_INPUT, errno) : fd;
}

static int input_feed(int fd, const char *path, Explainer *explainer)
{
    char piece[32 * 1024];
    for (;;) {
        ssize_t n = read(fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return input_complain(path ? path : CLI_STANDARD_INPUT, errno);
        if (n == 0)
            return EX_OK;
        if (explainer_feed(explainer, piece, (size_t)n) < 0)
            return complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);
    }
}

/* Most logs come from the machine on which they are explained: if it can be read, the fixes are for it. */
static int explanation_print(Explainer *explainer, const ExplainOptions *options)
{
    _cleanup_arena_ Arena arena = {0};
    Root root = ROOT_NONE;
    Machine machine;
    bool known =
        root_open(NULL, &root) >= 0 && machine_read(&root, 0, MACHINE_KERNEL_LOG, &arena, &machine) >= 0;
    GuardOffer guard = guard_offer_find(known ? &machine : NULL);
    Diagnosis explanation;
    int r = explainer_finish(explainer, known ? &machine : NULL, &guard, &arena, &explanation);
    root_close(&root);
    if (r < 0)
        return complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);

    Terminal terminal = terminal_of(result_stream(), (ColorMode)options->color);
    if (options->json)
        return json_finish(json_explanation(terminal.out, terminal.is_tty, &explanation));
    show_explanation(&terminal, &explanation);
    return EX_OK;
}

int explain_text(Text log)
{
    _cleanup_(explainer_free_pointer) Explainer *explainer = explainer_new();
    if (!explainer || explainer_feed(explainer, log.data, log.size) < 0)
        return complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);
    return explanation_print(explainer, &(const ExplainOptions){.json = true});
}

static int explain_run(const Command *command, int argc, char **argv)
{
    ExplainOptions options = {0};
    Operands operands;
    int code = EX_OK;
    if (!command_parse(command, argc, argv, &options, &operands, &code))
        return code;

    const char *path = operands.n > 0 ? operands.items[0] : NULL;
    _cleanup_close_ int fd = input_open(path);
    if (fd < 0)
        return -fd;
    _cleanup_(explainer_free_pointer) Explainer *explainer = explainer_new();
    if (!explainer)
        return complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);
    code = input_feed(fd, path, explainer);
    return code == EX_OK ? explanation_print(explainer, &options) : code;
}

const Command command_explain = {
    .name = "explain",
    .summary = N_("say what happened, from a traceback or log"),
    .operands = "[FILE]",
    .operands_most = 1,
    .about = N_("Reads a traceback or log of a training (FILE, or standard input) and names the cause, the "
                "matching log lines, and what to do. If the log does not show the cause, it is \"unknown\"."),
    .options = explain_options,
    .run = explain_run,
};
