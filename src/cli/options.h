/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One array of options a command: it yields the parsing, the text of --help, and whatever else lists options.
 * Values are written into the command's own struct, at the offset that the option names.
 *
 * "--name value", "--name=value", "-x", "-xy", "-p value", "-pvalue" and "--" work as everywhere; options and
 * operands mix. Every command understands -h and --help without saying so.
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
    const char *help;           /* a line or two */
} Option;

typedef struct Operands {
    char **items; /* moved to the front of argv */
    int n;
} Operands;

typedef enum Parsed {
    PARSED_GO,
    PARSED_HELP,  /* --help was there */
    PARSED_WRONG, /* error holds one line without newline, escaped, that names what is wrong */
} Parsed;

/* argv without the name of the command. values is written as far as parsing came. */
Parsed options_parse(const Option *options, int argc, char **argv, void *values, Operands *ret_operands,
                     Buffer *error);

/* The "Options:" part of a help text. */
void options_help(const Option *options, FILE *out);

/* The one of NULL-terminated names that was probably meant, or NULL. */
const char *nearest_name(const char *wrong, const char *const *names);
