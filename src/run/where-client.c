/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "outer.h"
#include "presence.h"
#include "proc-path.h"
#include "protocol.h"
#include "where-client.h"

enum { ENVIRONMENT_MAX = 1 << 18, PATIENCE_MSEC = 3000 };

/* The name of the socket that a process of a job was given. */
static int socket_of_process(const Root *root, int pid, Buffer *scratch, Text *ret)
{
    int r = root_read(root, PROC_PATH(pid, "environ"), ENVIRONMENT_MAX, scratch);
    if (r < 0)
        return r == -ENOENT ? -ESRCH : r;
    return environment_value((Text){scratch->data, scratch->size}, PROTOCOL_ENVIRONMENT, ret) && ret->size > 0
               ? 0
               : -ENOENT;
}

/* The name of a supervisor's own socket, as the kernel lists it: "... @shmguard-PID-RANDOM". */
static int socket_of_supervisor(const Root *root, int pid, Buffer *scratch, Text *ret)
{
    char wanted[32];
    snprintf(wanted, sizeof wanted, "@shmguard-%d-", pid);
    int r = root_read(root, "proc/net/unix", ROOT_FILE_MAX, scratch);
    if (r < 0)
        return r;
    TEXT_FOR_EACH_LINE (line, ((Text){scratch->data, scratch->size})) {
        Text rest;
        if (!text_after(line, wanted, &rest))
            continue;
        size_t n = strlen(wanted) - 1; /* without the "@", which stands for a NUL */
        *ret = text_trim((Text){rest.data - n, rest.size + n});
        return 0;
    }
    return -ENOENT;
}

static int request_send(const char *socket, int *ret_supervisor)
{
    Message message = {.magic = PROTOCOL_MAGIC, .type = MESSAGE_WHERE};
    _cleanup_close_ int fd = outer_connect(socket, ret_supervisor);
    if (fd < 0)
        return -ECONNREFUSED;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    if (!message_send(fd, &message, -1, 0))
        return -errno;
    Message answer = {0};
    if (poll(&ready, 1, PATIENCE_MSEC) <= 0 ||
        recv(fd, &answer, sizeof answer, MSG_DONTWAIT) != sizeof answer)
        return -ETIMEDOUT;
    return -answer.error;
}

int where_request(const Root *root, int pid, int *ret_supervisor)
{
    _cleanup_buffer_ Buffer scratch = {0};
    Text name;
    int r = socket_of_process(root, pid, &scratch, &name);
    if (r == -ENOENT)
        r = socket_of_supervisor(root, pid, &scratch, &name);
    if (r < 0)
        return r;
    char socket[128];
    if (name.size >= sizeof socket)
        return -ENOENT;
    memcpy(socket, name.data, name.size);
    socket[name.size] = '\0';
    return request_send(socket, ret_supervisor);
}
