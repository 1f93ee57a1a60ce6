/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"
#include "language.h"
#include "live-text.h"
#include "metrics.h"
#include "page.h"
#include "sampler-thread.h"
#include "serve-loop.h"
#include "show-ps.h"
#include "survey-thread.h"

/*
 * One thread, this one, owns everything. The sampler, the surveys and the clients each have a thread that may
 * be stuck; this one waits for none of them.
 */

enum {
    KEEP_SECONDS = 900,   /* of the past, for verdicts and the page */
    KEEP_SAMPLES = 240,   /* at least */
    HISTORY_SAMPLES = 10, /* after which the history for new pages is made again */
    NODE_NAME_MAX = 253,  /* as Kubernetes allows */
};

/* In seconds. */
#define ORPHANS_INTERVAL  60.0 /* between two surveys for orphans */
#define TEXTFILE_INTERVAL 5.0
#define VERDICTS_INTERVAL 30.0
#define TICK_INTERVAL     1.0
#define SECOND_SAMPLE     0.1  /* after the first one */
#define READY_PATIENCE    2.0  /* for the first two samples and the first survey */
#define SNAPSHOT_PATIENCE 10.0 /* until a client is told that the survey hangs */
#define SNAPSHOT_AGE      1.0  /* that a snapshot may have, */
#define SNAPSHOT_COST     10.0 /* or so many times what it cost: a client must not keep a core busy */
#define LATE_LEAST        10.0 /* without a sample, or LATE_SAMPLES intervals, until /healthz says so */
#define LATE_SAMPLES      5.0

typedef struct Serve {
    ServeSettings settings;
    SamplerThread *sampler;
    SurveyThread *surveyor;
    History history;
    Survey segments;
    bool has_segments;
    GuardedRun runs[SUPERVISORS_MOST];
    size_t n_runs;
    GuardTotals totals;
    JobFacts *facts;
    size_t n_facts;
    uint64_t own_bytes;
    uint64_t orphan_bytes;
    uint64_t orphans;
    MetricsChoice choice;
    char node[NODE_NAME_MAX + 1];
    double sampled; /* CLOCK_MONOTONIC, like all that follow */
    double sample_next;
    double orphans_next;
    double textfile_next;
    double verdicts_next;
    double tick_next;
    double snapshot_asked;   /* INFINITY: not */
    double snapshot_expires; /* INFINITY: there is none */
    unsigned since_history;  /* samples */
    bool surveyed;
    bool ready; /* there is something to serve; until then, requests wait */
    bool textfile_failed;
} Serve;

static void serve_free(Serve *serve)
{
    sampler_thread_close(serve->sampler);
    survey_thread_close(serve->surveyor);
    if (serve->has_segments)
        survey_free(&serve->segments);
    history_free(&serve->history);
    free(serve->facts);
}

/* --- What is asked for ---------------------------------------------------------------------------------- */

static int metrics_make(Serve *serve, MetricsFormat format, Buffer *out)
{
    const MetricsView view = {
        .history = &serve->history,
        .segments = serve->has_segments ? &serve->segments : NULL,
        .orphan_bytes = serve->orphan_bytes,
        .orphans = serve->orphans,
        .runs = serve->runs,
        .n_runs = serve->n_runs,
        .totals = serve->totals,
        .facts = serve->facts,
        .n_facts = serve->n_facts,
        .node = serve->node,
        .processes_most = serve->settings.processes_most,
        .streams = serve->settings.server ? http_server_streams(serve->settings.server) : 0,
        .own_cpu_seconds = clock_seconds(CLOCK_PROCESS_CPUTIME_ID),
        .own_bytes = serve->own_bytes,
    };
    return metrics_write(&view, format, &serve->choice, out);
}

static int health_make(const Serve *serve, unsigned *ret_status, Buffer *out)
{
    double age = now_seconds() - serve->sampled;
    bool late = age > MAX(LATE_LEAST, LATE_SAMPLES * serve->settings.interval);
    *ret_status = late ? 503 : 200;
    return late ? buffer_printf(out, LIVE_LATE "\n", age) : buffer_append_text(out, LIVE_HEALTHY "\n");
}

/* The verdicts and the view are in arena. */
static int view_make(const Serve *serve, Arena *arena, Verdicts *verdicts, ReportView *ret)
{
    int r = verdicts_judge(&serve->history, arena, verdicts);
    return r < 0 ? r : report_view_make(NULL, &serve->history, verdicts, arena, ret);
}

static int history_make(const Serve *serve, Buffer *out)
{
    _cleanup_arena_ Arena arena = {0};
    Verdicts verdicts;
    ReportView view;
    int r = view_make(serve, &arena, &verdicts, &view);
    return r < 0 ? r
                 : page_live_history(&view,
                                     MAX((double)KEEP_SECONDS, KEEP_SAMPLES * serve->settings.interval), out);
}

static int page_make(unsigned *ret_status, Buffer *out)
{
    int r = page_live(out);
    if (r != -ENOSYS)
        return r;
    *ret_status = 501;
    return buffer_append_text(out, LIVE_NO_PAGE "\n");
}

static void snapshot_ask(Serve *serve)
{
    serve->snapshot_asked = MIN(serve->snapshot_asked, now_seconds());
    (void)survey_thread_ask(serve->surveyor, SURVEY_PSS | SURVEY_LEASES);
}

/* 0, or -ENOMEM. */
static int document_make(Serve *serve, HttpDocument document)
{
    _cleanup_buffer_ Buffer content = {0};
    unsigned status = 200;
    int r = 0;
    switch (document) {
    case HTTP_PAGE:
        r = page_make(&status, &content);
        break;
    case HTTP_METRICS:
        r = metrics_make(serve, METRICS_OPENMETRICS, &content);
        break;
    case HTTP_METRICS_TEXT:
        r = metrics_make(serve, METRICS_PROMETHEUS, &content);
        break;
    case HTTP_HEALTH:
        r = health_make(serve, &status, &content);
        break;
    case HTTP_HISTORY:
        serve->since_history = 0;
        r = history_make(serve, &content);
        break;
    case HTTP_SNAPSHOT:
        snapshot_ask(serve);
        return 0;
    case HTTP_DOCUMENTS:
        break;
    }
    r = r < 0 ? r : http_server_put(serve->settings.server, document, status, &content);
    if (document == HTTP_HEALTH)
        http_server_expire(serve->settings.server, HTTP_HEALTH); /* it is a question about now */
    return r;
}

static int requests_handle(Serve *serve)
{
    unsigned wanted = http_server_wanted(serve->settings.server);
    for (HttpDocument document = 0; document < HTTP_DOCUMENTS; document++) {
        int r = wanted & 1U << document ? document_make(serve, document) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

/* --- Surveys -------------------------------------------------------------------------------------------- */

static int snapshot_put(Serve *serve, const PsView *view, double cost_seconds)
{
    _cleanup_buffer_ Buffer content = {0};
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return -ENOMEM;
    int r = json_ps(out, false, view);
    bool failed = fclose(out) != 0;
    if (r < 0 || failed)
        return -ENOMEM;
    content = (Buffer){TAKE_PTR(text), size, size};
    serve->snapshot_asked = INFINITY;
    serve->snapshot_expires = now_seconds() + MAX(SNAPSHOT_AGE, SNAPSHOT_COST * cost_seconds);
    return http_server_put(serve->settings.server, HTTP_SNAPSHOT, 200, &content);
}

static int survey_handle(Serve *serve)
{
    SurveyResult result;
    _cleanup_arena_ Arena arena = {0};
    PsView view;
    int r = survey_thread_take(serve->surveyor, &result);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    IN_ENGLISH; /* for /api/snapshot */
    r = ps_view_make(&result.survey, &(PsSelection){0}, &arena, &view);
    serve->surveyed = true;
    serve->orphans_next = now_seconds() + ORPHANS_INTERVAL;
    serve->orphans = serve->orphan_bytes = 0;
    for (size_t i = 0; r >= 0 && i < view.n_segments; i++)
        if (view.segments[i].orphan == ORPHAN_YES) {
            serve->orphans++;
            serve->orphan_bytes += view.segments[i].segment->allocated_bytes;
        }
    if (r >= 0 && isfinite(serve->snapshot_asked)) {
        if (result.flags & SURVEY_PSS)
            r = snapshot_put(serve, &view, result.cost_seconds);
        else
            snapshot_ask(serve);
    }
    survey_free(&result.survey);
    return r;
}

static int surveys_step(Serve *serve, double now)
{
    if (now >= serve->snapshot_expires) {
        http_server_expire(serve->settings.server, HTTP_SNAPSHOT);
        serve->snapshot_expires = INFINITY;
    }
    if (now - serve->snapshot_asked > SNAPSHOT_PATIENCE) {
        _cleanup_buffer_ Buffer content = {0};
        serve->snapshot_asked = INFINITY;
        serve->snapshot_expires = now;
        int r = buffer_append_text(&content, LIVE_NO_SURVEY "\n");
        return r < 0 ? r : http_server_put(serve->settings.server, HTTP_SNAPSHOT, 503, &content);
    }
    if (now >= serve->orphans_next) {
        serve->orphans_next = now + ORPHANS_INTERVAL;
        (void)survey_thread_ask(serve->surveyor, SURVEY_LEASES);
    }
    return 0;
}

/* --- Samples -------------------------------------------------------------------------------------------- */

static int result_keep(Serve *serve, const SampleResult *result)
{
    if (result->surveyed) {
        if (serve->has_segments)
            survey_free(&serve->segments);
        serve->segments = result->survey;
        serve->has_segments = true;
    }
    serve->n_runs = result->guards;
    memcpy(serve->runs, result->runs, result->guards * sizeof *serve->runs);
    serve->totals = *result->totals;
    serve->own_bytes = result->own_bytes;
    JobFacts *facts = reallocarray(serve->facts, MAX(result->n_facts, (size_t)1), sizeof *facts);
    if (!facts)
        return -ENOMEM;
    if (result->n_facts > 0)
        memcpy(facts, result->facts, result->n_facts * sizeof *facts);
    serve->facts = facts;
    serve->n_facts = result->n_facts;
    return 0;
}

static int sample_send(Serve *serve, const Moment *moment)
{
    _cleanup_arena_ Arena arena = {0};
    _cleanup_buffer_ Buffer data = {0};
    Verdicts verdicts;
    ReportView view;
    int r = 0;
    bool judged = serve->sampled >= serve->verdicts_next;
    if (judged) {
        serve->verdicts_next = serve->sampled + VERDICTS_INTERVAL;
        r = view_make(serve, &arena, &verdicts, &view);
    }
    if (r >= 0)
        r = page_live_sample(&serve->history, moment, judged ? &view : NULL, &data);
    return r < 0 ? r : http_server_send(serve->settings.server, &data);
}

static int sample_publish(Serve *serve, const Moment *moment)
{
    HttpServer *server = serve->settings.server;
    http_server_expire(server, HTTP_METRICS);
    http_server_expire(server, HTTP_METRICS_TEXT);
    if (http_server_streams(server) == 0) {
        http_server_skip(server);
        return 0;
    }
    int r = sample_send(serve, moment);
    /* Pages that open in the meantime get it with the events that followed, which are kept for longer. */
    if (++serve->since_history >= HISTORY_SAMPLES)
        http_server_expire(server, HTTP_HISTORY);
    return r;
}

static int text_fill(FILE *out, const void *context)
{
    const Buffer *text = context;
    fwrite(text->data, 1, text->size, out);
    return 0;
}

/* A full disk must not end the server: it is said once, and tried again. */
static int textfile_write(Serve *serve)
{
    _cleanup_buffer_ Buffer text = {0};
    int r = metrics_make(serve, METRICS_PROMETHEUS, &text);
    if (r < 0)
        return r;
    r = report_file_write(serve->settings.textfile, text_fill, &text);
    if (r < 0 && !serve->textfile_failed)
        serve->settings.textfile_lost(serve->settings.context, -r);
    serve->textfile_failed = r < 0;
    serve->textfile_next = serve->sampled + TEXTFILE_INTERVAL;
    return 0;
}

static int sample_handle(Serve *serve)
{
    SampleResult result;
    int r = sampler_thread_take(serve->sampler, &result);
    if (r >= 0)
        r = result_keep(serve, &result);
    if (r >= 0)
        r = history_add(&serve->history, &result.moment);
    if (r < 0)
        return r;
    serve->sampled = now_seconds();
    history_forget(&serve->history,
                   result.moment.seconds - MAX((double)KEEP_SECONDS, KEEP_SAMPLES * serve->history.interval));
    if (serve->settings.server)
        r = sample_publish(serve, &result.moment);
    if (r >= 0 && serve->settings.textfile && serve->sampled >= serve->textfile_next)
        r = textfile_write(serve);
    return r;
}

static void sample_step(Serve *serve, double now)
{
    if (now < serve->sample_next || sampler_thread_asked(serve->sampler) >= 0)
        return;
    double interval = serve->settings.interval;
    if (serve->history.series.n == 0) /* the first sample finds who holds segments, and the second has them */
        interval = MIN(interval, SECOND_SAMPLE);
    sampler_thread_ask(serve->sampler);
    serve->sample_next = MAX(serve->sample_next + interval, now);
}

/* --- The loop ------------------------------------------------------------------------------------------- */

static int signals_open(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGQUIT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

/* In a pod, the host name is that of the pod. */
static void node_name(char node[static NODE_NAME_MAX + 1])
{
    const char *given = getenv("SHMGUARD_NODE");
    if (given)
        snprintf(node, NODE_NAME_MAX + 1, "%s", given);
    else if (gethostname(node, NODE_NAME_MAX) < 0)
        node[0] = '\0';
}

static int serve_open(Serve *serve)
{
    double now = now_seconds();
    int r = sampler_thread_open(SAMPLER_MACHINE, serve->settings.interval, &serve->sampler);
    if (r >= 0)
        r = survey_thread_open(&serve->surveyor);
    if (r >= 0)
        r = history_init(&serve->history, "", 0, clock_seconds(CLOCK_REALTIME), serve->settings.interval);
    if (r < 0)
        return r;
    node_name(serve->node);
    serve->sampled = serve->sample_next = serve->orphans_next = serve->tick_next = now;
    return 0;
}

static int milliseconds_until(double next, double now)
{
    return (int)ceil(MAX(next - now, 0.0) * 1000);
}

static int serve_wait(const Serve *serve, int signals, struct pollfd fds[static 4])
{
    double now = now_seconds();
    double next = serve->tick_next;
    if (sampler_thread_asked(serve->sampler) < 0)
        next = MIN(next, serve->sample_next);
    fds[0] = (struct pollfd){signals, POLLIN, 0};
    fds[1] = (struct pollfd){sampler_thread_fd(serve->sampler), POLLIN, 0};
    fds[2] = (struct pollfd){survey_thread_fd(serve->surveyor), POLLIN, 0};
    fds[3] = (struct pollfd){
        serve->settings.server && serve->ready ? http_server_fd(serve->settings.server) : -1, POLLIN, 0};
    return poll(fds, 4, milliseconds_until(next, now)) < 0 && errno != EINTR ? -errno : 0;
}

static int serve_step(Serve *serve, const struct pollfd fds[static 4])
{
    double now = now_seconds();
    int r = fds[1].revents ? sample_handle(serve) : 0;
    if (r >= 0 && fds[2].revents)
        r = survey_handle(serve);
    if (r >= 0 && fds[3].revents)
        r = requests_handle(serve);
    sample_step(serve, now);
    if (r >= 0 && now >= serve->tick_next) {
        serve->tick_next = now + TICK_INTERVAL;
        r = surveys_step(serve, now);
        if (serve->settings.server)
            http_server_tick(serve->settings.server);
    }
    return r;
}

int serve_run(const ServeSettings *settings)
{
    _cleanup_(serve_free) Serve serve = {
        .settings = *settings,
        .orphan_bytes = U64_UNKNOWN,
        .orphans = U64_UNKNOWN,
        .own_bytes = U64_UNKNOWN,
        .snapshot_asked = INFINITY,
        .snapshot_expires = INFINITY,
    };
    _cleanup_close_ int signals = signals_open();
    int r = signals < 0 ? signals : serve_open(&serve);
    double began = now_seconds();
    while (r >= 0) {
        struct pollfd fds[4];
        r = serve_wait(&serve, signals, fds);
        if (r >= 0 && fds[0].revents)
            break;
        if (r >= 0)
            r = serve_step(&serve, fds);
        bool complete = serve.history.series.n > 1 && serve.surveyed;
        if (!serve.ready && r >= 0 && (complete || now_seconds() - began > READY_PATIENCE)) {
            serve.ready = true;
            settings->ready(settings->context);
        }
    }
    return r;
}
