/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "fd.h"
#include "job-processes.h"
#include "proc-path.h"
#include "proc-status.h"
#include "python-text.h"
#include "remote-python.h"
#include "survey.h"
#include "where-remote.h"
#include "where.h"

/*
 * A question is a file that a process was asked to run, and its answer is written into the same file. Its
 * name is removed by whoever comes first: the process when it runs it, or we when it is not wanted any more.
 * Until then it may be opened at any moment: so its content goes first, and its name WITHDRAWN_SECONDS later.
 *
 * A process that waits in C does not run Python: it may be late, and then begins or ends its window late. If
 * we are killed, a trace ends by itself after a while, and a file that no process has run yet stays.
 *
 * Files are made in the directories that the process sees, by names that nobody can guess, for its user
 * alone.
 */
#define WITHDRAWN_SECONDS 1.0
#define CLOSE_SECONDS     2.0
#define TRACE_SECONDS     10.0 /* more than its window, after which a trace ends by itself */

/* What the main thread runs, in some microseconds: what a signal handler of the program raises meanwhile,
 * CPython prints and drops. */
#define START "__import__('_thread').start_new_thread(exec, (REST, globals()))\n"

enum { ANSWER_MOST = 16 << 10, CLOSE_STEP_MSEC = 20, MEMBERS_MOST = 1024, QUESTIONS_MOST = 2 * MEMBERS_MOST };

typedef struct RemoteQuestion {
    int pid;
    WherePhase phase;
    bool over;    /* its answer ends a window, if there was one */
    double until; /* 0: an answer is awaited; otherwise when the file may be removed */
    RemotePython python;
    int directory;
    int file;
    char name[48];
} RemoteQuestion;

/* A process of the job. */
typedef struct Member {
    int pid;
    bool worker;
    bool begun; /* it may have a window */
} Member;

struct WhereRemote {
    const Root *root;
    JobProcesses job;
    Where where;
    Counters counters;
    uint32_t word; /* that was acted on */
    bool present;  /* a process has a loader */
    Member members[MEMBERS_MOST];
    size_t n_members;
    RemoteQuestion questions[QUESTIONS_MOST];
    size_t n_questions;
    SharedSites sites;
    Buffer text;
};

static Member *member_of(WhereRemote *remote, int pid)
{
    for (size_t i = 0; i < remote->n_members; i++)
        if (remote->members[i].pid == pid)
            return &remote->members[i];
    return NULL;
}

/* --- The file ----------------------------------------------------------------------------------------- */

/* The process chooses what its paths lead to, by mounts of its own, and we may have more rights than its
 * user. So only a directory in which that user could make the file, too, and in which nobody else can
 * exchange it. */
static int directory_open(int top, const char *path, uint32_t uid)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
    struct stat st;
    _cleanup_close_ int fd = (int)syscall(SYS_openat2, top, path, &how, sizeof how);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    bool common = (st.st_mode & (S_IWOTH | S_ISVTX)) == (S_IWOTH | S_ISVTX);
    bool own = st.st_uid == uid && !(st.st_mode & (S_IWGRP | S_IWOTH));
    return common || own ? TAKE_FD(fd) : -EPERM;
}

/* ret_path: as the process sees it. */
static int file_make(const Root *root, int pid, uint32_t uid, RemoteQuestion *question, char *ret_path,
                     size_t size)
{
    static const char *const directories[] = {"/tmp", "/var/tmp", "/dev/shm"};
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return -EIO;
    snprintf(question->name, sizeof question->name, "shmguard-where-%016llx", (unsigned long long)random);
    _cleanup_close_ int top = root_openat(root, PROC_PATH(pid, "root"), O_PATH | O_DIRECTORY);
    for (size_t i = 0; top >= 0 && i < ARRAY_SIZE(directories); i++) {
        question->directory = directory_open(top, directories[i], uid);
        if (question->directory < 0)
            continue;
        question->file = openat(question->directory, question->name,
                                O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (question->file >= 0 && (uid == geteuid() || fchown(question->file, uid, (gid_t)-1) == 0)) {
            snprintf(ret_path, size, "%s/%s", directories[i], question->name);
            return 0;
        }
        if (question->file >= 0)
            (void)unlinkat(question->directory, question->name, 0);
        fd_close(question->file);
        fd_close(question->directory);
        question->file = question->directory = -EBADF;
    }
    return top < 0 ? top : -EROFS;
}

/* A text becomes a raw string: it has neither three quotes in a row nor a backslash at its end. */
static int string_add(Buffer *text, const char *name, const char *value)
{
    int r = buffer_printf(text, "%s = r'''", name);
    if (r >= 0)
        r = buffer_append_text(text, value);
    return r < 0 ? r : buffer_append_text(text, "'''\n");
}

static int file_fill(WhereRemote *remote, const RemoteQuestion *question, int inner_pid, const char *path)
{
    const Where *where = &remote->where;
    Buffer *text = &remote->text;
    buffer_clear(text);
    int r = buffer_printf(text, "PID, PATH, STAGE, PHASE, SECONDS = %d, \"%s\", %d, %d, %.0f\n", inner_pid,
                          path, where->stage, question->phase, 2 * where->half + TRACE_SECONDS);
    if (r >= 0)
        r = string_add(text, "TEXT", question->phase == WHERE_BEGIN ? python_where : "");
    if (r >= 0)
        r = string_add(text, "REST", python_where_remote);
    if (r >= 0)
        r = buffer_append_text(text, START);
    if (r >= 0 && pwrite(question->file, text->data, text->size, 0) != (ssize_t)text->size)
        r = -EROFS;
    return r;
}

/* --- Questions ---------------------------------------------------------------------------------------- */

static void question_close(RemoteQuestion *question)
{
    if (question->directory >= 0)
        (void)unlinkat(question->directory, question->name, 0);
    fd_close(question->directory);
    fd_close(question->file);
    remote_python_close(&question->python);
}

static void question_withdraw(RemoteQuestion *question, double now)
{
    if (question->until > 0)
        return;
    remote_python_withdraw(&question->python);
    if (ftruncate(question->file, 0) == 0)
        question->until = now + WITHDRAWN_SECONDS;
}

static int question_ask(WhereRemote *remote, int pid, RemoteQuestion *question)
{
    char path[64];
    ProcStatus status;
    int r = proc_status_read(remote->root, pid, &status);
    if (r >= 0 && status.threads < 2) /* Python warns of a fork in a process with threads, and we bring one */
        r = -EAGAIN;
    if (r >= 0)
        r = remote_python_open(remote->root, pid, &question->python);
    if (r >= 0)
        r = file_make(remote->root, pid, status.euid, question, path, sizeof path);
    if (r >= 0)
        r = file_fill(remote, question, status.inner_pid > 0 ? status.inner_pid : pid, path);
    return r < 0 ? r : remote_python_ask(&question->python, path);
}

static int ask(WhereRemote *remote, int pid)
{
    for (size_t i = 0; i < remote->n_questions; i++)
        if (remote->questions[i].pid == pid)
            question_withdraw(&remote->questions[i], now_seconds());
    const Where *where = &remote->where;
    bool off = where->stage == WHERE_OFF;
    RemoteQuestion question = {.pid = pid,
                               .phase = off ? WHERE_END : where->phase,
                               .over = off || where->phase == WHERE_END,
                               .python = REMOTE_PYTHON_NONE,
                               .directory = -EBADF,
                               .file = -EBADF};
    if (remote->n_questions == QUESTIONS_MOST)
        return -ENOBUFS;
    int r = question_ask(remote, pid, &question);
    if (r < 0)
        question_close(&question);
    else
        remote->questions[remote->n_questions++] = question;
    return r;
}

static void answer_take(WhereRemote *remote, const RemoteQuestion *question, Text text, double now)
{
    Member *member = member_of(remote, question->pid);
    bool absent = text_equal(text, "absent\n");
    remote->present |= !absent;
    if (member)
        member->begun = !absent && !question->over;
    if (text.size > 0 && !absent)
        (void)where_take(&remote->where, question->pid, text, now);
}

/* Whether it has come, and the question is answered. */
static bool answer_read(WhereRemote *remote, const RemoteQuestion *question, double now)
{
    char data[ANSWER_MOST];
    ssize_t n = pread(question->file, data, sizeof data, 0);
    Text text = {data, n > 0 ? (size_t)n : 0};
    Text rest;
    if (!text_starts(text, "answer\n") || !text_ends(text, "\nend\n"))
        return false;
    rest = text_skip(text, strlen("answer\n"));
    rest.size -= strlen("end\n");
    if (question->until <= 0)
        answer_take(remote, question, rest, now);
    return true;
}

static void answers_collect(WhereRemote *remote, double now)
{
    size_t kept = 0;
    for (size_t i = 0; i < remote->n_questions; i++) {
        RemoteQuestion *question = &remote->questions[i];
        bool expired = question->until > 0 && now >= question->until;
        if (answer_read(remote, question, now) || expired)
            question_close(question);
        else
            remote->questions[kept++] = *question;
    }
    remote->n_questions = kept;
}

/* --- The word ----------------------------------------------------------------------------------------- */

static void members_refresh(WhereRemote *remote)
{
    if (job_processes_look(&remote->job) < 0)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < remote->n_members; i++)
        for (size_t k = 0; k < remote->job.n; k++)
            if (remote->job.items[k].pid == remote->members[i].pid) {
                remote->members[kept++] = remote->members[i];
                break;
            }
    remote->n_members = kept;
    for (size_t k = 0; k < remote->job.n && remote->n_members < MEMBERS_MOST; k++)
        if (!member_of(remote, remote->job.items[k].pid))
            remote->members[remote->n_members++] = (Member){.pid = remote->job.items[k].pid};
}

/* Any one worker: the same as before, as long as it runs. */
static int worker_choose(WhereRemote *remote)
{
    int chosen = atomic_load(&remote->counters.where_worker);
    if (chosen > 0 && member_of(remote, chosen))
        return chosen;
    for (size_t i = 0; i < remote->n_members; i++)
        if (remote->members[i].worker) {
            atomic_store(&remote->counters.where_worker, remote->members[i].pid);
            return remote->members[i].pid;
        }
    return -1;
}

static void word_bring(WhereRemote *remote)
{
    const Where *where = &remote->where;
    members_refresh(remote);
    int only = 0;
    if (where->stage > WHERE_CENSUS) {
        only = atomic_load(&remote->counters.where_pid);
        only = only > 0 ? only : worker_choose(remote);
    }
    for (size_t i = 0; i < remote->n_members; i++) {
        Member *member = &remote->members[i];
        bool off = where->stage == WHERE_OFF;
        if ((only != 0 && member->pid != only && !member->begun) || (off && !member->begun))
            continue;
        if (ask(remote, member->pid) >= 0)
            member->begun = true;
    }
}

static void found(void *context, const SiteWindow *window)
{
    WhereRemote *remote = context;
    SharedSites *sites = &remote->sites;
    Member *member = member_of(remote, window->pid);
    if (member)
        member->worker = window->worker >= 0;
    SiteWindow *windows = realloc(sites->windows, (sites->n + 1) * sizeof *windows);
    if (!windows)
        return;
    sites->windows = windows;
    sites->windows[sites->n++] = *window;
}

bool where_remote_step(WhereRemote *remote, double now)
{
    Where *where = &remote->where;
    answers_collect(remote, now);
    where_tick(where, now);
    uint32_t word = atomic_load(&remote->counters.where);
    if (word != remote->word) {
        remote->word = word;
        if (where->phase == WHERE_END && !remote->present) /* it would never be another */
            return false;
        word_bring(remote);
    }
    memcpy(remote->sites.failed, where->failed, sizeof remote->sites.failed);
    return where->rounds < where->asked;
}

const SharedSites *where_remote_sites(const WhereRemote *remote)
{
    return &remote->sites;
}

/* --- Its life ----------------------------------------------------------------------------------------- */

/* The trainer of a worker; otherwise the process itself. */
static int top_find(const Root *root, int pid, int *ret)
{
    _cleanup_survey_ Survey survey = {0};
    int r = survey_take(root, pid, 0, &survey);
    const Process *process = r < 0 ? NULL : survey_process(&survey, pid);
    if (r >= 0)
        *ret = process && process->role == ROLE_WORKER && process->job > 0 ? process->job : pid;
    return r;
}

int where_remote_open(const Root *root, int pid, int *ret_minor, WhereRemote **ret)
{
    _cleanup_remote_python_ RemotePython python = REMOTE_PYTHON_NONE;
    int top = pid;
    int r = remote_python_open(root, pid, &python);
    *ret_minor = python.minor;
    if (r >= 0)
        r = top_find(root, pid, &top);
    if (r < 0)
        return r;
    _cleanup_free_ WhereRemote *remote = calloc(1, sizeof *remote);
    if (!remote)
        return -ENOMEM;
    remote->root = root;
    r = job_processes_attach(root, top, &remote->job);
    if (r < 0)
        return r;
    remote->where =
        (Where){.counters = &remote->counters, .found = found, .context = remote, .without_native = true};
    where_ask(&remote->where, false, now_seconds());
    *ret = TAKE_PTR(remote);
    return 0;
}

void where_remote_close(WhereRemote *remote)
{
    where_stop(&remote->where);
    word_bring(remote);
    double now = now_seconds();
    double until = now + CLOSE_SECONDS;
    while (remote->n_questions > 0 && now < until) {
        (void)poll(NULL, 0, CLOSE_STEP_MSEC);
        now = now_seconds();
        answers_collect(remote, now);
        for (size_t i = 0; now >= until - WITHDRAWN_SECONDS && i < remote->n_questions; i++)
            question_withdraw(&remote->questions[i], now);
    }
    for (size_t i = 0; i < remote->n_questions; i++)
        question_close(&remote->questions[i]);
    job_processes_close(&remote->job);
    buffer_free(&remote->text);
    free(remote->sites.windows);
    free(remote);
}
