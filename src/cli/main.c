/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <langinfo.h>
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
    const Terminal terminal = {.out = out, .columns = HELP_COLUMNS};
    fprintf(out, "%s\n\n", CLI_USAGE);
    terminal_wrap(&terminal, 0, 0, CLI_ABOUT);
    fprintf(out, "\n%s\n", CLI_COMMANDS);
    for (const Command *const *command = commands; *command; command++)
        fprintf(out, "  %-9s  %s\n", (*command)->name, _((*command)->summary));
    fputc('\n', out);
    terminal_wrap(&terminal, 0, 0, CLI_MORE_HELP);
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
    return complain(EX_SOFTWARE, CLI_OUTPUT_FAILED, error_text(errno));
}

/* Containers often have no locale of the language that the user wants, only that of C. */
static void encoding_choose(void)
{
    static const char *const others[] = {"C.UTF-8", "en_US.UTF-8"};
    setlocale(LC_CTYPE, "");
    bool needed = language_now() != LANGUAGE_ENGLISH && strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    for (size_t i = 0; needed && i < ARRAY_SIZE(others); i++)
        needed = !setlocale(LC_CTYPE, others[i]);
}

/* "--lang zh_CN" and "--lang=zh_CN", before or after the command, but not in the user's command behind "--".
 * Takes them off argv, so that all commands have them. */
static int language_take(int *argc, char **argv)
{
    static const char option[] = "--lang";
    Language language = language_of_environment();
    int n = 1;
    int i = 1;
    language_choose(language);
    for (; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        Text word = text_of(argv[i]);
        bool with_value = text_starts(word, "--lang=");
        if (!with_value && !text_equal(word, option)) {
            argv[n++] = argv[i];
            continue;
        }
        const char *value = with_value ? argv[i] + sizeof option : argv[++i];
        if (!value)
            return complain(EX_USAGE, CLI_LANG_MISSING);
        if (!language_find(text_of(value), &language)) {
            _cleanup_buffer_ Buffer safe = {0};
            (void)text_escape(text_of(value), &safe);
            return complain(EX_USAGE, CLI_LANG_UNKNOWN, buffer_text(&safe));
        }
        language_choose(language);
    }
    while (i < *argc)
        argv[n++] = argv[i++];
    argv[n] = NULL;
    *argc = n;
    return EX_OK;
}

int main(int argc, char **argv)
{
    descriptors_fill();
    int code = language_take(&argc, argv);
    encoding_choose();
    setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
    return output_finish(code == EX_OK ? dispatch(argc, argv) : code);
}
