/* SPDX-License-Identifier: Apache-2.0 */
/* The program from outside: exit codes, and one clear line for each kind of bad input. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "buffer.h"
#include "text.h"

enum { WORDS_MAX = 8 };

typedef struct Outcome {
    int code; /* negative: the signal that killed it */
    Buffer out;
    Buffer err;
} Outcome;

static void outcome_free(Outcome *outcome)
{
    buffer_free(&outcome->out);
    buffer_free(&outcome->err);
}
#define _cleanup_outcome_ _cleanup_(outcome_free)

static const char *program_path(void)
{
    const char *path = getenv("SHMGUARD");
    return path ? path : "shmguard";
}

/* Runs SHMGUARD with the words; stdout goes to the file `out_path` when that is not NULL. */
static Outcome program_run(const char *const *words, const char *out_path, const char *input)
{
    const char *argv[WORDS_MAX + 2] = {program_path()};
    for (size_t i = 0; i < WORDS_MAX && words[i]; i++)
        argv[i + 1] = words[i];
    FILE *in = tmpfile();
    FILE *out = tmpfile();
    FILE *err = tmpfile();
    assert_true(in && out && err);
    fputs(input, in);
    rewind(in);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int target = out_path ? open(out_path, O_WRONLY) : fileno(out);
        if (dup2(fileno(in), 0) < 0 || dup2(target, 1) < 0 || dup2(fileno(err), 2) < 0)
            _exit(126);
        execv(argv[0], (char **)argv);
        _exit(127);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    Outcome outcome = {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status)};
    rewind(out);
    rewind(err);
    assert_int_equal(buffer_read_fd(&outcome.out, fileno(out), 1 << 22), 0);
    assert_int_equal(buffer_read_fd(&outcome.err, fileno(err), 1 << 20), 0);
    fclose(in);
    fclose(out);
    fclose(err);
    return outcome;
}

static size_t line_count(const Buffer *text)
{
    size_t n = 0;
    TEXT_FOR_EACH_LINE (line, ((Text){buffer_text(text), text->size}))
        n += line.size > 0;
    return n;
}

static void test_bad_input(void **state)
{
    (void)state;
    static const struct {
        const char *words[WORDS_MAX];
        int code;
        const char *said;
    } cases[] = {
        {{"pps"}, 64, "\"pps\"; did you mean ps?"},
        {{"frobnicate"}, 64, "\"frobnicate\"; shmguard --help lists the commands"},
        {{"--frobnicate"}, 64, "option \"--frobnicate\""},
        {{"\033[31m"}, 64, "\\x1b[31m"},
        {{""}, 64, "unknown command \"\""},
        {{"ps", "--segmets"}, 64, "unknown option --segmets; did you mean --segments?"},
        {{"ps", "-z"}, 64, "unknown option -z"},
        {{"ps", "--pid"}, 64, "--pid needs a value"},
        {{"ps", "--pid", "abc"}, 64, "\"abc\""},
        {{"ps", "--pid=12x"}, 64, "\"12x\""},
        {{"ps", "--pid=2147483647"}, 65, "there is no process 2147483647"},
        {{"doctor", "--pid=2147483647"}, 65, "there is no process 2147483647"},
        {{"ps", "--sort", "weight"}, 64, "pid, rss, pss, uss, shm or fds, not \"weight\""},
        {{"ps", "--segments", "--sort=rss"}, 64, "size, allocated, name or holders, not \"rss\""},
        {{"ps", "--json", "--sort=weight"}, 64, "not \"weight\""},
        {{"ps", "--color=blue"}, 64, "auto, always or never, not \"blue\""},
        {{"ps", "extra"}, 64, "unexpected argument \"extra\""},
        {{"ps", "--root", "/nonexistent"}, 65, "scripts/capture-root"},
        {{"ps", "--root", ""}, 65, "scripts/capture-root"},
        {{"doctor", "--root", "/etc/passwd"}, 65, "/etc/passwd"},
        {{"doctor", "--root", "/dev"}, 65, "scripts/capture-root"},
        {{"clean", "--root", "/"}, 64, "unknown option --root"},
        {{"clean", "--dryrun"}, 64, "did you mean --dry-run?"},
        {{"explain", "/nonexistent"}, 65, "/nonexistent: No such file or directory"},
        {{"explain", "/"}, 65, "/: Is a directory"},
        {{"explain", "a", "b"}, 64, "unexpected argument \"b\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_outcome_ Outcome outcome = program_run(cases[i].words, NULL, "");
        if (outcome.code != cases[i].code || !strstr(buffer_text(&outcome.err), cases[i].said) ||
            line_count(&outcome.err) != 1)
            fail_msg("case %zu: exit %d, said: %s", i, outcome.code, buffer_text(&outcome.err));
        assert_int_equal(outcome.out.size, 0);
    }
}

static void test_no_command(void **state)
{
    (void)state;
    _cleanup_outcome_ Outcome outcome = program_run((const char *[WORDS_MAX]){NULL}, NULL, "");
    assert_int_equal(outcome.code, 64);
    assert_int_equal(outcome.out.size, 0);
    assert_non_null(strstr(buffer_text(&outcome.err), "shmguard explain train.log\n"));
}

static void test_help_and_version(void **state)
{
    (void)state;
    static const struct {
        const char *words[WORDS_MAX];
        const char *said;
    } cases[] = {
        {{"--help"}, "Usage: shmguard COMMAND"},
        {{"-h"}, "Usage: shmguard COMMAND"},
        {{"--version"}, "shmguard " SHMGUARD_VERSION "\n"},
        {{"ps", "--help"}, "--segments"},
        {{"doctor", "--json", "-h"}, "--pid PID"},
        {{"explain", "--help"}, "[FILE]"},
        {{"clean", "--help"}, "--dry-run"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_outcome_ Outcome outcome = program_run(cases[i].words, NULL, "");
        assert_int_equal(outcome.code, 0);
        assert_int_equal(outcome.err.size, 0);
        assert_non_null(strstr(buffer_text(&outcome.out), cases[i].said));
        TEXT_FOR_EACH_LINE (line, ((Text){buffer_text(&outcome.out), outcome.out.size}))
            assert_true(line.size <= 80);
    }
}

static const struct {
    const char *words[WORDS_MAX];
    int worst; /* exit code at most: doctor's verdict is the machine's */
} good[] = {
    {{"ps"}, 0},
    {{"ps", "--segments"}, 0},
    {{"ps", "--json", "--all", "--sort", "rss"}, 0},
    {{"ps", "-as", "--sort=holders"}, 0},
    {{"doctor"}, 2},
    {{"doctor", "--json"}, 2},
    {{"explain"}, 0},
    {{"explain", "-"}, 0},
    {{"explain", "--json", "--", "-"}, 0},
    {{"clean", "--dry-run"}, 0},
    {{"clean", "-nj"}, 0},
};

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        _cleanup_outcome_ Outcome outcome = program_run(good[i].words, NULL, "no idea \xff\n");
        bool no_shm = strcmp(good[i].words[0], "clean") == 0 && outcome.code == 69;
        if (!no_shm && (outcome.code < 0 || outcome.code > good[i].worst || outcome.err.size > 0))
            fail_msg("case %zu: exit %d, said: %s", i, outcome.code, buffer_text(&outcome.err));
    }
}

static void test_output_that_cannot_be_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        _cleanup_outcome_ Outcome outcome = program_run(good[i].words, "/dev/full", "");
        if (outcome.code == 69)
            continue;
        assert_int_equal(outcome.code, 70);
        assert_non_null(strstr(buffer_text(&outcome.err), "No space left on device"));
        assert_int_equal(line_count(&outcome.err), 1);
    }
}

/* A reader that goes away: no word on stderr, whether SIGPIPE kills or is ignored. */
static void test_closed_pipe(void **state)
{
    (void)state;
    for (int ignored = 0; ignored < 2; ignored++) {
        int ends[2];
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        close(ends[0]);
        FILE *err = tmpfile();
        assert_non_null(err);
        pid_t pid = fork();
        if (pid == 0) {
            signal(SIGPIPE, ignored ? SIG_IGN : SIG_DFL);
            if (dup2(ends[1], 1) < 0 || dup2(fileno(err), 2) < 0)
                _exit(126);
            execl(program_path(), "shmguard", "ps", "--all", (char *)NULL);
            _exit(127);
        }
        close(ends[1]);
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (ignored)
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        else
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
        fseek(err, 0, SEEK_END);
        assert_int_equal(ftell(err), 0);
        fclose(err);
    }
}

int main(void)
{
    if (!getenv("SHMGUARD")) {
        fputs("set SHMGUARD to the program to test\n", stderr);
        return 64;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_no_command),
        cmocka_unit_test(test_help_and_version),
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_output_that_cannot_be_written),
        cmocka_unit_test(test_closed_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
