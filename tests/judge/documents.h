/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the documentation mentions what the program can say. */
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include "text.h"

static inline void document_read(const char *path, Buffer *ret)
{
    char whole[4096];
    snprintf(whole, sizeof whole, "%s/../%s", TESTS_DIRECTORY, path);
    int fd = open(whole, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || buffer_read_fd(ret, fd, SIZE_MAX) < 0)
        fail_msg("%s cannot be read", path);
    (void)close(fd);
}

static inline bool is_of_word(char c)
{
    return (c >= 'a' && c <= 'z') || c == '-' || c == '\\';
}

/* The id as a word by itself. Hyphens may be written as "\-". */
static inline bool manual_names(const Buffer *manual, const char *id)
{
    for (const char *at = buffer_text(manual); *at; at++) {
        const char *rest = at;
        const char *wanted = id;
        while (*wanted && (*rest == *wanted || (*wanted == '-' && rest[0] == '\\' && rest[1] == '-'))) {
            rest += *rest == '\\' ? 2 : 1;
            wanted++;
        }
        if (!*wanted && !is_of_word(*rest) && (at == buffer_text(manual) || !is_of_word(at[-1])))
            return true;
    }
    return false;
}
