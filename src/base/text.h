/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text as the kernel and other programs write it. A Text is a view of bytes owned elsewhere: it has no NUL at
 * its end and may hold any byte. Parsing functions are strict: they accept all of their input, or refuse it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What a person reads is written in catalogues, one header per domain (doctor-text.h, run-text.h): whole
 * sentences, each one string, so that they can be read together and translated. Text is never glued from
 * fragments. A sentence that counts something has two forms.
 */
#define PLURAL(n, one, many) ((n) == 1 ? (one) : (many))

#include "buffer.h"

typedef struct Text {
    const char *data;
    size_t size;
} Text;

#define TEXT(literal) ((Text){literal, sizeof(literal) - 1})

Text text_of(const char *s); /* NULL gives the empty text */
bool text_equal(Text a, const char *b);
bool text_starts(Text a, const char *prefix);
bool text_ends(Text a, const char *suffix);
bool text_contains(Text a, const char *needle);
uint64_t text_hash(Text a);       /* FNV-1a: for tables, and to see whether a text has changed */
Text text_trim(Text a);           /* without blanks (space, tab, CR, LF) at both ends */
Text text_skip(Text a, size_t n); /* without its first n bytes; empty if it has no more */
Text text_digits(Text a);         /* the decimal digits that it begins with */

/* What follows the first occurrence of the literal. False, with ret untouched: there is none. */
bool text_after(Text a, const char *literal, Text *ret);

/* Takes the next line (without its newline) off *rest. False at the end. A last line without newline counts.
 */
bool text_line(Text *rest, Text *ret_line);
#define TEXT_FOR_EACH_LINE(line, text) for (Text _rest = (text), line; text_line(&_rest, &line);)

/* Without what follows the last newline: a truncated line may hold half a number. */
Text text_whole_lines(Text a);

/* Takes the next run of non-blanks off *rest. False when only blanks are left. */
bool text_word(Text *rest, Text *ret_word);

/* Takes the text before the separator (or all of it, if there is none) off *rest. False: *rest is empty. */
bool text_until(Text *rest, char separator, Text *ret_part);

/* "Key:  value": true if line starts with key and a colon; ret_value is trimmed. "Cached" does not match
 * "SwapCached". */
bool text_key(Text line, const char *key, Text *ret_value);

/* Unsigned numbers, whole text, no sign, no blanks. 0, -EINVAL or -ERANGE. */
int text_u64(Text a, unsigned base, uint64_t *ret);
int text_u32(Text a, unsigned base, uint32_t *ret);
int text_pid(Text a, int *ret); /* a positive decimal int */

/* "1234 kB" as in meminfo and status, in bytes. 0, -EINVAL or -ERANGE. */
int text_kib(Text a, uint64_t *ret_bytes);

/* "12.34" as PSI writes it: digits, optionally a point and digits. 0 or -EINVAL. */
int text_decimal(Text a, double *ret);

/*
 * Appends text as one line of valid UTF-8 that is harmless on a terminal: control characters and bytes that
 * are not UTF-8 become \n, \t or \xNN, and a backslash is doubled. Printable characters stay as they are.
 */
int text_escape(Text a, Buffer *out);

/* The same for prose, paths and commands to copy: a backslash is only doubled if something else is escaped.
 */
int text_escape_prose(Text a, Buffer *out);

/* Appends text with U+FFFD in place of each byte that is not UTF-8. */
int text_repair(Text a, Buffer *out);

/* Undoes the \040 escapes of mountinfo. Returns the number of bytes written to out (never more than a.size).
 */
size_t text_unescape_octal(Text a, char *out);

/* Takes the part off *rest behind which a line may end: before and after East Asian characters, except that
 * no line begins with their closing punctuation or ends with an opening one. False: *rest is empty. */
bool text_piece(Text *rest, Text *ret_piece);

/* Columns that valid UTF-8 takes on a terminal: wide characters count two, combining ones none. */
size_t text_columns(Text a);

/* The bytes and columns of the character at the start of valid UTF-8, which is not empty. */
size_t text_character(Text a, size_t *ret_columns);

/* Appends valid UTF-8, shortened in the middle to at most `columns`: both ends of a name say more than one.
 */
int text_shorten(Text a, size_t columns, const char *ellipsis, Buffer *out);
