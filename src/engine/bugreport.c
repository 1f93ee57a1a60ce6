/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bugreport.h"
#include "fd.h"
#include "macro.h"

/* A file in memory with this text, which stays open across exec, and its path. */
static int text_open(const char *name, const char *text, char path[static 32])
{
    _cleanup_close_ int fd = memfd_create(name, 0);
    if (fd < 0)
        return -errno;
    size_t size = strlen(text);
    ssize_t written = write(fd, text, size);
    if (written != (ssize_t)size)
        return written < 0 ? -errno : -EIO;
    snprintf(path, 32, "/proc/self/fd/%d", fd);
    (void)TAKE_FD(fd);
    return 0;
}

int bugreport_become(const char *output, const char *version, const char *report)
{
    char script[32];
    char capture[32];
    int r = text_open("bugreport.py", python_bugreport, script);
    if (r >= 0)
        r = text_open("capture-root", python_capture_root, capture);
    if (r < 0)
        return r;
    execlp("python3", "python3", "-I", script, capture, output, version, report, (char *)NULL);
    return -errno;
}
