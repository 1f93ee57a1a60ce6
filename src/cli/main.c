/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>

#include "begin.h"
#include "cli-text.h"
#include "command.h"
#include "crash.h"
#include "version.h"

static const Command *command_find(const char *name)
{
    for (const Command *const *command = commands; *command; command++)
        if (strcmp((*command)->name, name) == 0)
            return *command;
    return NULL;
}

static void usage_print(FILE *out)
{
    fputs("Usage: shmguard COMMAND [OPTION]...\n\n"
          "Shows how PyTorch training uses shared memory, what is wrong, and what to do.\n\n"
          "Commands:\n",
          out);
    for (const Command *const *command = commands; *command; command++)
        fprintf(out, "  %-9s  %s\n", (*command)->name, (*command)->summary);
    fputs("\nshmguard COMMAND --help shows the options of a command, shmguard --version the\nversion.\n",
          out);
}

static int command_unknown(const char *name)
{
    const char *names[COMMANDS + 1] = {0};
    for (size_t i = 0; commands[i]; i++)
        names[i] = commands[i]->name;
    const char *nearest = nearest_name(name, names);
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(name), &safe);
    bool option = name[0] == '-';
    return nearest
               ? complain(EX_USAGE, option ? CLI_UNKNOWN_OPTION_NEAR : CLI_UNKNOWN_COMMAND_NEAR,
                          buffer_text(&safe), nearest)
               : complain(EX_USAGE, option ? CLI_UNKNOWN_OPTION : CLI_UNKNOWN_COMMAND, buffer_text(&safe));
}

/* What is left of a supervisor that has crashed. Not for users. */
static int command_await(int argc, char **argv)
{
    int pid = 0;
    int r = argc == 3 && text_pid(text_of(argv[2]), &pid) == 0 ? crash_await(pid) : -EINVAL;
    return r < 0 ? complain(EX_USAGE, CLI_INTERNAL_OPTION, CRASH_WORD) : r;
}

static int dispatch(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    if (!word) {
        begin_print(stderr);
        return EX_USAGE;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        usage_print(stdout);
        return EX_OK;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        version_print(stdout);
        return EX_OK;
    }
    if (strcmp(word, CRASH_WORD) == 0)
        return command_await(argc, argv);
    const Command *command = command_find(word);
    return command ? command->run(command, argc - 1, argv + 1) : command_unknown(word);
}

/* The first file that we open would get the number of a closed standard descriptor, and our output would be
 * written into that file. Opened in the wrong direction, /dev/null makes reads and writes fail as they
 * should. */
static void descriptors_fill(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY); /* the lowest free one: fd */
}

static int output_finish(int code)
{
    errno = 0;
    bool failed = fflush(stdout) != 0 || ferror(stdout);
    /* A failure in the middle of a long output leaves no errno: one more byte fails for the same reason. */
    if (failed && errno == 0 && write(STDOUT_FILENO, "\n", 1) == 1)
        return complain(EX_SOFTWARE, CLI_OUTPUT_PARTIAL);
    /* A reader that has closed its end has seen enough: that is not an error. */
    if (!failed || errno == EPIPE)
        return code;
    return complain(EX_SOFTWARE, CLI_OUTPUT_FAILED, strerror(errno));
}

int main(int argc, char **argv)
{
    descriptors_fill();
    setlocale(LC_CTYPE, "");
    setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
    return output_finish(dispatch(argc, argv));
}
