/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors. A closed or never opened one is any negative number. */
#pragma once

#include <errno.h>

/* Closes fd when it is open; keeps errno. close() is not retried on EINTR: Linux has closed it by then. */
void fd_close(int fd);
void fd_close_pointer(int *fd);
