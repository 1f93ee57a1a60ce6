/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cli-text.h"
#include "command.h"
#include "metrics.h"
#include "page.h"
#include "serve-loop.h"

typedef struct ServeOptions {
    const char *listen;
    const char *token_file;
    bool no_auth;
    const char *textfile;
    int processes;
    double interval;
} ServeOptions;

static const Option serve_options[] = {
    {OPTION_TEXT, 0, "listen", offsetof(ServeOptions, listen), "ADDRESS",
     .help = N_("IP address and port, such as 0.0.0.0:9477 for all addresses; port 0 is any free one "
                "(default: 127.0.0.1:9477). Beyond this machine, a token is required")},
    {OPTION_TEXT, 0, "token-file", offsetof(ServeOptions, token_file), "FILE",
     .help = N_(
         "require the token in this file, also on this machine (default: a new one, beyond this machine)")},
    {OPTION_FLAG, 0, "no-auth", offsetof(ServeOptions, no_auth),
     .help = N_("require no token, whatever the address is")},
    {OPTION_TEXT, 0, "textfile", offsetof(ServeOptions, textfile), "DIR",
     .help = N_("write the metrics to DIR/shmguard.prom every five seconds, for node_exporter's textfile "
                "collector; without --listen, no port is opened")},
    {OPTION_COUNT, 0, "processes", offsetof(ServeOptions, processes), "N",
     .help = N_("the N largest processes have metrics of their own, the others together (default: 32)")},
    {OPTION_SECONDS, 'i', "interval", offsetof(ServeOptions, interval), "TIME",
     .help = N_("time between two samples, at least 0.1s (default: 1s)")},
    {OPTION_END},
};

enum { PROCESSES_USUAL = 32, TOKEN_BYTES = 16 };

#define INTERVAL_LEAST 0.1
#define INTERVAL_MOST  3600.0

typedef struct ServeStart {
    const ServeOptions *options;
    const HttpServer *server;
    bool open;
    char token[TOKEN_MAX + 1]; /* "": none */
} ServeStart;

/* --- The token ------------------------------------------------------------------------------------------ */

static int token_make(char token[static 2 * TOKEN_BYTES + 1])
{
    unsigned char bytes[TOKEN_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return complain(EX_SOFTWARE, CLI_FAILED, "serve", error_text(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return EX_OK;
}

static int token_read(const char *path, char token[static TOKEN_MAX + 1])
{
    _cleanup_buffer_ Buffer content = {0};
    _cleanup_buffer_ Buffer safe = {0};
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    (void)text_escape(text_of(path), &safe);
    int r = fd < 0 ? -errno : buffer_read_fd(&content, fd, 4 * TOKEN_MAX);
    if (r < 0)
        return complain(r == -EACCES || r == -EPERM ? EX_NOPERM : EX_DATAERR, CLI_SERVE_NO_TOKEN,
                        buffer_text(&safe), error_text(-r));
    Text word = text_trim((Text){buffer_text(&content), content.size});
    if (!token_is_usable(word))
        return complain(EX_DATAERR, CLI_SERVE_BAD_TOKEN, buffer_text(&safe));
    memcpy(token, word.data, word.size);
    token[word.size] = '\0';
    return EX_OK;
}

/* --- What it opens -------------------------------------------------------------------------------------- */

static int listen_complain(const ListenAddress *address, int r)
{
    _cleanup_buffer_ Buffer name = {0};
    if (r == -ENOSYS)
        return complain(EX_UNAVAILABLE, CLI_SERVE_NO_LIBRARY);
    listen_format(address, &name);
    return complain(r == -EACCES || r == -EPERM ? EX_NOPERM : EX_UNAVAILABLE, CLI_SERVE_CANNOT_LISTEN,
                    buffer_text(&name), error_text(-r));
}

static int server_open(const ServeOptions *options, ServeStart *start, HttpServer **ret)
{
    HttpSettings settings = {.page_policy = page_policy};
    const char *listen = options->listen ? options->listen : "127.0.0.1";
    if (listen_parse(text_of(listen), &settings.address) < 0) {
        _cleanup_buffer_ Buffer safe = {0};
        (void)text_escape(text_of(listen), &safe);
        return complain(EX_USAGE, CLI_SERVE_LISTEN, buffer_text(&safe));
    }
    int code = EX_OK;
    if (options->token_file)
        code = token_read(options->token_file, start->token);
    else if (!settings.address.loopback && !options->no_auth)
        code = token_make(start->token);
    if (code != EX_OK)
        return code;
    bool has_token = start->token[0] != '\0';
    settings.token = has_token ? start->token : NULL;
    settings.only_literal_hosts = !has_token && settings.address.loopback;
    start->open = !has_token && !settings.address.loopback;
    int r = http_server_open(&settings, ret);
    start->server = r < 0 ? NULL : *ret;
    return r < 0 ? listen_complain(&settings.address, r) : EX_OK;
}

static int textfile_open(const char *directory, ReportFile *ret)
{
    char path[PATH_MAX];
    int r = snprintf(path, sizeof path, "%s/" CLI_SERVE_TEXTFILE_NAME, directory) >= (int)sizeof path
                ? -ENAMETOOLONG
                : report_file_open(path, ret);
    if (r >= 0) {
        ret->fleeting = true;
        return EX_OK;
    }
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(directory), &safe);
    return complain(r == -EACCES || r == -EPERM || r == -EROFS ? EX_NOPERM : EX_DATAERR, CLI_SERVE_TEXTFILE,
                    buffer_text(&safe), error_text(-r));
}

/* --- The command ---------------------------------------------------------------------------------------- */

/* Something to put into a browser. */
static void address_name(const HttpServer *server, Buffer *out)
{
    char host[HOST_NAME_MAX + 1] = "";
    ListenAddress address = http_server_address(server);
    if (listen_is_any(&address) && gethostname(host, sizeof host - 1) == 0)
        (void)buffer_printf(out, "%s:%u", host,
                            ntohs(address.address.v4.sin_port)); /* of IPv6 at the same place */
    else
        listen_format(&address, out);
}

static void ready_say(const void *context)
{
    const ServeStart *start = context;
    _cleanup_buffer_ Buffer safe = {0};
    if (start->server) {
        _cleanup_buffer_ Buffer name = {0};
        address_name(start->server, &name);
        if (start->open)
            complain(0, CLI_SERVE_OPEN, buffer_text(&name));
        if (start->token[0] != '\0' && !start->options->token_file)
            complain(0, CLI_SERVE_READY_TOKEN, buffer_text(&name), start->token);
        else
            complain(0, CLI_SERVE_READY, buffer_text(&name));
        return;
    }
    (void)text_escape(text_of(start->options->textfile), &safe);
    complain(0, CLI_SERVE_WRITING, buffer_text(&safe), CLI_SERVE_TEXTFILE_NAME);
}

static void textfile_lost_say(const void *context, int error)
{
    (void)context;
    complain(0, CLI_SERVE_TEXTFILE_LOST, error_text(error));
}

/* What is not written any more must not look as if it were still true. */
static void textfile_remove(const char *directory)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/" CLI_SERVE_TEXTFILE_NAME, directory) < (int)sizeof path)
        (void)unlink(path);
}

static int options_check(const ServeOptions *options)
{
    if (options->interval < INTERVAL_LEAST || options->interval > INTERVAL_MOST)
        return complain(EX_USAGE, CLI_SERVE_INTERVAL);
    if (options->processes > METRICS_PROCESSES_MOST)
        return complain(EX_USAGE, CLI_SERVE_PROCESSES, METRICS_PROCESSES_MOST);
    if (options->token_file && options->no_auth)
        return complain(EX_USAGE, CLI_SERVE_BOTH);
    if (options->textfile && !options->listen && (options->token_file || options->no_auth))
        return complain(EX_USAGE, CLI_SERVE_NO_PORT, options->token_file ? "token-file" : "no-auth");
    return EX_OK;
}

static int serve_complain(int r)
{
    if (r >= 0)
        return EX_OK;
    if (r == -ENOENT)
        return complain(EX_UNAVAILABLE, CLI_NO_PROC);
    return complain(r == -ENOMEM ? EX_SOFTWARE : EX_UNAVAILABLE, CLI_SERVE_FAILED, error_text(-r));
}

static int serve_command(const Command *command, int argc, char **argv)
{
    ServeOptions options = {.interval = 1, .processes = PROCESSES_USUAL};
    ServeStart start = {.options = &options};
    _cleanup_report_file_ ReportFile textfile = REPORT_FILE_NONE;
    HttpServer *server = NULL;
    Operands operands;
    int code = EX_OK;
    if (!command_parse(command, argc, argv, &options, &operands, &code))
        return code;
    code = options_check(&options);
    if (code == EX_OK && options.textfile)
        code = textfile_open(options.textfile, &textfile);
    if (code == EX_OK && (options.listen || !options.textfile))
        code = server_open(&options, &start, &server);
    if (code == EX_OK) {
        const ServeSettings settings = {
            .interval = options.interval,
            .processes_most = (size_t)options.processes,
            .server = server,
            .textfile = options.textfile ? &textfile : NULL,
            .context = &start,
            .ready = ready_say,
            .textfile_lost = textfile_lost_say,
        };
        code = serve_complain(serve_run(&settings));
        if (options.textfile)
            textfile_remove(options.textfile);
    }
    http_server_close(server);
    return code;
}

const Command command_serve = {
    .name = "serve",
    .summary = N_("show the same live in the browser, and give Prometheus its metrics"),
    .about = N_("Serves the page of report, live, at /, metrics for Prometheus at /metrics, what ps --json "
                "prints at /api/snapshot, the samples as server-sent events at /api/stream, and whether it "
                "works at /healthz. Only this machine can connect unless --listen says otherwise."),
    .options = serve_options,
    .run = serve_command,
};
