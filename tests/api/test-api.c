/* SPDX-License-Identifier: Apache-2.0 */
/* The C API as another program uses it: answers, refusals, and what it must leave alone. */
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "shmguard.h"

static json_t *parsed(char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    shmguard_free(text);
    return json;
}

static void schema_check(char *text, const char *schema)
{
    json_t *json = parsed(text);
    assert_string_equal(json_string_value(json_object_get(json, "schema")), schema);
    json_decref(json);
}

static void test_answers(void **state)
{
    (void)state;
    static const char log[] = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error.\n";
    const char *const everything[] = {"--all", NULL};
    const char *const job[] = {"--sample", "float32[3,4]", "--batch", "8", "--workers", "2", NULL};
    char *json = NULL;
    char *error = NULL;
    int code = shmguard_doctor(NULL, &json, &error);
    assert_in_range(code, 0, 2);
    schema_check(json, "shmguard.doctor/1");
    assert_int_equal(shmguard_ps(everything, &json, &error), 0);
    schema_check(json, "shmguard.ps/1");
    assert_int_equal(shmguard_plan(job, &json, &error), 0);
    schema_check(json, "shmguard.plan/1");
    assert_int_equal(shmguard_explain(log, strlen(log), &json, &error), 0);
    json_t *explanation = parsed(json);
    const char *id = json_string_value(json_object_get(json_object_get(explanation, "cause"), "id"));
    assert_string_equal(id, "shm-exhausted");
    json_decref(explanation);
    assert_null(error);
    assert_non_null(strchr(shmguard_version(), '.'));
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *options[5];
        int code;
        const char *said;
    } cases[] = {
        {{NULL}, 64, "plan: "},
        {{"--frobnicate"}, 64, "plan: unknown option --frobnicate; --help lists the options"},
        {{"--sample", "float33"}, 64, "float33"},
        {{"--root", "/nonexistent", "--batch-bytes=1M", "--workers=1"}, 65, "--root /nonexistent: "},
        {{"--help"}, 64, "plan: --help is available on the command line only"},
        {{"--measure", "--", "true"}, 64, "plan: --measure is available on the command line only"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *json = NULL;
        char *error = NULL;
        assert_int_equal(shmguard_plan(cases[i].options, &json, &error), cases[i].code);
        assert_null(json);
        assert_non_null(strstr(error, cases[i].said));
        assert_null(strchr(error, '\n'));
        shmguard_free(error);
    }
}

static volatile sig_atomic_t children;

static void child_seen(int signo)
{
    (void)signo;
    children++;
}

/* doctor tries a namespace in a child, of which the program must not notice anything. */
static void test_leaves_the_process_alone(void **state)
{
    (void)state;
    sigset_t before;
    sigset_t after;
    char *json = NULL;
    char *error = NULL;
    signal(SIGCHLD, child_seen);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    int fd = dup(STDIN_FILENO);
    assert_in_range(shmguard_doctor(NULL, &json, &error), 0, 2);
    shmguard_free(json);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int signo = 1; signo < NSIG; signo++)
        assert_int_equal(sigismember(&before, signo), sigismember(&after, signo));
    assert_int_equal(children, 0);
    assert_int_equal(waitpid(-1, NULL, __WALL), -1);
    close(fd);
    int again = dup(STDIN_FILENO);
    assert_int_equal(again, fd);
    close(again);
    signal(SIGCHLD, SIG_DFL);
}

static void *ask_often(void *unused)
{
    const char *const job[] = {"--sample", "float32[3,4]", "--batch", "8", "--workers",
                               "2",        "--margin",     "1.5",     NULL};
    const char *const wrong[] = {"--batch", "x", NULL};
    (void)unused;
    for (int i = 0; i < 50; i++) {
        char *json = NULL;
        char *error = NULL;
        if (shmguard_plan(job, &json, &error) != 0 || shmguard_plan(wrong, &json, &error) != 64)
            return (void *)error;
        shmguard_free(json);
        shmguard_free(error);
    }
    return NULL;
}

/* Each thread gets its own answers, and numbers have a point in any locale. */
static void test_threads(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    (void)setlocale(LC_ALL, "de_DE.UTF-8"); /* where it is installed */
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    (void)setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_leaves_the_process_alone),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
