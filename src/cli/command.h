/* SPDX-License-Identifier: Apache-2.0 */
/* What a command is to main.c, and what all commands share. A command returns its exit code (sysexits.h). */
#pragma once

#include <sysexits.h>

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
    const char *about; /* a paragraph or two below the usage line */
    const Option *options;
    int (*run)(const Command *command, int argc, char **argv); /* argv[0] is the command's name */
};

extern const Command command_clean;
extern const Command command_doctor;
extern const Command command_explain;
extern const Command command_plan;
extern const Command command_ps;
extern const Command command_record;
extern const Command command_report;
extern const Command command_run;
extern const Command command_tune;
extern const Command command_watch;

/* Options that mean the same everywhere; T is the command's struct of values. */
#define OPTION_JSON(T)                                                                                       \
    {                                                                                                        \
        OPTION_FLAG, 'j', "json", offsetof(T, json), .help = "one JSON object instead of text"               \
    }
#define OPTION_COLOR(T)                                                                                      \
    {                                                                                                        \
        OPTION_CHOICE, 0, "color", offsetof(T, color), "WHEN", color_choices,                                \
            "auto, always or never; NO_COLOR is honoured"                                                    \
    }
#define OPTION_ROOT(T)                                                                                       \
    {                                                                                                        \
        OPTION_TEXT, 0, "root", offsetof(T, root), "DIR",                                                    \
            .help = "read a tree made by scripts/capture-root, not this machine"                             \
    }
extern const char *const color_choices[]; /* in the order of ColorMode */

/* One line on stderr, after the program's name. Returns code. */
int complain(int code, const char *format, ...) _printf_(2, 3);

void command_help(const Command *command, FILE *out);

/* True: go on. False: leave with *ret_code, everything has been said. */
bool command_parse(const Command *command, int argc, char **argv, void *values, Operands *ret_operands,
                   int *ret_code);

/* 0 after json_*, or the exit code for what went wrong, said. */
int json_finish(int r);

/* A root and what was found in it. {0} is an empty one. */
typedef struct OpenedSurvey {
    Root root;
    Survey survey;
    bool taken;
} OpenedSurvey;

#define _cleanup_opened_survey_ _cleanup_(survey_close)
void survey_close(OpenedSurvey *opened);

/*
 * Opens the root (NULL: this machine) and surveys it. 0, or the exit code for what went wrong, said. pid 0:
 * none in particular; a pid must be there and readable.
 */
int survey_open(const char *root_path, int pid, unsigned flags, OpenedSurvey *ret);

/* The machine alone, without its processes and its MachineParts. 0, or the exit code, said. */
int machine_open(const char *root_path, Arena *arena, Machine *ret);

/* "--" that stands before a command, or the end of argv; argv[0] is the command's name. */
int command_place(int argc, char **argv);
