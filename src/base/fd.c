/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "fd.h"

void fd_close(int fd)
{
    if (fd < 0)
        return;
    int saved = errno;
    close(fd);
    errno = saved;
}

void fd_close_pointer(int *fd)
{
    fd_close(*fd);
}
