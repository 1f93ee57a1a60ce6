/* SPDX-License-Identifier: Apache-2.0 */
/* Prints docs/reference.md from the tables that the program itself uses. */
#include <stdio.h>
#include <string.h>

#include "checks.h"
#include "clues.h"
#include "command.h"
#include "history.h"
#include "metrics.h"
#include "show-run.h"
#include "verdicts.h"

static const struct {
    int code;
    const char *meaning;
} exit_codes[] = {
    {0, "Success. For `run` and `record` with a command: the command's exit code."},
    {1,
     "`doctor`, `run --check`: a warning. `run`: the command returned 0, but batches were lost or work that "
     "it had left running was ended."},
    {2, "`doctor`, `run --check`: something is critical."},
    {64, "Wrong usage."},
    {65, "Unusable input. `tune`: no setting could be measured, or none is safe."},
    {69, "A needed facility is missing."},
    {70, "Internal error, or the output could not be written."},
    {77, "No permission."},
    {126, "The command could not be executed."},
    {127, "The command was not found."},
};

static const char *const process_metrics[PROCESS_METRICS] = {
    [PROCESS_ANON] = "bytes of private and heap memory",
    [PROCESS_FILE] = "bytes of resident pages of files",
    [PROCESS_SHMEM] = "bytes of resident shared memory",
    [PROCESS_SWAP] = "bytes in swap",
    [PROCESS_PSS] = "resident bytes, with shared pages divided among their users",
    [PROCESS_USS] = "resident bytes that no other process shares",
    [PROCESS_SHM] = "allocated bytes of the segments that it holds",
    [PROCESS_SEGMENTS] = "number of segments that it holds",
    [PROCESS_MAPS] = "number of mappings",
    [PROCESS_FDS] = "number of file descriptors",
    [PROCESS_THREADS] = "number of threads",
    [PROCESS_MINOR_FAULTS] = "number of minor page faults since its start",
    [PROCESS_MAJOR_FAULTS] = "number of major page faults since its start",
    [PROCESS_CPU_MSEC] = "milliseconds of CPU time since its start",
    [PROCESS_CPU_WAIT_MSEC] = "milliseconds that its main thread waited for a CPU; of trainers and workers",
    [PROCESS_LOADER_WAIT_MSEC] = "milliseconds that a trainer waited for batches; with the guard's lane",
};

static const char *const job_metrics[JOB_KIND_BYTES] = {
    [JOB_MEMORY_TOTAL] = "bytes of RAM",
    [JOB_MEMORY_AVAILABLE] = "bytes of RAM that are available",
    [JOB_SWAP_FREE] = "bytes of swap that are free",
    [JOB_GROUP_LIMIT] = "bytes that the tightest control group allows",
    [JOB_GROUP_USED] = "bytes that this control group uses",
    [JOB_GROUP_FILE] = "bytes of file pages in it, which the kernel can drop",
    [JOB_OOM_KILLS] = "number of OOM kills in it, or on the machine",
    [JOB_SHM_SIZE] = "size of /dev/shm in bytes",
    [JOB_SHM_USED] = "bytes used in /dev/shm",
    [JOB_GUARD_BYTES] = "bytes in segments of the guard",
    [JOB_GUARD_BUDGET] = "bytes that the budget allows",
    [JOB_GUARD_CREATED] = "number of segments that the guard has created",
    [JOB_GUARD_REUSED] = "number of segments that it has recycled",
    [JOB_GUARD_WAITING] = "number of requests that wait for room",
    [JOB_GUARD_WAITS] = "number of requests that have waited",
    [JOB_GUARD_REFUSED] = "number of requests that were refused",
    [JOB_GUARD_FROZEN] = "bytes of datasets that were made immortal",
    [JOB_GUARD_WAITED_MSEC] = "milliseconds in which requests waited for room",
    [JOB_DISK_WAIT_MSEC] = "milliseconds since boot in which tasks of the machine waited for a disk",
};

static const char *const events[EVENT_KINDS] = {
    [EVENT_BORN] = "a process started",
    [EVENT_ENDED] = "a process ended",
    [EVENT_OOM_KILL] = "the kernel killed a process to free memory",
    [EVENT_ATTEMPT] = "an attempt of `run` started",
    [EVENT_MARK] = "a mark of the user's",
    [EVENT_EPOCH] = "an epoch started (judged, not recorded)",
};

/* A vertical bar would end the cell of a table. */
static void cell_print(const char *text)
{
    for (; *text; text++)
        printf(*text == '|' ? "\\|" : "%c", *text);
}

static void serve_metrics_print(void)
{
    puts(
        "## Metrics of `serve`\n\n`rank` is there only if a launcher gave one.\n\n| metric | type | labels | "
        "meaning |\n|---|---|---|---|");
    const Metric *metric = NULL;
    for (size_t i = 0; (metric = metric_at(i)); i++)
        printf("| `%s` | %s | %s | %s |\n", metric->name, metric->counter ? "counter" : "gauge",
               metric->labels, metric->help);
    puts("");
}

static void commands_print(void)
{
    puts("## Commands\n");
    for (const Command *const *command = commands; *command; command++) {
        printf("### %s\n\n`shmguard %s [OPTION]...%s%s`\n\n%s\n\n| option | meaning |\n|---|---|\n",
               (*command)->name, (*command)->name, (*command)->operands ? " " : "",
               (*command)->operands ? (*command)->operands : "", (*command)->about);
        for (const Option *option = (*command)->options; option->type != OPTION_END; option++) {
            printf("| `");
            if (option->letter)
                printf("-%c`, `", option->letter);
            printf("--%s%s", option->name, option->argument ? " " : "");
            cell_print(option->argument ? option->argument : "");
            printf("` | ");
            cell_print(option->help);
            puts(" |");
        }
        puts("");
    }
}

static void findings_print(void)
{
    puts("## Findings of `doctor`\n\n| id | severity | meaning |\n|---|---|---|");
    const Check *check = NULL;
    for (size_t i = 0; (check = check_at(i)); i++) {
        printf("| `%s` | ", check->id);
        for (Severity severity = check->least; severity <= check->worst; severity++)
            printf("%s%s", severity == check->least ? "" : ", ", severity_name(severity));
        printf(" | %s |\n", check->meaning);
    }
    puts("");
}

/* The first clue with a detail explains it. */
static bool detail_is_new(Clue clue)
{
    for (Clue earlier = 0; earlier < clue; earlier++)
        if (clue_infos[earlier].detail && clue_infos[earlier].cause == clue_infos[clue].cause &&
            strcmp(clue_infos[earlier].detail, clue_infos[clue].detail) == 0)
            return false;
    return true;
}

static void causes_print(void)
{
    puts("## Causes of `run` and `explain`\n\n| id | meaning |\n|---|---|");
    for (CauseId id = 0; id < CAUSE_IDS; id++)
        printf("| `%s` | %s |\n", cause_name(id), cause_meaning(id));
    puts("\nThe field `detail` says more about some of them:\n\n| id | detail | meaning |\n|---|---|---|");
    for (CauseId id = 0; id < CAUSE_IDS; id++)
        for (Clue clue = 0; clue < CLUES; clue++)
            if (clue_infos[clue].detail && clue_infos[clue].cause == id && detail_is_new(clue))
                printf("| `%s` | `%s` | %s |\n", cause_name(id), clue_infos[clue].detail,
                       clue_infos[clue].evidence);
    puts("");
}

static void verdicts_print(void)
{
    puts("## Verdicts of `report`\n\n| id | severity | meaning |\n|---|---|---|");
    for (VerdictId id = 0; id < VERDICT_IDS; id++)
        printf("| `%s` | %s | %s |\n", verdict_name(id), severity_name(verdict_severity(id)),
               verdict_meaning(id));
    puts("");
}

static void metrics_print(void)
{
    puts("## Metrics of a recording\n\nOf each process, also in `watch`:\n\n| metric | meaning |\n|---|---|");
    for (ProcessMetric metric = 0; metric < PROCESS_METRICS; metric++)
        printf("| `%s` | %s |\n", process_metric_name(metric), process_metrics[metric]);
    puts("\nOf the job, the machine and its control group:\n\n| metric | meaning |\n|---|---|");
    for (JobMetric metric = 0; metric < JOB_METRICS; metric++)
        printf("| `%s` | %s |\n", job_metric_name(metric),
               metric < JOB_KIND_BYTES ? job_metrics[metric] : "allocated bytes in segments of this kind");
    puts("\nEvents:\n\n| event | meaning |\n|---|---|");
    for (EventKind kind = 0; kind < EVENT_KINDS; kind++)
        printf("| `%s` | %s |\n", event_kind_name(kind), events[kind]);
    puts("");
}

static void fields_print(const json_t *report, const char *name)
{
    const char *key = NULL;
    json_t *value = NULL;
    const char *before = "";
    printf("`%s`: ", name);
    json_object_foreach(json_object_get(report, name), key, value)
    {
        printf("%s`%s`", before, key);
        before = ", ";
    }
    puts("\n");
}

/* From the report of a run that did nothing. */
static int run_report_print(void)
{
    RunAttempt attempt = {.command = (char *const[]){(char *)"true", NULL}, .judged.cause.summary = ""};
    RunReport report = {.attempts = &attempt, .n_attempts = 1, .peaks = PEAKS_UNKNOWN};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    int r = out ? json_run(out, false, &report) : -ENOMEM;
    if (out)
        fclose(out);
    json_t *root = r < 0 ? NULL : json_loadb(text, size, 0, NULL);
    free(text);
    puts("## Figures in the report of `run`\n\n`man shmguard` (JSON) explains them.\n");
    fields_print(root, "peaks");
    fields_print(root, "guard");
    fields_print(root, "lane");
    json_decref(root);
    return root ? 0 : -EIO;
}

int main(void)
{
    puts("# Reference\n\n<!-- Generated by scripts/reference from the tables of the program. Do not edit. "
         "-->\n");
    commands_print();
    findings_print();
    causes_print();
    verdicts_print();
    metrics_print();
    serve_metrics_print();
    int r = run_report_print();
    puts("## Exit codes\n\n| code | meaning |\n|---|---|");
    for (size_t i = 0; i < ARRAY_SIZE(exit_codes); i++)
        printf("| %d | %s |\n", exit_codes[i].code, exit_codes[i].meaning);
    return r < 0 || fflush(stdout) != 0;
}
