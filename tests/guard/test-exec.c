/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ordinary program under the preload library, as a supervisor has started it: it starts env(1) in every
 * way that there is, with environments of its own, and looks at what arrives.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ENV     "/usr/bin/env"
#define LIBRARY "@" /* in the tables below: the path of our library */

/* What tests/guard/meson.build starts us with. */
#define SOCKET  "SHMGUARD_SOCKET=nobody-listens"
#define WITNESS "SHMGUARD_ONLY_WITNESS=1"
#define PIN     "SHMGUARD_PIN=off"

static const char *library;
static char *words[] = {(char *)"env", NULL};

typedef int (*Start)(char *const *environment); /* returns only when it fails */

static int by_execve(char *const *environment)
{
    return execve(ENV, words, environment);
}

static int by_execv(char *const *environment)
{
    environ = (char **)environment;
    return execv(ENV, words);
}

static int by_execvp(char *const *environment)
{
    environ = (char **)environment;
    return execvp("env", words);
}

static int by_execvpe(char *const *environment)
{
    return execvpe("env", words, environment);
}

static int by_execl(char *const *environment)
{
    environ = (char **)environment;
    return execl(ENV, "env", "-u", "none", (char *)NULL);
}

static int by_execlp(char *const *environment)
{
    environ = (char **)environment;
    return execlp("env", "env", (char *)NULL);
}

static int by_execle(char *const *environment)
{
    return execle(ENV, "env", "-u", "none", (char *)NULL, environment);
}

static int by_fexecve(char *const *environment)
{
    return fexecve(open(ENV, O_RDONLY | O_CLOEXEC), words, environment);
}

static int by_execveat(char *const *environment)
{
    return execveat(open("/usr/bin", O_RDONLY | O_DIRECTORY), "env", words, environment, 0);
}

static int wait_for(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    _exit(WEXITSTATUS(status));
}

static int by_posix_spawn(char *const *environment)
{
    pid_t child = 0;
    return posix_spawn(&child, ENV, NULL, NULL, words, environment) == 0 ? wait_for(child) : -1;
}

static int by_posix_spawnp(char *const *environment)
{
    pid_t child = 0;
    return posix_spawnp(&child, "env", NULL, NULL, words, environment) == 0 ? wait_for(child) : -1;
}

static int by_vfork(char *const *environment)
{
    /* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): Python's subprocess does it */
    pid_t child = vfork();
    if (child == 0) {
        execve(ENV, words, environment);
        _exit(127);
    }
    return wait_for(child);
}

static int by_system(char *const *environment)
{
    environ = (char **)environment;
    _exit(WEXITSTATUS(system(ENV "; exit $?")));
}

static int by_popen(char *const *environment)
{
    environ = (char **)environment;
    FILE *from = popen(ENV, "r");
    for (int c; from && (c = fgetc(from)) != EOF;)
        putchar(c);
    fflush(stdout);
    _exit(from ? WEXITSTATUS(pclose(from)) : 1);
}

static const struct {
    const char *name;
    Start start;
} starts[] = {
    {"execve", by_execve},
    {"execv", by_execv},
    {"execvp", by_execvp},
    {"execvpe", by_execvpe},
    {"execl", by_execl},
    {"execlp", by_execlp},
    {"execle", by_execle},
    {"fexecve", by_fexecve},
    {"execveat", by_execveat},
    {"posix_spawn", by_posix_spawn},
    {"posix_spawnp", by_posix_spawnp},
    {"vfork", by_vfork},
    {"system", by_system},
    {"popen", by_popen},
};
enum { N_STARTS = sizeof starts / sizeof starts[0] };

/* What env(1) says that it was given. */
static char *environment_by(Start start, char *const *environment)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        start(environment);
        _exit(126);
    }
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    text[fread(text, 1, (1 << 20) - 1, from)] = '\0';
    fclose(from);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return text;
}

static void library_put(const char *text, char *ret, size_t size)
{
    size_t n = 0;
    for (; *text; text++)
        n += (size_t)snprintf(ret + n, size - n, "%.*s", *text == *LIBRARY ? 1000 : 1,
                              *text == *LIBRARY ? library : text);
    ret[n] = '\0';
}

static bool has_line(const char *text, const char *line)
{
    size_t n = strlen(line);
    for (const char *at = text; (at = strstr(at, line)); at++)
        if ((at == text || at[-1] == '\n') && (at[n] == '\n' || at[n] == '\0'))
            return true;
    return false;
}

static unsigned count_name(const char *text, const char *name)
{
    unsigned n = 0;
    size_t size = strlen(name);
    for (const char *at = text; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        n += strncmp(at, name, size) == 0 && at[size] == '=';
    }
    return n;
}

enum { STRINGS_MAX = 7 };

static const struct {
    const char *given[STRINGS_MAX];
    const char *expected[STRINGS_MAX];
} cases[] = {
    {{NULL}, {"LD_PRELOAD=@", SOCKET, WITNESS, PIN}},
    {{"A=b"}, {"A=b", "LD_PRELOAD=@", SOCKET, WITNESS, PIN}},
    {{"LD_PRELOAD="}, {"LD_PRELOAD=@", SOCKET, WITNESS, PIN}},
    {{"LD_PRELOAD=libdl.so.2", SOCKET}, {"LD_PRELOAD=@:libdl.so.2", SOCKET, WITNESS, PIN}},
    {{"LD_PRELOAD=libdl.so.2 libm.so.6"}, {"LD_PRELOAD=@:libdl.so.2:libm.so.6", SOCKET, WITNESS, PIN}},
    {{"LD_PRELOAD=libdl.so.2:@", "A=b"}, {"LD_PRELOAD=libdl.so.2:@", "A=b", SOCKET, WITNESS, PIN}},
    {{"LD_PRELOAD=@:libdl.so.2"}, {"LD_PRELOAD=@:libdl.so.2", SOCKET, WITNESS, PIN}},
    {{"LD_PRELOAD=@", SOCKET, WITNESS, PIN}, {"LD_PRELOAD=@", SOCKET, WITNESS, PIN}},
    {{"SHMGUARD_SOCKET=", "SHMGUARD_PIN=auto"}, {"LD_PRELOAD=@", SOCKET, WITNESS, "SHMGUARD_PIN=auto"}},
    {{"SHMGUARD=on", "LD_PRELOADED=no"},
     {"SHMGUARD=on", "LD_PRELOADED=no", "LD_PRELOAD=@", SOCKET, WITNESS, PIN}},
    /* Switched off by name, and another supervisor's: as they are. */
    {{"SHMGUARD=off", "A=b"}, {"SHMGUARD=off", "A=b"}},
    {{"A=b", "SHMGUARD=off", "LD_PRELOAD=libdl.so.2"}, {"A=b", "SHMGUARD=off", "LD_PRELOAD=libdl.so.2"}},
    {{"SHMGUARD_SOCKET=another", "A=b"}, {"SHMGUARD_SOCKET=another", "A=b"}},
};

static void check(const char *text, const char *const *expected, const char *name)
{
    static const char *const ours[] = {"LD_PRELOAD", "SHMGUARD_SOCKET", "SHMGUARD_ONLY_WITNESS",
                                       "SHMGUARD_PIN"};
    char line[4096];
    unsigned wanted[4] = {0};
    for (size_t i = 0; i < STRINGS_MAX && expected[i]; i++) {
        library_put(expected[i], line, sizeof line);
        if (!has_line(text, line))
            fail_msg("%s: no \"%s\" in\n%s", name, line, text);
        for (size_t k = 0; k < 4; k++)
            wanted[k] |= count_name(line, ours[k]);
    }
    for (size_t k = 0; k < 4; k++)
        if (count_name(text, ours[k]) != wanted[k])
            fail_msg("%s: %s %u times in\n%s", name, ours[k], count_name(text, ours[k]), text);
}

static void test_every_way(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        char strings[STRINGS_MAX][4096];
        char *given[STRINGS_MAX + 1] = {NULL};
        for (size_t i = 0; i < STRINGS_MAX && cases[c].given[i]; i++) {
            library_put(cases[c].given[i], strings[i], sizeof strings[i]);
            given[i] = strings[i];
        }
        for (size_t s = 0; s < N_STARTS; s++) {
            char *text = environment_by(starts[s].start, given);
            check(text, cases[c].expected, starts[s].name);
            free(text);
        }
    }
}

static void test_no_environment_at_all(void **state)
{
    (void)state;
    for (size_t s = 0; s < N_STARTS; s++) {
        char *text = environment_by(starts[s].start, NULL);
        check(text, cases[0].expected, starts[s].name);
        free(text);
    }
}

static void test_a_large_one_is_passed_as_it_is(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    static char strings[MANY][16];
    static char *given[MANY + 1];
    for (int i = 0; i < MANY; i++) {
        snprintf(strings[i], sizeof strings[i], "V%d=1", i);
        given[i] = strings[i];
    }
    char *text = environment_by(by_execve, given);
    assert_true(has_line(text, "V4999=1"));
    assert_int_equal(count_name(text, "LD_PRELOAD"), 0);
    free(text);
    given[1000] = NULL;
    text = environment_by(by_execve, given);
    assert_true(has_line(text, "V999=1"));
    assert_int_equal(count_name(text, "LD_PRELOAD"), 1);
    free(text);
}

static void test_errors_are_the_real_calls(void **state)
{
    (void)state;
    char *none[] = {NULL};
    pid_t child = 0;
    errno = 0;
    assert_int_equal(execve("/none", words, none), -1);
    assert_int_equal(errno, ENOENT);
    errno = 0;
    assert_int_equal(execve("/etc/passwd", words, none), -1);
    assert_int_equal(errno, EACCES);
    errno = 0;
    assert_int_equal(execvpe("none-of-that-name", words, none), -1);
    assert_int_equal(errno, ENOENT);
    errno = 0;
    assert_int_equal(fexecve(-1, words, none), -1);
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_int_equal(execveat(-1, "env", words, none, 0), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(posix_spawn(&child, "/none", NULL, NULL, words, none), ENOENT);
    errno = ERANGE;
    assert_int_equal(posix_spawn(&child, "/bin/true", NULL, NULL, words, none), 0);
    assert_int_equal(errno, ERANGE);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_not_equal(system(NULL), 0);
}

static void *spawn_often(void *argument)
{
    char *none[] = {NULL};
    char *quiet[] = {(char *)"true", NULL};
    for (int i = 0; i < 50; i++) {
        pid_t child = 0;
        int status = -1;
        if (posix_spawnp(&child, "true", NULL, NULL, quiet, none) != 0 ||
            waitpid(child, &status, 0) != child || status != 0)
            return argument;
    }
    return NULL;
}

static void test_among_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, spawn_often, words), 0);
    for (size_t i = 0; i < 4; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

/* Started without a supervisor, or with SHMGUARD=off: environments are none of our business. */
static void test_left_alone(void **state)
{
    (void)state;
    char *given[] = {(char *)"A=b", NULL};
    for (size_t s = 0; s < N_STARTS; s++) {
        char *text = environment_by(starts[s].start, given);
        assert_true(has_line(text, "A=b"));
        assert_null(strstr(text, "LD_PRELOAD"));
        assert_null(strstr(text, "SHMGUARD"));
        free(text);
    }
}

int main(int argc, char **argv)
{
    library = getenv("LD_PRELOAD");
    if (!library || library[0] != '/') {
        fprintf(stderr, "run this under the preload library\n");
        return 77;
    }
    const struct CMUnitTest alone[] = {cmocka_unit_test(test_left_alone)};
    if (argc > 1 && strcmp(argv[1], "alone") == 0)
        return cmocka_run_group_tests(alone, NULL, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_way),
        cmocka_unit_test(test_no_environment_at_all),
        cmocka_unit_test(test_a_large_one_is_passed_as_it_is),
        cmocka_unit_test(test_errors_are_the_real_calls),
        cmocka_unit_test(test_among_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
