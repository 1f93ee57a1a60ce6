/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin for Slurm: `srun --shmguard[=options]`, and the same with sbatch and salloc.
 *
 * The plugin cannot change the command of a task: Slurm's interface gives it for reading, and after the
 * plugin come the TaskProlog, the user's limits and the exec, which the command must not lose. So the task's
 * process is copied just before all that. The copy goes on, and becomes the command. The original, which
 * Slurm waits for, becomes `shmguard run --forked`, and thereby the copy's parent; Slurm sees the exit code
 * of the command through it. The supervisor tells the copy what its environment needs (forked-command.h).
 *
 * A task that would run without the plugin also runs with it: whatever goes wrong is reported by one line,
 * and the original goes on as if nothing had been asked.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "forked-command.h"
#include "protocol.h"
#include "slurm-text.h"
#include "task-options.h"

/* What Slurm looks up. */
#pragma GCC visibility push(default)
#include <slurm/spank.h>
SPANK_PLUGIN(shmguard, 1)
#pragma GCC visibility pop

/* CONTROL_MSEC: scontrol waits for a controller that is down; the node must not wait for long. */
enum { ARGUMENTS_MAX = 64, COMMENT_MAX = 240, CAUSES_MAX = 1 << 14, CONTROL_MSEC = 5000, PAUSE_MSEC = 20 };

static struct {
    bool given; /* --shmguard */
    TaskOptions options;
    const char *program; /* of plugstack.conf */
    bool no_comment;
} wish = {.program = SHMGUARD_PROGRAM};

/* Of the step: its supervisors write the causes of their ends. */
static int causes[2] = {-EBADF, -EBADF};

/* --- Options ------------------------------------------------------------------------------------------ */

static int option_take(int value, const char *argument, int remote)
{
    (void)value;
    (void)remote;
    _cleanup_buffer_ Buffer error = {0};
    /* From sbatch and salloc to the steps, Slurm writes an argument that was left out in this way. */
    Text text = argument && strcmp(argument, "(null)") != 0 ? text_of(argument) : TEXT("");
    if (task_options_parse(text, &wish.options, &error) < 0) {
        slurm_error("%s", buffer_text(&error));
        return -1;
    }
    wish.given = !wish.options.off;
    return 0;
}

static struct spank_option option = {
    .name = (char *)"shmguard",
    .arginfo = (char *)SLURM_OPTION_ARGUMENT,
    .usage = (char *)SLURM_OPTION_USAGE,
    .has_arg = 2, /* it may be left out */
    .cb = option_take,
};

/* program=PATH and comment=off, in plugstack.conf. */
static void settings_take(int ac, char **av)
{
    for (int i = 0; i < ac; i++)
        if (strncmp(av[i], "program=", strlen("program=")) == 0)
            wish.program = av[i] + strlen("program=");
        else if (strcmp(av[i], "comment=off") == 0)
            wish.no_comment = true;
}

int slurm_spank_init(spank_t spank, int ac, char **av)
{
    settings_take(ac, av);
    if (spank_context() != S_CTX_SLURMD && spank_context() != S_CTX_JOB_SCRIPT)
        (void)spank_option_register(spank, &option);
    return 0;
}

/* --- Before a task's command -------------------------------------------------------------------------- */

typedef struct JobStep {
    uint32_t job;
    uint32_t id;
    uint32_t task;
    char name[16]; /* "3", "batch" */
} JobStep;

/* False: the step has no command of the user's. */
static bool step_read(spank_t spank, JobStep *ret)
{
    JobStep step = {0};
    if (spank_get_item(spank, S_JOB_ID, &step.job) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_STEPID, &step.id) != ESPANK_SUCCESS || step.id == SLURM_EXTERN_CONT ||
        step.id == SLURM_INTERACTIVE_STEP)
        return false;
    (void)spank_get_item(spank, S_TASK_GLOBAL_ID, &step.task);
    if (step.id == SLURM_BATCH_SCRIPT)
        strcpy(step.name, "batch");
    else
        snprintf(step.name, sizeof step.name, "%u", (unsigned)step.id);
    *ret = step;
    return true;
}

typedef struct Supervisor {
    const char *arguments[ARGUMENTS_MAX];
    size_t n;
    char forked[16];
    char cause[16];
    char report[PATH_MAX + 64];
    char record[PATH_MAX + 64];
    char memory[48];
} Supervisor;

static void argument_add(Supervisor *supervisor, const char *argument)
{
    if (supervisor->n < ARGUMENTS_MAX - 1)
        supervisor->arguments[supervisor->n++] = argument;
}

/* In the job's directory. */
static void files_add(Supervisor *supervisor, const JobStep *step)
{
    char directory[PATH_MAX];
    if (wish.options.no_report && !wish.options.record)
        return;
    if (!getcwd(directory, sizeof directory) || access(directory, W_OK) < 0) {
        slurm_spank_log(SLURM_NO_REPORT, directory, strerror(errno));
        return;
    }
    snprintf(supervisor->report, sizeof supervisor->report, "%s/shmguard-%u.%s.%u.json", directory,
             (unsigned)step->job, step->name, (unsigned)step->task);
    snprintf(supervisor->record, sizeof supervisor->record, "%s/shmguard-%u.%s.%u.db", directory,
             (unsigned)step->job, step->name, (unsigned)step->task);
    if (!wish.options.no_report) {
        argument_add(supervisor, "--report");
        argument_add(supervisor, supervisor->report);
    }
    if (wish.options.record) {
        argument_add(supervisor, "--record");
        argument_add(supervisor, supervisor->record);
    }
}

static void arguments_make(spank_t spank, const JobStep *step, int fd, Supervisor *supervisor)
{
    int n = 0;
    char **words = NULL;
    snprintf(supervisor->forked, sizeof supervisor->forked, "--forked=%d", fd);
    snprintf(supervisor->cause, sizeof supervisor->cause, "--cause-fd=%d", causes[1]);
    argument_add(supervisor, wish.program);
    argument_add(supervisor, "run");
    argument_add(supervisor, supervisor->forked);
    if (causes[1] >= 0)
        argument_add(supervisor, supervisor->cause);
    files_add(supervisor, step);
    if (wish.options.quiet || step->task != 0) /* one summary a step is enough */
        argument_add(supervisor, "--quiet");
    for (size_t i = 0; i < wish.options.n; i++)
        argument_add(supervisor, wish.options.words[i]);
    argument_add(supervisor, "--");
    if (spank_get_item(spank, S_JOB_ARGV, &n, &words) != ESPANK_SUCCESS || n == 0)
        argument_add(supervisor, "task");
    for (int i = 0; i < n; i++)
        argument_add(supervisor, words[i]);
}

static bool is_setting_of(const char *setting, const char *name)
{
    size_t n = strlen(name);
    return strncmp(setting, name, n) == 0 && setting[n] == '=';
}

/*
 * The task's, without the address of a supervisor that the batch script has on this node: a step has limits
 * of its own. And with the memory of the step on this node, which the variables do not always tell.
 */
static char **environment_for(spank_t spank, Supervisor *supervisor)
{
    char **old = NULL;
    uint64_t mib = 0;
    size_t n = 0;
    if (spank_get_item(spank, S_JOB_ENV, &old) != ESPANK_SUCCESS || !old)
        return NULL;
    (void)spank_get_item(spank, S_STEP_ALLOC_MEM, &mib);
    while (old[n])
        n++;
    char **made = calloc(n + 2, sizeof *made);
    if (!made)
        return NULL;
    n = 0;
    for (; *old; old++)
        if (!is_setting_of(*old, PROTOCOL_ENVIRONMENT) && !is_setting_of(*old, PROTOCOL_INNER) &&
            (mib == 0 || !is_setting_of(*old, "SLURM_MEM_PER_NODE")))
            made[n++] = *old;
    if (mib > 0) {
        snprintf(supervisor->memory, sizeof supervisor->memory, "SLURM_MEM_PER_NODE=%llu",
                 (unsigned long long)mib);
        made[n] = supervisor->memory;
    }
    return made;
}

/* Returns only if that fails. */
static void supervisor_become(spank_t spank, const JobStep *step, int fd)
{
    static Supervisor supervisor; /* large, for a stack */
    char **environment = environment_for(spank, &supervisor);
    if (!environment) {
        errno = ENOMEM;
        return;
    }
    arguments_make(spank, step, fd, &supervisor);
    (void)fcntl(fd, F_SETFD, 0);
    if (causes[1] >= 0)
        (void)fcntl(causes[1], F_SETFD, 0);
    execve(wish.program, (char **)supervisor.arguments, environment);
    int error = errno;
    free(environment);
    errno = error;
}

static void setting_take(spank_t spank, char *setting)
{
    char *equals = strchr(setting, '=');
    if (equals) {
        *equals = '\0';
        (void)spank_setenv(spank, setting, equals + 1, 1);
    } else
        (void)spank_unsetenv(spank, setting);
}

/* In the copy: goes on when the supervisor is ready, or has ended. */
static void supervisor_await(spank_t spank, int fd)
{
    static char setting[FORKED_SETTING_MAX + 1];
    pid_t pid = getpid();
    (void)spank_unsetenv(spank, PROTOCOL_ENVIRONMENT);
    (void)spank_unsetenv(spank, PROTOCOL_INNER);
    (void)send(fd, &pid, sizeof pid, MSG_NOSIGNAL);
    for (ssize_t n; (n = recv(fd, setting, FORKED_SETTING_MAX, 0)) > 0 || (n < 0 && errno == EINTR);)
        if (n > 0) {
            setting[n] = '\0';
            setting_take(spank, setting);
        }
    close(fd);
}

/* -1, with errno: there is no supervisor, and the caller is the task. 0: it is the copy. */
static int task_copy(spank_t spank, const JobStep *step)
{
    int ends[2];
    if (access(wish.program, X_OK) < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        supervisor_await(spank, ends[1]);
        return 0;
    }
    close(ends[1]);
    if (pid > 0)
        supervisor_become(spank, step, ends[0]);
    int error = errno;
    if (pid > 0) { /* it waits as long as we have our end */
        kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    close(ends[0]);
    errno = error;
    return -1;
}

int slurm_spank_task_init(spank_t spank, int ac, char **av)
{
    (void)ac;
    (void)av;
    JobStep step;
    if (wish.given && step_read(spank, &step) && task_copy(spank, &step) < 0)
        slurm_spank_log(SLURM_NOT_STARTED, wish.program, strerror(errno));
    return 0;
}

/* --- After a task ------------------------------------------------------------------------------------ */

/* In the step's own process, before its tasks are forked. */
int slurm_spank_user_init(spank_t spank, int ac, char **av)
{
    (void)spank;
    (void)ac;
    (void)av;
    if (wish.given && !wish.no_comment && pipe2(causes, O_CLOEXEC | O_NONBLOCK) < 0)
        causes[0] = causes[1] = -EBADF;
    return 0;
}

/* The first failure counts: others follow from it, and Slurm ends their tasks. */
static bool cause_find(const char *lines, size_t n, Text *ret)
{
    TEXT_FOR_EACH_LINE (line, ((Text){lines, n}))
        if (!text_starts(line, "ok ") && !text_starts(line, "killed ")) {
            *ret = line;
            return true;
        }
    return false;
}

/* The text is the user's word: only plain characters pass. */
static void comment_make(const JobStep *step, Text cause, char out[static COMMENT_MAX])
{
    int n = snprintf(out, COMMENT_MAX, "admincomment=" SLURM_COMMENT, step->name, "");
    for (size_t i = 0; i < cause.size && n < COMMENT_MAX - 1; i++) {
        char c = cause.data[i];
        out[n++] = (c >= ' ' && c <= '~' && c != '"' && c != '\'' && c != '\\') ? c : ' ';
    }
    out[n] = '\0';
}

static void control_wait(pid_t pid)
{
    for (int i = 0; i < CONTROL_MSEC / PAUSE_MSEC; i++) {
        if (waitpid(pid, NULL, WNOHANG) != 0)
            return;
        usleep(PAUSE_MSEC * 1000);
    }
    kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static void comment_set(const JobStep *step, Text cause)
{
    char comment[COMMENT_MAX];
    char job[32];
    comment_make(step, cause, comment);
    snprintf(job, sizeof job, "jobid=%u", (unsigned)step->job);
    char *const arguments[] = {(char *)"scontrol", (char *)"update", job, comment, NULL};
    pid_t pid = fork();
    if (pid > 0)
        control_wait(pid);
    if (pid != 0)
        return;
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && nothing >= 0; fd++)
        dup2(nothing, fd);
    execvp(arguments[0], arguments);
    _exit(127);
}

/* As soon as the task has ended: once srun knows of it, it ends the job, and the comment of an ended job
 * cannot be changed. */
int slurm_spank_task_exit(spank_t spank, int ac, char **av)
{
    (void)ac;
    (void)av;
    static char lines[CAUSES_MAX];
    JobStep step;
    Text cause;
    if (causes[0] < 0)
        return 0;
    ssize_t n = read(causes[0], lines, sizeof lines);
    if (n <= 0 || !step_read(spank, &step) || !cause_find(lines, (size_t)n, &cause))
        return 0;
    comment_set(&step, cause);
    fd_close(TAKE_FD(causes[0])); /* one comment a step and node */
    return 0;
}
