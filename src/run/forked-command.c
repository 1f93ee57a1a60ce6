/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "forked-command.h"

enum { PATIENCE_MSEC = 5000 };

static bool is_child(pid_t pid)
{
    siginfo_t info = {0};
    return pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

int forked_command_find(int fd, pid_t *ret)
{
    pid_t pid = 0;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    if (poll(&ready, 1, PATIENCE_MSEC) <= 0 || recv(fd, &pid, sizeof pid, MSG_DONTWAIT) != sizeof pid ||
        !is_child(pid))
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
