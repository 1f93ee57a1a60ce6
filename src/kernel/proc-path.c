/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "proc-path.h"

char *proc_path(int pid, const char *name, char buf[static PROC_PATH_MAX])
{
    if (pid == 0)
        snprintf(buf, PROC_PATH_MAX, "proc/self/%s", name);
    else
        snprintf(buf, PROC_PATH_MAX, "proc/%d/%s", pid, name);
    return buf;
}

int proc_read(const Root *root, int pid, const char *name, Buffer *buffer)
{
    return root_read(root, PROC_PATH(pid, name), ROOT_FILE_MAX, buffer);
}
