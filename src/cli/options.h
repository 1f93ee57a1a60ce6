/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One array of options per command: parsing, the text of --help and the reference all follow from it. Values
 * are written into the command's own struct, at the offset that the option names.
 *
 * "--name value", "--name=value", "-x", "-xy", "-p value", "-pvalue" and "--" have their usual meaning, and
 * options may follow operands. Every command has -h, --help and --lang, which its array does not list; main.c
 * takes
 * --lang.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "buffer.h"
#include "units.h"

typedef enum OptionType {
    OPTION_END,
    OPTION_FLAG,    /* bool */
    OPTION_TEXT,    /* const char * */
    OPTION_PID,     /* int */
    OPTION_CHOICE,  /* int: the position in choices */
    OPTION_COUNT,   /* int, from 0 on */
    OPTION_SECONDS, /* double */
    OPTION_WISH,    /* SizeWish */
    OPTION_LIST,    /* OptionList: may be given several times */
} OptionType;

enum { OPTION_LIST_MAX = 32 };
typedef struct OptionList {
    const char *items[OPTION_LIST_MAX];
    size_t n;
} OptionList;

typedef struct Option {
    OptionType type;
    char letter; /* 0: none */
    const char *name;
    size_t offset;              /* of the value in the command's struct */
    const char *argument;       /* "PID", as help shows it; not for flags */
    const char *const *choices; /* NULL-terminated */
    const char *help;           /* one paragraph */
} Option;

typedef struct Operands {
    char **items; /* moved to the front of argv */
    int n;
} Operands;

typedef enum Parsed {
    PARSED_GO,
    PARSED_HELP,  /* --help was given */
    PARSED_WRONG, /* error holds one escaped line without newline that says what is wrong */
} Parsed;

/* argv is without the name of the command. values holds what was parsed before an error. */
Parsed options_parse(const Option *options, int argc, char **argv, void *values, Operands *ret_operands,
                     Buffer *error);

/* The "Options:" part of a help text, which has the same width everywhere. */
enum { HELP_COLUMNS = 80 };
void options_help(const Option *options, FILE *out);

/* Appends "a, b or c": NULL-terminated names, with `last` (NAMES_OR) before the last one. */
void names_join(const char *const *names, const char *last, Buffer *out);

/* The one of NULL-terminated names that was probably meant, or NULL. */
const char *nearest_name(const char *wrong, const char *const *names);
