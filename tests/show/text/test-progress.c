/* SPDX-License-Identifier: Apache-2.0 */
/* The line by a table, and on a terminal of its own. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "progress.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static const ProgressFigures before = {
    .seconds = 10, .tensors = 1000, .bytes_backed = 32 * GIB, .budget_bytes = U64_UNKNOWN};
static const ProgressFigures busy = {.seconds = 11,
                                     .tensors = 1042,
                                     .bytes_backed = 33 * GIB + 256 * MIB,
                                     .bytes_now = 192 * MIB,
                                     .budget_bytes = 4 * GIB,
                                     .waiting = 2};

static void test_format(void **state)
{
    (void)state;
    static const ProgressFigures nothing = {.seconds = 11, .bytes_now = 0, .budget_bytes = GIB};
    static const ProgressFigures free_of_budget = {.seconds = 12,
                                                   .tensors = 3000,
                                                   .bytes_backed = 32 * GIB + 3,
                                                   .bytes_now = 64 * MIB,
                                                   .budget_bytes = U64_UNKNOWN,
                                                   .waiting = 1};
    static const ProgressFigures unknown = {.seconds = 11,
                                            .tensors = 1000,
                                            .bytes_backed = 32 * GIB,
                                            .bytes_now = U64_UNKNOWN,
                                            .budget_bytes = U64_UNKNOWN};
    static const ProgressFigures restarted = {
        .seconds = 12, .tensors = 4, .bytes_backed = 4 * MIB, .bytes_now = MIB, .budget_bytes = U64_UNKNOWN};
    static const ProgressFigures same_time = {.seconds = 10,
                                              .tensors = 1001,
                                              .bytes_backed = 32 * GIB,
                                              .bytes_now = MIB,
                                              .budget_bytes = U64_UNKNOWN};
    static const ProgressFigures wild = {.seconds = 1e-300,
                                         .tensors = UINT64_MAX,
                                         .bytes_backed = UINT64_MAX,
                                         .bytes_now = UINT64_MAX - 1,
                                         .budget_bytes = UINT64_MAX - 1,
                                         .waiting = UINT32_MAX};
    static const ProgressFigures batches = {.seconds = 12,
                                            .tensors = 1020,
                                            .batches = 105,
                                            .bytes_backed = 32 * GIB,
                                            .bytes_now = MIB,
                                            .budget_bytes = U64_UNKNOWN};
    static const ProgressFigures freezing = {.freezing = 52000000, .bytes_now = U64_UNKNOWN};
    static const ProgressFigures zero = {0};
    static const struct {
        const ProgressFigures *now;
        const ProgressFigures *last;
        unsigned columns;
        const char *line;
    } cases[] = {
        {&busy, &before, 200,
         "shmguard: 42.0 tensors/s, 1.2 GiB/s, shared memory: 192.0 MiB of 4.0 GiB, 2 workers waiting"},
        {&busy, &before, 92,
         "shmguard: 42.0 tensors/s, 1.2 GiB/s, shared memory: 192.0 MiB of 4.0 GiB, 2 workers waiting"},
        {&batches, &before, 80, "shmguard: 52.5 batches/s, 0 B/s, shared memory: 1.0 MiB"},
        {&busy, &before, 91, "shmguard: 1.2 GiB/s, shared memory: 192.0 MiB of 4.0 GiB, 2 workers waiting"},
        {&busy, &before, 75, "shmguard: shared memory: 192.0 MiB of 4.0 GiB, 2 workers waiting"},
        {&busy, &before, 64, "shmguard: shared memory: 192.0 MiB of 4.0 GiB"},
        {&busy, &before, 46, "shmguard: shared memory: 192.0 MiB of 4.0 GiB"},
        {&busy, &before, 45, ""},
        {&busy, &before, 1, ""},
        {&busy, &before, 0, ""},
        {&free_of_budget, &before, 80,
         "shmguard: 1000 tensors/s, 1 B/s, shared memory: 64.0 MiB, 1 worker waiting"},
        {&unknown, &before, 80, "shmguard: 0.0 tensors/s, 0 B/s"},
        {&restarted, &before, 80, "shmguard: 2.0 tensors/s, 2.0 MiB/s, shared memory: 1.0 MiB"},
        {&same_time, &before, 80, "shmguard: shared memory: 1.0 MiB"},
        {&nothing, &before, 80, ""},
        {&freezing, &zero, 80, "shmguard: making the dataset immortal: 52.0 million objects"},
        {&freezing, &zero, 40, ""},
        {&wild, &zero, 60, NULL},
        {&zero, &wild, 60, ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_buffer_ Buffer out = {0};
        assert_int_equal(progress_format(cases[i].now, cases[i].last, cases[i].columns, &out), 0);
        if (cases[i].line && strcmp(buffer_text(&out), cases[i].line) != 0)
            fail_msg("case %zu: %s", i, buffer_text(&out));
        assert_true(out.size == 0 || out.size < cases[i].columns);
    }
}

static void test_never(void **state)
{
    (void)state;
    _cleanup_close_ int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    FILE *out = fdopen(dup(fd), "w");
    Terminal pipe = {.out = out, .columns = 80};
    Progress progress = progress_open(&pipe, STDOUT_FILENO, false);
    assert_true(progress.fd < 0);
    progress_draw(&progress, &busy, getpgrp(), false);
    progress_erase(&progress, false);
    progress_close(&progress);
    Terminal tty = {.out = out, .columns = 80, .is_tty = true};
    setenv("TERM", "xterm", 1);
    progress = progress_open(&tty, fd, true);
    assert_true(progress.fd < 0);
    setenv("TERM", "dumb", 1);
    progress = progress_open(&tty, fd, false);
    assert_true(progress.fd < 0);
    unsetenv("TERM");
    progress = progress_open(&tty, fd, false);
    assert_true(progress.fd < 0);
    fclose(out);
}

/* What arrives at the other end, until it has been quiet for a moment. */
static void screen_read(int master, char *buf, size_t size)
{
    size_t n = 0;
    struct pollfd ready = {.fd = master, .events = POLLIN};
    while (n < size - 1 && poll(&ready, 1, 100) == 1 && (ready.revents & POLLIN)) {
        ssize_t got = read(master, buf + n, size - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    buf[n] = '\0';
}

#define CHECK(condition)                                                                                     \
    do                                                                                                       \
        if (!(condition)) {                                                                                  \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                           \
            fflush(stdout);                                                                                  \
            return 1;                                                                                        \
        }                                                                                                    \
    while (0)

#define CHECK_SCREEN(text)                                                                                   \
    do {                                                                                                     \
        char seen[1024];                                                                                     \
        screen_read(master, seen, sizeof seen);                                                              \
        if (strcmp(seen, (text)) != 0) {                                                                     \
            printf("%s:%d: screen is '%s'\n", __FILE__, __LINE__, seen);                                     \
            fflush(stdout);                                                                                  \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

/* In a session of its own, with the terminal as its controlling one. */
static int terminal_body(int master)
{
    ProgressFigures now = busy;
    setsid();
    int slave = open(ptsname(master), O_RDWR);
    CHECK(slave >= 0 && ioctl(slave, TIOCSCTTY, 0) == 0);
    struct winsize size = {.ws_row = 24, .ws_col = 76};
    CHECK(ioctl(slave, TIOCSWINSZ, &size) == 0);
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    FILE *out = fdopen(slave, "w");
    Terminal terminal = terminal_of(out, COLOR_AUTO);
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    Progress progress = progress_open(&terminal, pipes[1], false);
    CHECK(progress.fd < 0);
    progress = progress_open(&terminal, slave, false);
    CHECK(progress.fd >= 0);
    CHECK(!(fcntl(slave, F_GETFL) & O_NONBLOCK)); /* the command's side is as it was */

    progress.last = before;
    progress_draw(&progress, &now, 1, false);
    CHECK_SCREEN("\rshmguard: 1.2 GiB/s, shared memory: 192.0 MiB of 4.0 GiB, 2 workers waiting\033[K");
    now.seconds++;
    now.waiting = 0;
    progress_draw(&progress, &now, 1, false);
    CHECK_SCREEN("\rshmguard: 0.0 tensors/s, 0 B/s, shared memory: 192.0 MiB of 4.0 GiB\033[K");
    progress_erase(&progress, false);
    CHECK_SCREEN("\r\033[K");
    progress_erase(&progress, false);
    CHECK_SCREEN("");

    /* The window became smaller. */
    size.ws_col = 50;
    CHECK(ioctl(slave, TIOCSWINSZ, &size) == 0);
    progress_draw(&progress, &now, 1, false);
    CHECK_SCREEN("\rshmguard: shared memory: 192.0 MiB of 4.0 GiB\033[K");
    size.ws_col = 20;
    CHECK(ioctl(slave, TIOCSWINSZ, &size) == 0);
    progress_draw(&progress, &now, 1, false);
    CHECK_SCREEN("\r\033[K");
    size.ws_col = 50;
    CHECK(ioctl(slave, TIOCSWINSZ, &size) == 0);

    /* The command writes: hands off, even when it is time to erase. */
    progress_draw(&progress, &now, 1, false);
    CHECK_SCREEN("\rshmguard: shared memory: 192.0 MiB of 4.0 GiB\033[K");
    progress_draw(&progress, &now, 1, true);
    progress_erase(&progress, false);
    CHECK_SCREEN("");
    progress_draw(&progress, &now, 1, false);
    CHECK_SCREEN("\rshmguard: shared memory: 192.0 MiB of 4.0 GiB\033[K");
    progress_erase(&progress, true);
    CHECK_SCREEN("");

    /* A terminal that takes nothing does not stop us. */
    CHECK(tcflow(slave, TCOOFF) == 0);
    for (int i = 0; i < 1000; i++)
        progress_draw(&progress, &now, 1, false);
    progress_erase(&progress, false);
    CHECK(tcflow(slave, TCOON) == 0);
    CHECK_SCREEN("");

    /* Somebody else has the terminal: the shell. */
    signal(SIGTTOU, SIG_IGN);
    pid_t other = fork();
    if (other == 0) {
        setpgid(0, 0);
        pause();
        _exit(0);
    }
    setpgid(other, other);
    CHECK(tcsetpgrp(slave, other) == 0);
    progress_draw(&progress, &now, 1, false);
    CHECK_SCREEN("");
    progress_draw(&progress, &now, other, false);
    CHECK_SCREEN("\rshmguard: shared memory: 192.0 MiB of 4.0 GiB\033[K");
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    progress_close(&progress);
    fclose(out);
    return 0;
}

static void test_terminal(void **state)
{
    (void)state;
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0) {
        print_message("needs a pseudo-terminal\n");
        skip();
    }
    assert_int_equal(grantpt(master), 0);
    assert_int_equal(unlockpt(master), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(terminal_body(master));
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close(master);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_never),
        cmocka_unit_test(test_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
