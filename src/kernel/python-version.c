/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>

#include "proc-path.h"
#include "python-version.h"

unsigned python_version_parse(Text program)
{
    static const char name[] = "python3.";
    static const char deleted[] = " (deleted)"; /* the kernel adds it when the file was replaced */
    enum { DIGITS_MOST = 3 };
    size_t end = program.size;
    if (end >= sizeof deleted - 1 &&
        memcmp(program.data + end - (sizeof deleted - 1), deleted, sizeof deleted - 1) == 0)
        end -= sizeof deleted - 1;
    size_t at = end;
    while (at > 0 && program.data[at - 1] != '/')
        at--;
    if (end - at < sizeof name || end - at > sizeof name - 1 + DIGITS_MOST ||
        memcmp(program.data + at, name, sizeof name - 1) != 0)
        return 0;
    unsigned minor = 0;
    for (at += sizeof name - 1; at < end; at++) {
        if (program.data[at] < '0' || program.data[at] > '9')
            return 0;
        minor = minor * 10 + (unsigned)(program.data[at] - '0');
    }
    return minor;
}

unsigned python_version_read(const Root *root, int pid)
{
    char program[PATH_MAX];
    ssize_t n = root_link(root, PROC_PATH(pid, "exe"), program, sizeof program);
    return n > 0 ? python_version_parse((Text){program, (size_t)n}) : 0;
}
