/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What processes under the preload library tell of their end. The test is the supervisor; each case is this
 * same program, started again to die in a different way.
 */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol.h"

static int listener;

/* --- Ways to die -------------------------------------------------------------------------------------- */

static volatile sig_atomic_t called;

static void raise_again(int signo, siginfo_t *info, void *context)
{
    (void)context;
    called = info->si_code > 0 ? 1 : 2;
    struct sigaction standard = {.sa_handler = SIG_DFL};
    if (write(STDERR_FILENO, "theirs", 6) != 6)
        _exit(1);
    sigaction(signo, &standard, NULL);
    kill(getpid(), signo);
}

static void note(int signo)
{
    called = signo;
}

static void touch(volatile char *where)
{
    __asm__("" : "+r"(where)); /* the compiler need not know that this is nowhere */
    *where = 1;
}

static int die_by_handler(void)
{
    struct sigaction theirs = {.sa_sigaction = raise_again, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &theirs, NULL);
    touch((char *)64);
    return 0;
}

static int die_in_a_file_cut_short(void)
{
    FILE *file = tmpfile();
    if (!file || ftruncate(fileno(file), 8192) < 0)
        return 1;
    char *data = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    if (data == MAP_FAILED || ftruncate(fileno(file), 0) < 0)
        return 1;
    touch(data + 4096);
    return 0;
}

/* The program sees its own handlers, with its own flags, and defaults where it has none. */
static int see_no_handler(void)
{
    struct sigaction old;
    struct sigaction theirs = {.sa_handler = note, .sa_flags = SA_RESTART};
    sigaddset(&theirs.sa_mask, SIGUSR1);
    int wrong = 0;
    wrong |= sigaction(SIGBUS, NULL, &old) < 0 || old.sa_handler != SIG_DFL ||
             (old.sa_flags & (SA_SIGINFO | SA_ONSTACK | SA_RESTART));
    wrong |= (sigaction(SIGBUS, &theirs, &old) < 0 || old.sa_handler != SIG_DFL) << 1;
    wrong |= (sigaction(SIGBUS, NULL, &old) < 0 || old.sa_handler != note || (old.sa_flags & SA_SIGINFO) ||
              !(old.sa_flags & SA_RESTART) || !sigismember(&old.sa_mask, SIGUSR1))
             << 2;
    wrong |= (raise(SIGBUS) != 0 || called != SIGBUS) << 3;
    wrong |= (signal(SIGFPE, note) != SIG_DFL || signal(SIGFPE, SIG_IGN) != note ||
              signal(SIGFPE, SIG_DFL) != SIG_IGN)
             << 4;
    wrong |= (signal(SIGSEGV, SIG_IGN) != SIG_DFL || raise(SIGSEGV) != 0) << 5;
    struct sigaction once = {.sa_handler = note, .sa_flags = SA_RESETHAND};
    wrong |= (sigaction(SIGABRT, &once, NULL) < 0 || raise(SIGABRT) != 0 || called != SIGABRT ||
              sigaction(SIGABRT, NULL, &old) < 0 || old.sa_handler != SIG_DFL)
             << 6;
    return wrong;
}

static sigjmp_buf back;

static void jump(int signo)
{
    called = signo;
    siglongjmp(back, 1);
}

static bool fault_reaches(int signo)
{
    called = 0;
    if (sigsetjmp(back, 1) == 0)
        touch((char *)64);
    return called == signo;
}

/* A stack for signals of the usual size, and what lies below it. */
static int jump_from_a_small_stack(void)
{
    enum { BELOW = 64 * 1024, SMALL = 12 * 1024 };
    static char memory[BELOW + SMALL];
    memset(memory, 7, sizeof memory);
    stack_t stack = {.ss_sp = memory + BELOW, .ss_size = SMALL};
    struct sigaction theirs = {.sa_handler = jump, .sa_flags = SA_ONSTACK};
    int wrong = sigaltstack(&stack, NULL) < 0 || sigaction(SIGSEGV, &theirs, NULL) < 0;
    wrong |= !fault_reaches(SIGSEGV) << 1;
    for (size_t i = 0; i < BELOW; i++)
        if (memory[i] != 7)
            return wrong | 4;
    return wrong;
}

static struct sigaction seen_inside;

static void jump_with_the_default(int signo)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(signo, &standard, &seen_inside);
    jump(signo);
}

/* A program that installs again what it has read has its own handler again, by whichever call it was read. */
static int put_back(void)
{
    struct sigaction theirs = {.sa_handler = jump_with_the_default};
    int wrong = sigaction(SIGSEGV, &theirs, NULL) < 0;
    for (int i = 0; i < 3; i++) {
        wrong |= (!fault_reaches(SIGSEGV) || seen_inside.sa_handler != jump_with_the_default) << 1;
        wrong |= (sigaction(SIGSEGV, &seen_inside, NULL) < 0) << 2;
    }
    wrong |= (sysv_signal(SIGBUS, note) != SIG_DFL || raise(SIGBUS) != 0 || called != SIGBUS ||
              sysv_signal(SIGBUS, SIG_IGN) != SIG_DFL)
             << 3;

    /* ssignal() is not interposed. */
    struct sigaction old;
    wrong |= (signal(SIGFPE, ssignal(SIGFPE, note)) != note || sigaction(SIGFPE, NULL, &old) < 0 ||
              old.sa_handler != SIG_DFL)
             << 4;
    errno = 0;
    wrong |= (signal(SIGFPE, SIG_ERR) != SIG_ERR || errno != EINVAL) << 5;
    return wrong;
}

/* Python sets all handlers to the default in such a child.
 * NOLINTBEGIN(clang-analyzer-security.insecureAPI.vfork,clang-analyzer-unix.Vfork): what it does is what is
 * tested */
static int vfork_keeps_the_parents_handlers(void)
{
    struct sigaction theirs = {.sa_handler = jump};
    struct sigaction old;
    int status = 0;
    int wrong = sigaction(SIGSEGV, &theirs, NULL) < 0;
    pid_t child = vfork();
    if (child == 0) {
        struct sigaction standard = {.sa_handler = SIG_DFL};
        _exit(sigaction(SIGSEGV, &standard, &old) < 0 || old.sa_handler != jump);
    }
    wrong |= (waitpid(child, &status, 0) != child || status != 0) << 1;
    wrong |= (sigaction(SIGSEGV, NULL, &old) < 0 || old.sa_handler != jump) << 2;
    child = vfork();
    if (child == 0) {
        struct sigaction standard = {.sa_handler = SIG_DFL};
        sigaction(SIGSEGV, &standard, NULL);
        touch((char *)64);
    }
    wrong |= (waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) << 3;
    return wrong | !fault_reaches(SIGSEGV) << 4;
}
/* NOLINTEND(clang-analyzer-security.insecureAPI.vfork,clang-analyzer-unix.Vfork) */

/* The program has made no error with dlopen and the like. */
static int see_no_error(void)
{
    return dlerror() != NULL;
}

static int children_fail(void)
{
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(1);
        if (waitpid(child, NULL, 0) != child)
            return 1;
    }
    return 0;
}

static int child_dies(void)
{
    pid_t child = fork();
    if (child == 0)
        kill(getpid(), SIGKILL);
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFSIGNALED(status) ? 0 : 1;
}

static int say(int code, bool at_once)
{
    for (int i = 0; i < 3000; i++)
        if (write(STDERR_FILENO, "words ", 6) != 6)
            return 99;
    if (write(STDERR_FILENO, "the last\n", 9) != 9)
        return 99;
    if (at_once)
        _exit(code);
    return code;
}

static int die(const char *how)
{
    if (strcmp(how, "segv") == 0)
        touch((char *)128);
    else if (strcmp(how, "abort") == 0)
        abort();
    else if (strcmp(how, "handler") == 0)
        return die_by_handler();
    else if (strcmp(how, "file") == 0)
        return die_in_a_file_cut_short();
    else if (strcmp(how, "see") == 0)
        return see_no_handler();
    else if (strcmp(how, "child") == 0)
        return child_dies();
    else if (strcmp(how, "small-stack") == 0)
        return jump_from_a_small_stack();
    else if (strcmp(how, "put-back") == 0)
        return put_back();
    else if (strcmp(how, "vfork") == 0)
        return vfork_keeps_the_parents_handlers();
    else if (strcmp(how, "no-error") == 0)
        return see_no_error();
    else if (strcmp(how, "children") == 0)
        return children_fail();
    else if (strcmp(how, "said") == 0)
        return say(3, false);
    else if (strcmp(how, "said-exit") == 0)
        return say(4, true);
    else if (strcmp(how, "well") == 0)
        return say(0, false);
    return 100;
}

/* --- The supervisor ----------------------------------------------------------------------------------- */

typedef struct Seen {
    Testimony first;
    size_t n; /* testimonies in all */
    int status;
    double seconds;
} Seen;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Takes what lies in the queue. */
static void listen_once(Seen *seen, bool answer)
{
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0)
        return;
    Testimony testimony = {0};
    ssize_t n = -1;
    for (int i = 0; n < 0 && i < 1000; i++) {
        n = recv(client, &testimony, sizeof testimony, 0);
        if (n < 0)
            usleep(1000);
    }
    assert_true(n >= (ssize_t)offsetof(Testimony, text));
    assert_int_equal(testimony.magic, PROTOCOL_MAGIC);
    assert_int_equal((size_t)n, offsetof(Testimony, text) + testimony.n);
    if (seen->n++ == 0)
        seen->first = testimony;
    Message reply = {.magic = PROTOCOL_MAGIC, .type = MESSAGE_ANSWER};
    if (answer && testimony.type == MESSAGE_FAULT)
        assert_int_equal(send(client, &reply, sizeof reply, MSG_NOSIGNAL), sizeof reply);
    if (answer || testimony.type != MESSAGE_FAULT)
        close(client);
}

static Seen watch(const char *how, bool answer)
{
    Seen seen = {0};
    double began = now();
    pid_t pid = fork();
    if (pid == 0) {
        freopen("/dev/null", "w", stderr);
        execl("/proc/self/exe", "test-witness", how, (char *)NULL);
        _exit(101);
    }
    while (waitpid(pid, &seen.status, WNOHANG) == 0)
        listen_once(&seen, answer);
    for (size_t before = seen.n + 1; before != seen.n;) { /* what it has left in the queue */
        before = seen.n;
        listen_once(&seen, answer);
    }
    seen.seconds = now() - began;
    return seen;
}

static void test_faults(void **state)
{
    (void)state;
    Seen seen = watch("segv", true);
    assert_true(WIFSIGNALED(seen.status) && WTERMSIG(seen.status) == SIGSEGV);
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.first.type, MESSAGE_FAULT);
    assert_int_equal(seen.first.signal, SIGSEGV);
    assert_int_equal(seen.first.address, 128);
    assert_string_equal(seen.first.thread_name, "exe");

    seen = watch("file", true);
    assert_true(WIFSIGNALED(seen.status) && WTERMSIG(seen.status) == SIGBUS);
    assert_int_equal(seen.first.signal, SIGBUS);
    assert_int_equal(seen.first.code, BUS_ADRERR);
    assert_int_equal(seen.first.address % 8192 % 4096, 0);

    seen = watch("abort", true);
    assert_true(WIFSIGNALED(seen.status) && WTERMSIG(seen.status) == SIGABRT);
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.first.signal, SIGABRT);
    assert_true(seen.first.sender > 0);
}

static void test_the_programs_handler_runs_after_one_record(void **state)
{
    (void)state;
    Seen seen = watch("handler", true);
    assert_true(WIFSIGNALED(seen.status) && WTERMSIG(seen.status) == SIGSEGV);
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.first.address, 64);
}

static void test_the_program_does_not_see_us(void **state)
{
    (void)state;
    const char *ways[] = {"see", "small-stack", "put-back", "vfork", "no-error"};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        assert_int_equal(watch(ways[i], true).status, 0);
}

/* It is stopped, and its queue is full. */
static void test_a_deaf_supervisor_does_not_block(void **state)
{
    (void)state;
    int status = 0;
    double began = now();
    pid_t pid = fork();
    if (pid == 0) {
        alarm(30);
        execl("/proc/self/exe", "test-witness", "children", (char *)NULL);
        _exit(101);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(now() - began < 10);
    Seen seen = {0};
    for (int i = 0; i < 40; i++)
        listen_once(&seen, true);
    assert_true(seen.n >= 16);
}

static void test_a_silent_supervisor_is_not_waited_for(void **state)
{
    (void)state;
    Seen seen = watch("segv", false);
    assert_true(WIFSIGNALED(seen.status) && WTERMSIG(seen.status) == SIGSEGV);
    assert_true(seen.seconds > 1 && seen.seconds < 5);
}

static void test_children(void **state)
{
    (void)state;
    Seen seen = watch("child", true);
    assert_int_equal(seen.status, 0);
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.first.type, MESSAGE_CHILD);
    assert_true(seen.first.pid > 0);
    assert_true(WIFSIGNALED(seen.first.status) && WTERMSIG(seen.first.status) == SIGKILL);
}

static void test_last_words(void **state)
{
    (void)state;
    const char *ways[] = {"said", "said-exit"};
    for (int i = 0; i < 2; i++) {
        Seen seen = watch(ways[i], true);
        assert_int_equal(WEXITSTATUS(seen.status), 3 + i);
        assert_int_equal(seen.n, 1);
        assert_int_equal(seen.first.type, MESSAGE_SAID);
        assert_int_equal(seen.first.n, TESTIMONY_TEXT_MAX);
        assert_memory_equal(seen.first.text + TESTIMONY_TEXT_MAX - 15, "words the last\n", 15);
        for (size_t j = 0; j + 6 < TESTIMONY_TEXT_MAX - 15; j++)
            assert_int_equal(seen.first.text[j], seen.first.text[j + 6]);
    }
    assert_int_equal(watch("well", true).n, 0);
}

/* A run within a run is told as well. Here both are the same socket. */
static void test_two_supervisors(void **state)
{
    (void)state;
    assert_int_equal(setenv(PROTOCOL_INNER, getenv(PROTOCOL_ENVIRONMENT), 1), 0);
    Seen seen = watch("segv", true);
    assert_true(WIFSIGNALED(seen.status) && WTERMSIG(seen.status) == SIGSEGV);
    assert_int_equal(seen.n, 2);
    assert_int_equal(watch("said", true).n, 2);
    assert_int_equal(setenv(PROTOCOL_INNER, "nobody-listens", 1), 0);
    assert_int_equal(watch("segv", true).n, 1);
    unsetenv(PROTOCOL_INNER);
}

/* Left alone: no handler stands in front of the default, and nothing is reported. */
static void test_switched_off(void **state)
{
    (void)state;
    assert_int_equal(setenv("SHMGUARD", "off", 1), 0);
    Seen seen = watch("segv", true);
    assert_true(WIFSIGNALED(seen.status) && WTERMSIG(seen.status) == SIGSEGV);
    assert_int_equal(seen.n, 0);
    assert_int_equal(watch("said", true).n, 0);
    unsetenv("SHMGUARD");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return die(argv[1]);
    char name[64];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int n = snprintf(name, sizeof name, "shmguard-test-%d", getpid());
    memcpy(address.sun_path + 1, name, (size_t)n);
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0 ||
        bind(listener, (struct sockaddr *)&address,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) < 0 ||
        listen(listener, 16) < 0 || setenv(PROTOCOL_ENVIRONMENT, name, 1) < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_the_programs_handler_runs_after_one_record),
        cmocka_unit_test(test_the_program_does_not_see_us),
        cmocka_unit_test(test_a_silent_supervisor_is_not_waited_for),
        cmocka_unit_test(test_a_deaf_supervisor_does_not_block),
        cmocka_unit_test(test_children),
        cmocka_unit_test(test_last_words),
        cmocka_unit_test(test_two_supervisors),
        cmocka_unit_test(test_switched_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
