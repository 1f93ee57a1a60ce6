/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "temp-root.h"

#include "journal.h"

/* A real job: we are the supervisor, and the command is a child that does what the test tells it. */
typedef struct Job {
    Root *root;
    Journal *journal;
    int command;
} Job;

static int process_start(void)
{
    int pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        for (;;)
            pause();
    return pid;
}

static void process_end(int pid, int signo, int *ret_status)
{
    kill(pid, signo);
    assert_int_equal(waitpid(pid, ret_status, 0), pid);
}

static Job job_begin(void)
{
    Job job = {0};
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    job.root = calloc(1, sizeof *job.root);
    assert_non_null(job.root);
    assert_int_equal(root_open(NULL, job.root), 0);
    assert_int_equal(journal_open(job.root, &job.journal), 0);
    job.command = process_start();
    journal_begin(job.journal, job.command);
    return job;
}

static void job_end(Job *job, Arena *arena, Evidence *ret)
{
    int status = 0;
    process_end(job->command, SIGKILL, &status);
    journal_reaped(job->journal, job->command, status, false);
    assert_int_equal(journal_finish(job->journal, arena, ret), 0);
    journal_free(job->journal);
    root_close(job->root);
    free(job->root);
}

static size_t ended_count(const Evidence *evidence, int pid)
{
    size_t n = 0;
    for (size_t i = 0; i < evidence->n_ended; i++)
        n += evidence->ended[i].pid == pid;
    return n;
}

static const Ended *ended_of(const Evidence *evidence, int pid)
{
    assert_int_equal(ended_count(evidence, pid), 1);
    for (size_t i = 0; i < evidence->n_ended; i++)
        if (evidence->ended[i].pid == pid)
            return &evidence->ended[i];
    return NULL;
}

static bool testify(const Job *job, int pid, Testimony testimony)
{
    testimony.magic = PROTOCOL_MAGIC;
    return journal_testify(job->journal, pid, &testimony, offsetof(Testimony, text) + testimony.n, -1);
}

static bool say(const Job *job, int pid, MessageType type, const char *text)
{
    Testimony testimony = {.type = type, .n = (uint32_t)strlen(text)};
    memcpy(testimony.text, text, testimony.n);
    return testify(job, pid, testimony);
}

static bool fault(const Job *job, int pid, int signo, int code, const void *address)
{
    return testify(job, pid,
                   (Testimony){.type = MESSAGE_FAULT,
                               .signal = signo,
                               .code = code,
                               .address = (uintptr_t)address,
                               .thread = pid,
                               .thread_name = "not terminated!"});
}

static void test_the_command_is_one_of_them(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    Evidence evidence;
    Job job = job_begin();
    journal_tick(job.journal);
    int pid = job.command;
    Peaks peaks = journal_peaks(job.journal);
    assert_int_equal(peaks.processes, 1);
    assert_in_range(peaks.rss_bytes, 1, UINT64_C(1) << 34);
    assert_in_range(peaks.fds, 3, 1000);
    assert_int_not_equal(peaks.shm_bytes, U64_UNKNOWN);
    job_end(&job, &arena, &evidence);
    const Ended *ended = ended_of(&evidence, pid);
    assert_int_equal(evidence.pid, pid);
    assert_int_equal(ended->ppid, getpid());
    assert_string_equal(ended->comm, "test-journal");
    assert_true(ended->has_status);
    assert_int_equal(ended->signal, SIGKILL);
    assert_false(ended->by_us);
    assert_false(ended->has_fault);
    assert_true(ended->has_sample);
    assert_in_range(ended->last.rss_bytes, 1, UINT64_C(1) << 34);
    assert_in_range(ended->last.fds, 3, 1000);
    assert_in_range(ended->last.maps, 5, 10000);
    assert_int_equal(ended->last.threads, 1);
    assert_in_range(evidence.open_files_soft, 3, U64_UNKNOWN - 1);
    assert_in_range(evidence.max_map_count, 1, U64_UNKNOWN - 1);
    assert_int_not_equal(evidence.available_least_bytes, U64_UNKNOWN);
    assert_int_not_equal(evidence.shm_free_least_bytes, U64_UNKNOWN);
    assert_int_equal(evidence.budget_bytes, U64_UNKNOWN);
}

/* What a process held only briefly, between two looks and before it ended. */
static void test_peaks_of_processes(void **state)
{
    (void)state;
    enum { HELD = 48 << 20, MAPPED = 16 << 20 };
    _cleanup_arena_ Arena arena = {0};
    Evidence evidence;
    Job job = job_begin();
    int told[2];
    assert_int_equal(pipe(told), 0);
    int pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char *own = mmap(NULL, HELD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(own, 1, HELD);
        munmap(own, HELD);
        char *shared = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        memset(shared, 1, MAPPED);
        if (write(told[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    journal_tick(job.journal);
    char byte = 0;
    assert_int_equal(read(told[0], &byte, 1), 1);
    journal_peek(job.journal);
    int status = 0;
    process_end(pid, SIGKILL, &status);
    journal_reaped(job.journal, pid, status, false);

    ProcessPeak *peaks = NULL;
    size_t n = 0;
    assert_int_equal(journal_processes(job.journal, &arena, &peaks, &n), 0);
    assert_int_equal(n, 2);
    const ProcessPeak *peak = peaks[0].pid == pid ? &peaks[0] : &peaks[1];
    assert_int_equal(peak->pid, pid);
    assert_in_range(peak->rss_bytes, HELD, UINT64_C(1) << 34);
    assert_in_range(peak->shm_bytes, MAPPED, 2 * MAPPED);
    assert_in_range(peak->own_bytes, 1, UINT64_C(1) << 34);
    uint64_t trainers = 0;
    uint64_t workers = 0;
    journal_roles(job.journal, &trainers, &workers);
    assert_int_equal(trainers + workers, 0);
    close(told[0]);
    close(told[1]);
    job_end(&job, &arena, &evidence);
}

static void test_one_end_is_one(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    Evidence evidence;
    Job job = job_begin();
    int pid = process_start();
    journal_tick(job.journal);
    assert_true(say(&job, pid, MESSAGE_SAID, "Traceback"));
    assert_true(say(&job, pid, MESSAGE_SAID, "Traceback, whole"));
    kill(pid, SIGKILL);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    journal_tick(job.journal); /* it is a zombie now */
    journal_tick(job.journal);
    Testimony child = {.type = MESSAGE_CHILD, .pid = pid, .status = SIGKILL};
    assert_true(testify(&job, job.command, child));
    assert_true(testify(&job, job.command, child));
    int status = 0;
    process_end(pid, SIGKILL, &status);
    journal_reaped(job.journal, pid, status, true);
    assert_true(say(&job, pid, MESSAGE_SAID, "and more"));
    journal_tick(job.journal);
    job_end(&job, &arena, &evidence);
    const Ended *ended = ended_of(&evidence, pid);
    assert_int_equal(ended->signal, SIGKILL);
    assert_true(ended->by_us);
    assert_true(text_equal(ended->said, "and more"));
    assert_int_equal(evidence.n_ended, 2);
    assert_int_equal(evidence.ended[0].pid, pid);
}

/* If the parent neither waits nor reports, the zombie's status is the only source. */
static void test_a_zombie_tells_its_status(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    Evidence evidence;
    Job job = job_begin();
    int pid = process_start();
    journal_tick(job.journal);
    siginfo_t info;
    kill(pid, SIGUSR1);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    journal_tick(job.journal);
    int status = 0;
    process_end(pid, SIGKILL, &status);
    job_end(&job, &arena, &evidence);
    const Ended *ended = ended_of(&evidence, pid);
    assert_true(ended->has_status);
    assert_int_equal(ended->signal, SIGUSR1);
}

/* Processes below the command, orphans that are reparented to us, and one whose end is never reported. */
static void test_the_tree(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    Evidence evidence;
    Job job = job_begin();
    int pipes[2];
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    int middle = fork();
    if (middle == 0) {
        int below = process_start();
        if (write(pipes[1], &below, sizeof below) != sizeof below)
            _exit(1);
        pause();
    }
    int below = 0;
    assert_int_equal(read(pipes[0], &below, sizeof below), sizeof below);
    journal_tick(job.journal);
    assert_int_equal(journal_peaks(job.journal).processes, 3);
    int status = 0;
    process_end(middle, SIGTERM, &status);
    journal_reaped(job.journal, middle, status, false);
    journal_tick(job.journal);
    process_end(below, SIGKILL, &status); /* it was reparented to us */
    journal_tick(job.journal);
    job_end(&job, &arena, &evidence);
    assert_int_equal(ended_of(&evidence, middle)->signal, SIGTERM);
    assert_false(ended_of(&evidence, below)->has_status);
    assert_true(ended_of(&evidence, below)->has_sample);
    assert_int_equal(ended_of(&evidence, below)->ppid, getpid());
    close(pipes[0]);
    close(pipes[1]);
}

static void *address_map(int fd, size_t size)
{
    void *at =
        mmap(NULL, size, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    return at;
}

/* Two pages of a mapped file that has been truncated. */
static void *file_map(int fd)
{
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 8192), 0);
    void *at = address_map(fd, 8192);
    assert_int_equal(ftruncate(fd, 100), 0);
    close(fd);
    return at;
}

static void test_places(void **state)
{
    (void)state;
    char disk[] = "/tmp/shmguard-journal-XXXXXX";
    char gone[] = "/tmp/shmguard-journal-XXXXXX";
    char shm[] = "/dev/shm/shmguard-journal-XXXXXX";
    void *at_disk = file_map(mkostemp(disk, O_CLOEXEC));
    void *at_gone = file_map(mkostemp(gone, O_CLOEXEC));
    void *at_shm = file_map(mkostemp(shm, O_CLOEXEC));
    unlink(gone);
    void *at_memfd = file_map(memfd_create("segment", MFD_CLOEXEC));
    void *at_shared = mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void *at_heap = address_map(-1, 4096);
    char *around = address_map(-1, 3 * 4096);
    void *at_nothing = around + 4096; /* a hole that no allocator fills: they take more than a page */
    munmap(at_nothing, 4096);
    const struct {
        const char *name;
        const void *address;
        int signal;
        int code;
        FaultPlace place;
        const char *path;
        bool deleted;
    } cases[] = {
        {"disk", (char *)at_disk + 4100, SIGBUS, BUS_ADRERR, PLACE_FILE, disk, false},
        {"gone", (char *)at_gone + 4100, SIGBUS, BUS_ADRERR, PLACE_FILE, gone, true},
        {"shm", (char *)at_shm + 4100, SIGBUS, BUS_ADRERR, PLACE_SHM, shm, false},
        {"memfd", (char *)at_memfd + 4100, SIGBUS, BUS_ADRERR, PLACE_MEMFD, "/memfd:segment", false},
        {"shared", at_shared, SIGSEGV, SEGV_ACCERR, PLACE_ANONYMOUS, NULL, false},
        {"heap", at_heap, SIGSEGV, SEGV_ACCERR, PLACE_ANONYMOUS, NULL, false},
        {"nothing", at_nothing, SIGSEGV, SEGV_MAPERR, PLACE_NOT_MAPPED, NULL, false},
        {"null", NULL, SIGSEGV, SEGV_MAPERR, PLACE_NOT_MAPPED, NULL, false},
        {"end of all", (void *)UINTPTR_MAX, SIGSEGV, SEGV_MAPERR, PLACE_NOT_MAPPED, NULL, false},
        {"sent", at_disk, SIGBUS, SI_USER, PLACE_UNKNOWN, NULL, false},
        {"abort", at_disk, SIGABRT, SI_TKILL, PLACE_UNKNOWN, NULL, false},
        {"not canonical", NULL, SIGSEGV, SI_KERNEL, PLACE_UNKNOWN, NULL, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        Evidence evidence;
        Job job = job_begin();
        int pid = job.command;
        assert_true(fault(&job, pid, cases[i].signal, cases[i].code, cases[i].address));
        assert_true(say(&job, pid, MESSAGE_STACK, "File \"train.py\", line 3"));
        job_end(&job, &arena, &evidence);
        const Ended *ended = ended_of(&evidence, pid);
        assert_true(ended->has_fault);
        const Fault *found = &ended->fault;
        if (found->place != cases[i].place || found->deleted != cases[i].deleted ||
            strcmp(found->path ? found->path : "-", cases[i].path ? cases[i].path : "-") != 0)
            fail_msg("%s: %d %s %d", cases[i].name, found->place, found->path, found->deleted);
        assert_int_equal(found->signal, cases[i].signal);
        /* Without a name or a descriptor, only root can look. */
        bool has_way =
            geteuid() == 0 || found->place == PLACE_SHM || (found->place == PLACE_FILE && !found->deleted);
        assert_int_equal(found->file_bytes, cases[i].path && has_way ? 100 : U64_UNKNOWN);
        assert_int_equal(found->offset, cases[i].path ? 4100 : 0);
        assert_int_not_equal(found->shm_size_bytes, U64_UNKNOWN);
        assert_string_equal(found->stack, "File \"train.py\", line 3");
        assert_string_equal(found->thread_name, "not terminated!");
        assert_true(ended->has_sample);
        assert_in_range(ended->last.maps, 5, 10000);
        assert_in_range(ended->last.fds, 3, 1000);
    }
    unlink(disk);
    unlink(shm);
}

static void test_hostile_testimony(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    Evidence evidence;
    Job job = job_begin();
    int pid = job.command;
    static const Testimony bad[] = {
        {.type = 0},
        {.type = MESSAGE_WELCOME},
        {.type = MESSAGE_SAID + 1},
        {.type = UINT32_MAX},
        {.type = MESSAGE_FAULT, .signal = 0},
        {.type = MESSAGE_FAULT, .signal = -1},
        {.type = MESSAGE_FAULT, .signal = SIGKILL},
        {.type = MESSAGE_FAULT, .signal = SIGBUS, .sender = -5},
        {.type = MESSAGE_CHILD, .pid = 0},
        {.type = MESSAGE_CHILD, .pid = -1, .status = 9},
        {.type = MESSAGE_CHILD, .pid = 1, .status = 9},
        {.type = MESSAGE_CHILD, .pid = INT32_MAX, .status = 0x137f}, /* stopped */
        {.type = MESSAGE_CHILD, .pid = INT32_MAX, .status = 0xffff}, /* continued */
        {.type = MESSAGE_STACK},                                     /* without a fault */
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (testify(&job, pid, bad[i]))
            fail_msg("case %zu", i);
    assert_false(testify(&job, pid, (Testimony){.type = MESSAGE_CHILD, .pid = pid, .status = 9}));
    assert_false(testify(&job, pid, (Testimony){.type = MESSAGE_CHILD, .pid = getpid(), .status = 9}));
    assert_false(testify(&job, pid, (Testimony){.type = MESSAGE_CHILD, .pid = getppid(), .status = 9}));
    assert_false(say(&job, getpid(), MESSAGE_SAID, "we are not of the job"));
    assert_false(say(&job, 1, MESSAGE_SAID, "nor is it"));
    assert_false(say(&job, 0, MESSAGE_SAID, "nobody"));
    assert_false(say(&job, -7, MESSAGE_SAID, "nobody"));

    Testimony long_one = {.magic = PROTOCOL_MAGIC, .type = MESSAGE_SAID, .n = TESTIMONY_TEXT_MAX};
    static const struct {
        uint32_t n;
        size_t size;
    } sizes[] = {
        {0, 0},
        {0, 7},
        {0, offsetof(Testimony, text) - 1},
        {0, offsetof(Testimony, text) + 1},
        {1, offsetof(Testimony, text)},
        {UINT32_MAX, offsetof(Testimony, text)},
        {TESTIMONY_TEXT_MAX + 1, offsetof(Testimony, text) + TESTIMONY_TEXT_MAX + 1},
        {TESTIMONY_TEXT_MAX, sizeof(Testimony) + 4096},
    };
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        long_one.n = sizes[i].n;
        assert_false(journal_testify(job.journal, pid, &long_one, sizes[i].size, -1));
    }
    long_one.n = TESTIMONY_TEXT_MAX;
    assert_true(testify(&job, pid, long_one));
    long_one.magic = 1;
    assert_false(journal_testify(job.journal, pid, &long_one, sizeof long_one, -1));
    job_end(&job, &arena, &evidence);
    assert_int_equal(evidence.n_ended, 1);
    assert_int_equal(ended_of(&evidence, pid)->said.size, TESTIMONY_TEXT_MAX);
}

/* Above pid_max: no process has these pids. */
enum { NOBODY = 1 << 23 };

static void test_memory_is_bounded(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    Evidence evidence;
    Job job = job_begin();
    Testimony said = {.type = MESSAGE_SAID, .n = TESTIMONY_TEXT_MAX};
    memset(said.text, 'x', sizeof said.text);
    const int bad = NOBODY + 10;
    assert_true(testify(&job, bad, said));
    assert_true(testify(&job, job.command, (Testimony){.type = MESSAGE_CHILD, .pid = bad, .status = SIGBUS}));
    for (int i = 100; i < 5000; i++) {
        (void)testify(&job, NOBODY + i, said);
        (void)testify(&job, job.command, (Testimony){.type = MESSAGE_CHILD, .pid = NOBODY + i, .status = 0});
    }
    assert_true(testify(&job, job.command, said));
    for (int i = 5000; i < 6000; i++)
        journal_reaped(job.journal, NOBODY + i, SIGKILL, false);
    int command = job.command;
    job_end(&job, &arena, &evidence);
    assert_int_equal(evidence.n_ended, 512);
    assert_int_equal(ended_of(&evidence, bad)->signal, SIGBUS);
    assert_int_equal(ended_of(&evidence, bad)->said.size, TESTIMONY_TEXT_MAX);
    assert_int_equal(ended_of(&evidence, command)->said.size, TESTIMONY_TEXT_MAX);
    size_t wordy = 0;
    for (size_t i = 0; i < evidence.n_ended; i++)
        wordy += evidence.ended[i].said.size > 0;
    assert_in_range(wordy, 2, 256);
}

/* Some programs use faults as part of their normal work. */
static void test_many_faults(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    Evidence evidence;
    Job job = job_begin();
    int pid = process_start();
    for (int i = 0; i < 20000; i++)
        assert_true(fault(&job, pid, SIGSEGV, SEGV_MAPERR, NULL));
    int status = 0;
    process_end(pid, SIGTERM, &status);
    journal_reaped(job.journal, pid, status, false);
    job_end(&job, &arena, &evidence);
    assert_int_equal(ended_of(&evidence, pid)->fault.place, PLACE_UNKNOWN);
}

static void test_roles(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    Evidence evidence;
    Job job = job_begin();
    int manager = fork();
    if (manager == 0) {
        prctl(PR_SET_NAME, "torch_shm_manag");
        for (;;)
            pause();
    }
    int worker = process_start();
    usleep(20000);
    journal_tick(job.journal);
    assert_true(
        testify(&job, worker, (Testimony){.type = MESSAGE_FAULT, .signal = SIGBUS, .code = 2, .worker = 1}));
    int status = 0;
    process_end(manager, SIGKILL, &status);
    process_end(worker, SIGTERM, &status);
    job_end(&job, &arena, &evidence);
    assert_int_equal(ended_of(&evidence, manager)->role, ROLE_MANAGER);
    assert_int_equal(ended_of(&evidence, worker)->role, ROLE_WORKER);
    assert_true(ended_of(&evidence, worker)->has_fault);
}

/* A pid that is reused belongs to a different process. */
static void test_numbers_come_again(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    Evidence evidence;
    Job job = job_begin();
    const int pid = NOBODY + 1;
    journal_reaped(job.journal, pid, SIGKILL, false);
    journal_reaped(job.journal, pid, SIGKILL, false);
    journal_reaped(job.journal, pid, 0x100, false);
    journal_reaped(job.journal, pid, 0x137f, false); /* only stopped */
    job_end(&job, &arena, &evidence);
    assert_int_equal(ended_count(&evidence, pid), 2);
}

static void test_before_the_command(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    _cleanup_root_ Root root = ROOT_NONE;
    Evidence evidence;
    Journal *journal = NULL;
    int born_with = process_start();
    assert_int_equal(root_open(NULL, &root), 0);
    assert_int_equal(journal_open(&root, &journal), 0);
    journal_tick(journal);
    Job job = {.journal = journal};
    assert_false(say(&job, born_with, MESSAGE_SAID, "too early"));
    job.command = process_start();
    journal_begin(journal, job.command);
    assert_int_equal(journal_peaks(journal).processes, 1);
    assert_false(say(&job, born_with, MESSAGE_SAID, "not the command's"));
    int status = 0;
    process_end(born_with, SIGKILL, &status);
    process_end(job.command, SIGTERM, &status);
    assert_int_equal(journal_finish(journal, &arena, &evidence), 0); /* no end was reported */
    assert_int_equal(evidence.n_ended, 1);
    assert_int_equal(evidence.ended[0].pid, job.command);
    assert_false(evidence.ended[0].has_status);
    journal_free(journal);
}

/* Samples from another thread replace our own, as long as they keep coming. */
static void test_given_moments(void **state)
{
    (void)state;
    enum { INVENTED_BYTES = 123456, INVENTED_MAPS = 60000 };
    _cleanup_arena_ Arena arena = {0};
    Evidence evidence;
    Job job = job_begin();
    int gone = process_start();
    int newer = process_start();
    ProcStat command;
    assert_int_equal(proc_stat_read(job.root, job.command, &command), 0);
    ProcessMoment processes[] = {
        {.pid = job.command,
         .start_ticks = command.start_ticks,
         .comm = "train",
         .rss_bytes = INVENTED_BYTES},
        {.pid = gone, .comm = "gone"},
    };
    processes[0].values[PROCESS_MAPS] = INVENTED_MAPS;
    assert_true(job.command < gone); /* as in every Moment */
    int status = 0;
    process_end(gone, SIGKILL, &status);
    journal_reaped(job.journal, gone, status, false);

    journal_take(job.journal, &(Moment){.processes = processes, .n_processes = 2, .n_unlisted = 10});
    assert_true(say(&job, newer, MESSAGE_SAID, "newer than the moment"));
    journal_take(job.journal, &(Moment){.processes = processes, .n_processes = 2});
    Peaks peaks = journal_peaks(job.journal);
    assert_int_equal(peaks.processes, 11);
    journal_tick(job.journal); /* looks at no process */
    assert_int_equal(journal_role(job.journal, newer), ROLE_OTHER);
    process_end(newer, SIGKILL, &status);
    journal_reaped(job.journal, newer, status, false);

    ProcessPeak *list = NULL;
    size_t n = 0;
    assert_int_equal(journal_processes(job.journal, &arena, &list, &n), 0);
    assert_int_equal(n, 1); /* the others were never sampled */
    usleep(1600 * 1000);
    int late = process_start();
    journal_tick(job.journal); /* the last given sample is too old */
    process_end(late, SIGKILL, &status);
    journal_reaped(job.journal, late, status, false);
    int pid = job.command;
    job_end(&job, &arena, &evidence);
    assert_true(ended_of(&evidence, late)->has_sample);
    assert_false(ended_of(&evidence, newer)->has_sample);
    assert_false(ended_of(&evidence, gone)->has_sample);
    assert_int_equal(ended_of(&evidence, gone)->signal, SIGKILL);
    assert_int_not_equal(ended_of(&evidence, pid)->last.rss_bytes, INVENTED_BYTES);
    assert_int_equal(evidence.maps_most, INVENTED_MAPS);
}

static int sleeper_start(unsigned uid)
{
    int pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (uid != 0 && setresuid(uid, uid, uid) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    return pid;
}

/* Which processes of another user belong to the job. */
static void test_peers(void **state)
{
    (void)state;
    enum { USER = 65534, ANOTHER = 64321 };
    if (geteuid() != 0) {
        print_message("needs root to become another user\n");
        skip();
    }
    _cleanup_arena_ Arena arena = {0};
    Evidence evidence;
    int born_with = sleeper_start(USER);
    Job job = job_begin();
    int child = sleeper_start(USER);
    for (int i = 0; i < 100 && journal_peer(job.journal, child, USER) != PEER_JOB; i++)
        usleep(20000); /* until it has changed its user */
    assert_int_equal(journal_peer(job.journal, child, USER), PEER_JOB);
    assert_int_equal(journal_peer(job.journal, child, ANOTHER), PEER_STRANGER);
    assert_int_equal(journal_peer(job.journal, born_with, USER), PEER_STRANGER);
    assert_int_equal(journal_peer(job.journal, 1, 0), PEER_STRANGER);
    journal_tick(job.journal);
    int status = 0;
    process_end(child, SIGKILL, &status);
    assert_int_equal(journal_peer(job.journal, child, USER), PEER_GONE);
    process_end(born_with, SIGKILL, &status);
    assert_int_equal(journal_peer(job.journal, born_with, USER), PEER_STRANGER);
    job_end(&job, &arena, &evidence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peers),
        cmocka_unit_test(test_the_command_is_one_of_them),
        cmocka_unit_test(test_one_end_is_one),
        cmocka_unit_test(test_peaks_of_processes),
        cmocka_unit_test(test_a_zombie_tells_its_status),
        cmocka_unit_test(test_the_tree),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_hostile_testimony),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_many_faults),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_numbers_come_again),
        cmocka_unit_test(test_before_the_command),
        cmocka_unit_test(test_given_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
