/* SPDX-License-Identifier: Apache-2.0 */
/* Messages about a job, printed behind our name so that they stand out from what the job prints. */
#pragma once

#include "terminal.h"

/* Appends a sentence, or an item of a list. The separator comes first, unless the message is still empty. 0
 * or -ENOMEM, after which the message lacks it. */
int message_add(Buffer *message, const char *separator, const char *format, ...) _printf_(3, 4);

/* "shmguard: message", broken at blanks to fit; prints nothing when the message is empty. */
void message_print(const Terminal *terminal, Style style, const Buffer *message);

/* The same on one line of any length, so that a log can be searched for it. */
void message_print_line(const Terminal *terminal, const Buffer *message);
