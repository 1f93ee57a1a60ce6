/* SPDX-License-Identifier: Apache-2.0 */
/* A command as main.c sees it, and what all commands share. A command returns its exit code (sysexits.h). */
#pragma once

#include "complain.h"
#include "json.h"
#include "options.h"
#include "survey.h"
#include "terminal.h"

typedef struct Command Command;
struct Command {
    const char *name;
    const char *summary;  /* one line, for the list of commands */
    const char *operands; /* "[FILE]" as usage shows it, or NULL */
    int operands_most;
    const char *about; /* one paragraph, below the usage line */
    const Option *options;
    int (*run)(const Command *command, int argc, char **argv); /* argv[0] is the command's name */
};

extern const Command command_bugreport;
extern const Command command_clean;
extern const Command command_doctor;
extern const Command command_explain;
extern const Command command_kernel;
extern const Command command_plan;
extern const Command command_ps;
extern const Command command_record;
extern const Command command_report;
extern const Command command_run;
extern const Command command_serve;
extern const Command command_tune;
extern const Command command_watch;
extern const Command command_where;

/* In the order in which they are listed; NULL behind the last. */
enum { COMMANDS = 14 };
extern const Command *const commands[COMMANDS + 1];

/* Options that mean the same everywhere; T is the command's struct of values. */
#define OPTION_JSON(T)                                                                                       \
    {                                                                                                        \
        OPTION_FLAG, 'j', "json", offsetof(T, json), .help = "print one JSON object instead of text"         \
    }
#define OPTION_COLOR(T)                                                                                      \
    {                                                                                                        \
        OPTION_CHOICE, 0, "color", offsetof(T, color), "WHEN", color_choices,                                \
            "auto, always or never (default: auto; NO_COLOR is honoured)"                                    \
    }
#define OPTION_ROOT(T)                                                                                       \
    {                                                                                                        \
        OPTION_TEXT, 0, "root", offsetof(T, root), "DIR",                                                    \
            .help = "read a tree made by scripts/capture-root instead of this machine"                       \
    }
extern const char *const color_choices[]; /* in the order of ColorMode */

void command_help(const Command *command, FILE *out);

/* True: go on. False: exit with *ret_code; everything has been said. */
bool command_parse(const Command *command, int argc, char **argv, void *values, Operands *ret_operands,
                   int *ret_code);

/* The command explain, with --json, of a log in memory. */
int explain_text(Text log);

/* After json_*: EX_OK, or the exit code for what went wrong, which was said. */
int json_finish(int r);

/* A root and the survey of it. {0} is an empty one. */
typedef struct OpenedSurvey {
    Root root;
    Survey survey;
    bool taken;
} OpenedSurvey;

#define _cleanup_opened_survey_ _cleanup_(survey_close)
void survey_close(OpenedSurvey *opened);

/*
 * Opens the root (NULL: this machine) and surveys it. EX_OK, or the exit code for what went wrong, which was
 * said. A pid other than 0 must exist and be readable.
 */
int survey_open(const char *root_path, int pid, unsigned flags, OpenedSurvey *ret);

/* Reads the machine without its processes and its MachineParts. Returns the same codes as survey_open. */
int machine_open(const char *root_path, Arena *arena, Machine *ret);

/* The place of the "--" before a command in argv, or the end of argv; argv[0] is the name of our command. */
int command_place(int argc, char **argv);

/* Parses the options before "--", and returns the words of the user's command behind it, which may have
 * options of its own. As command_parse; there must be a command. */
bool command_take(const Command *command, int argc, char **argv, void *values, char ***ret_words,
                  int *ret_code);

/* The same where a command is optional: without one, *ret_words is empty. */
bool command_take_if_any(const Command *command, int argc, char **argv, void *values, char ***ret_words,
                         int *ret_code);
