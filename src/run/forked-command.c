/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "forked-command.h"

static bool is_child(pid_t pid)
{
    siginfo_t info = {0};
    return pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static bool has_children(void)
{
    siginfo_t info = {0};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Without limit: it may be stopped, or wait for a disk, and its end of the socket closes when it ends. */
static bool is_readable(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int n = 0;
    while ((n = poll(&ready, 1, has_children() ? -1 : 0)) < 0 && errno == EINTR) {
    }
    return n > 0;
}

int forked_command_find(int fd, pid_t *ret)
{
    pid_t pid = 0;
    if (!is_readable(fd) || recv(fd, &pid, sizeof pid, MSG_DONTWAIT) != sizeof pid || !is_child(pid))
        return -ENODATA;
    *ret = pid;
    return 0;
}

static bool has_string(char *const *strings, const char *string)
{
    while (*strings && *strings != string)
        strings++;
    return *strings != NULL;
}

static bool has_name(char *const *strings, const char *name, size_t n)
{
    while (*strings && !(strncmp(*strings, name, n) == 0 && (*strings)[n] == '='))
        strings++;
    return *strings != NULL;
}

static void setting_send(int fd, const char *setting, size_t n)
{
    if (n > 0 && n <= FORKED_SETTING_MAX)
        (void)send(fd, setting, n, MSG_NOSIGNAL);
}

void forked_command_release(int fd, char *const *old, char *const *environment)
{
    for (char *const *string = environment; string && *string; string++)
        if (!has_string(old, *string))
            setting_send(fd, *string, strlen(*string));
    for (char *const *string = environment ? old : NULL; string && *string; string++) {
        size_t n = strcspn(*string, "=");
        if (!has_name(environment, *string, n))
            setting_send(fd, *string, n);
    }
    (void)send(fd, "", 0, MSG_NOSIGNAL);
}
