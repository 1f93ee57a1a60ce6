/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and durations as people write them. Printed sizes are binary and say so (64.0 MiB). */
#pragma once

#include <stdint.h>

#include "text.h"

/*
 * "64M", "64MiB", "1g", "1.5GB", "4096": a number, optionally with a fraction and a unit with or without
 * "B"/"iB" in any case; blanks between are allowed. K, M, G, T, P are binary with and without "iB", and with
 * "B", too: --shm-size and mount read them that way. 0, -EINVAL (not a size) or -ERANGE (does not fit 64
 * bits).
 */
int size_parse(Text a, uint64_t *ret_bytes);

/* "512 B", "1.5 KiB", "64.0 MiB", "?" for U64_UNKNOWN. Returns buf. */
enum { SIZE_TEXT_MAX = 32 };
char *size_format(uint64_t bytes, char buf[static SIZE_TEXT_MAX]);
#define SIZE_TEXT(bytes) size_format((bytes), (char[SIZE_TEXT_MAX]){0})

/* The same as an option's value, exact or rounded up to whole MiB ("8g", "1536m"). */
char *size_format_flag(uint64_t bytes, char buf[static SIZE_TEXT_MAX]);
#define SIZE_FLAG(bytes) size_format_flag((bytes), (char[SIZE_TEXT_MAX]){0})

/* A size that users may also leave to us, or switch off. */
typedef enum SizeWishKind {
    WISH_AUTO,
    WISH_OFF,
    WISH_SIZE,
} SizeWishKind;

typedef struct SizeWish {
    SizeWishKind kind;
    uint64_t bytes; /* of WISH_SIZE */
} SizeWish;

/* "auto", "off", or a size as for size_parse. 0, -EINVAL, or -ERANGE if it is below WISH_LEAST_BYTES (most
 * likely a forgotten unit) or larger than a file can be. */
#define WISH_LEAST_BYTES (UINT64_C(1) << 20)
int size_wish_parse(Text a, SizeWish *ret);

/* "30", "1.5s", "500ms", "2m" or "2min", "1h": the default unit is seconds. 0 or -EINVAL. */
int duration_parse(Text a, double *ret_seconds);

/* "4 s", "3 min", "2 h", "5 d": the largest unit, for people. Returns buf. */
char *duration_format(double seconds, char buf[static SIZE_TEXT_MAX]);
#define DURATION_TEXT(seconds) duration_format((seconds), (char[SIZE_TEXT_MAX]){0})

/* "SIGTERM", "SIGRTMIN+6"; "signal 99" if the number has no name. */
char *signal_format(int signo, char buf[static SIZE_TEXT_MAX]);
#define SIGNAL_TEXT(signo) signal_format((signo), (char[SIZE_TEXT_MAX]){0})
