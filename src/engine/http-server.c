/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <microhttpd.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "engine-text.h"
#include "http-server.h"

/*
 * Two threads: the owner's, and libmicrohttpd's, which calls everything in the part "Requests" and below up
 * to "The owner's side". What they share is under the mutex. libmicrohttpd has a mutex of its own, which it
 * takes in MHD_suspend_connection and MHD_resume_connection and may hold when it calls us: these two are
 * never called with our mutex held.
 *
 * A connection that waits is suspended, by its own thread and before it is marked as waiting; only then may
 * the owner resume it. What arrived between the look that found nothing and the mark is found by a second
 * look. A suspended connection is not closed before it has been resumed, so its pointer stays valid.
 */

enum {
    CONNECTIONS_MOST = 512,
    STREAMS_MOST = 400, /* the rest is for scrapes and health checks */
    REQUEST_MOST_BYTES = 12 << 10,
    EVENTS_KEPT = 64,
    SEND_BUFFER_BYTES = 64 << 10, /* of the kernel, which doubles it */
    BACKLOG = 128,
};

/* The most that a client may take, in seconds. */
#define REQUEST_SECONDS 10.0 /* to send its request */
#define ANSWER_SECONDS  30.0 /* until it has all of a document */
#define STALL_SECONDS   30.0 /* to make room for more of a stream */
#define QUIET_SECONDS   15.0 /* after which a comment is sent, so that proxies keep a stream open */

typedef struct Blob {
    atomic_uint users;
    size_t size;
    char data[];
} Blob;

typedef struct HttpClient HttpClient;
struct HttpClient {
    HttpServer *server;
    struct MHD_Connection *connection;
    int fd;
    double deadline; /* INFINITY: it is suspended until there is an event */
    bool waiting;    /* suspended, and the owner may resume it */
    bool asked;      /* for this document, when it had been made so many times */
    HttpDocument document;
    uint64_t made;
    bool streams;
    Blob *current; /* being sent, from `offset` on */
    size_t offset;
    uint64_t next; /* event; 0: the history comes first */
    bool ping;
    HttpClient *before;
    HttpClient *after;
};

typedef struct StoredDocument {
    Blob *blob;
    unsigned status;
    bool valid;
    uint64_t made;  /* how many times */
    uint64_t event; /* of the history: the last one in it */
} StoredDocument;

struct HttpServer {
    HttpSettings settings;
    char *token;
    char *policy;
    char cookie[24];
    Text run;
    char run_bytes[17];
    struct MHD_Daemon *daemon;
    int fd;
    pthread_mutex_t mutex;
    StoredDocument documents[HTTP_DOCUMENTS];
    unsigned wanted;
    Blob *events[EVENTS_KEPT]; /* by number; NULL: nothing was sent under it */
    uint64_t newest;           /* number of the last event; they begin at 1 */
    double sent;               /* when it was sent */
    Blob *ping;
    HttpClient *clients;
    size_t streams;
    bool closing;
};

/* --- Content that several clients read ------------------------------------------------------------------ */

static Blob *blob_make(Text head, Text data, Text tail)
{
    const Text parts[] = {head, data, tail};
    Blob *blob = malloc(sizeof *blob + head.size + data.size + tail.size);
    if (!blob)
        return NULL;
    atomic_init(&blob->users, 1);
    blob->size = 0;
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (parts[i].size > 0)
            memcpy(blob->data + blob->size, parts[i].data, parts[i].size);
        blob->size += parts[i].size;
    }
    return blob;
}

static Blob *blob_use(Blob *blob)
{
    atomic_fetch_add(&blob->users, 1);
    return blob;
}

static void blob_release(void *pointer)
{
    Blob *blob = pointer;
    if (blob && atomic_fetch_sub(&blob->users, 1) == 1)
        free(blob);
}

/* --- Streams -------------------------------------------------------------------------------------------- */

static void document_want(HttpServer *server, HttpDocument document)
{
    server->wanted |= 1U << document;
    (void)eventfd_write(server->fd, 1);
}

/* Chooses what the stream sends next. False: nothing is there yet. */
static bool stream_next(HttpServer *server, HttpClient *client)
{
    if (client->current)
        return true;
    bool kept = client->next > 0 && client->next + EVENTS_KEPT > server->newest;
    if (kept && client->next <= server->newest && server->events[client->next % EVENTS_KEPT]) {
        client->current = blob_use(server->events[client->next++ % EVENTS_KEPT]);
    } else if (kept && client->next == server->newest + 1) {
        if (!client->ping)
            return false;
        client->ping = false;
        client->current = blob_use(server->ping);
    } else {
        const StoredDocument *history = &server->documents[HTTP_HISTORY];
        client->next = 0;
        if (!history->valid) {
            document_want(server, HTTP_HISTORY);
            return false;
        }
        client->current = blob_use(history->blob);
        client->next = history->event + 1;
    }
    client->offset = 0;
    return true;
}

static ssize_t stream_take(HttpServer *server, HttpClient *client, char *buffer, size_t most)
{
    if (server->closing)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (!stream_next(server, client))
        return 0;
    size_t n = MIN(most, client->current->size - client->offset);
    memcpy(buffer, client->current->data + client->offset, n);
    client->offset += n;
    client->deadline = now_seconds() + STALL_SECONDS;
    if (client->offset == client->current->size) {
        blob_release(client->current);
        client->current = NULL;
    }
    return (ssize_t)n;
}

static ssize_t stream_read(void *context, uint64_t position, char *buffer, size_t most)
{
    (void)position;
    HttpClient *client = context;
    HttpServer *server = client->server;
    pthread_mutex_lock(&server->mutex);
    ssize_t n = stream_take(server, client, buffer, most);
    pthread_mutex_unlock(&server->mutex);
    if (n != 0)
        return n;
    MHD_suspend_connection(client->connection);
    pthread_mutex_lock(&server->mutex);
    client->waiting = !server->closing && !stream_next(server, client);
    client->deadline = client->waiting ? INFINITY : now_seconds() + STALL_SECONDS;
    bool ready = !client->waiting;
    pthread_mutex_unlock(&server->mutex);
    if (ready)
        MHD_resume_connection(client->connection);
    return 0;
}

/* --- Answers -------------------------------------------------------------------------------------------- */

static const char *const document_types[HTTP_DOCUMENTS] = {
    [HTTP_PAGE] = "text/html; charset=utf-8",
    [HTTP_METRICS] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
    [HTTP_METRICS_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
    [HTTP_SNAPSHOT] = "application/json",
    [HTTP_HEALTH] = "text/plain; charset=utf-8",
    [HTTP_HISTORY] = "text/event-stream",
};

static enum MHD_Result response_queue(HttpClient *client, unsigned status, const char *type,
                                      const char *policy, struct MHD_Response *response)
{
    static const char *const headers[][2] = {
        {"Connection", "close"},
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
    };
    if (!response)
        return MHD_NO;
    bool added = MHD_add_response_header(response, "Content-Type", type) == MHD_YES &&
                 MHD_add_response_header(response, "Content-Security-Policy", policy) == MHD_YES;
    for (size_t i = 0; added && i < ARRAY_SIZE(headers); i++)
        added = MHD_add_response_header(response, headers[i][0], headers[i][1]) == MHD_YES;
    enum MHD_Result result = added ? MHD_queue_response(client->connection, status, response) : MHD_NO;
    MHD_destroy_response(response);
    return result;
}

#define STRICT_POLICY "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

/* One line, and a header if `name` is one. */
static enum MHD_Result line_answer(HttpClient *client, unsigned status, const char *line, const char *name,
                                   const char *value)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(line), (char *)line, MHD_RESPMEM_MUST_COPY);
    if (response && name && MHD_add_response_header(response, name, value) != MHD_YES) {
        MHD_destroy_response(response);
        return MHD_NO;
    }
    return response_queue(client, status, "text/plain; charset=utf-8", STRICT_POLICY, response);
}

static enum MHD_Result blob_answer(HttpClient *client, HttpDocument document, unsigned status, Blob *blob)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer_with_free_callback_cls(blob->size, blob->data, blob_release, blob);
    if (!response)
        blob_release(blob);
    const char *policy = document == HTTP_PAGE ? client->server->policy : STRICT_POLICY;
    return response_queue(client, status, document_types[document], policy, response);
}

/* Called again after each time that the client was resumed. */
static enum MHD_Result document_answer(HttpServer *server, HttpClient *client, HttpDocument document)
{
    StoredDocument *stored = &server->documents[document];
    pthread_mutex_lock(&server->mutex);
    if (server->closing) {
        pthread_mutex_unlock(&server->mutex);
        return MHD_NO;
    }
    bool ready = stored->valid || (client->asked && stored->made != client->made);
    Blob *blob = ready ? blob_use(stored->blob) : NULL;
    unsigned status = stored->status;
    if (!ready) {
        client->asked = true;
        client->document = document;
        client->made = stored->made;
        document_want(server, document);
    }
    pthread_mutex_unlock(&server->mutex);
    if (ready)
        return blob_answer(client, document, status, blob);

    MHD_suspend_connection(client->connection);
    pthread_mutex_lock(&server->mutex);
    ready = server->closing || stored->made != client->made;
    client->waiting = !ready;
    pthread_mutex_unlock(&server->mutex);
    if (ready)
        MHD_resume_connection(client->connection);
    return MHD_YES;
}

static enum MHD_Result stream_answer(HttpServer *server, HttpClient *client)
{
    const char *header = MHD_lookup_connection_value(client->connection, MHD_HEADER_KIND, "Last-Event-ID");
    uint64_t last = 0;
    pthread_mutex_lock(&server->mutex);
    bool full = server->streams >= STREAMS_MOST;
    if (!full) {
        server->streams++;
        client->streams = true;
        if (event_id_parse(text_of(header), server->run, &last) && last > 0 && last <= server->newest)
            client->next = last + 1;
    }
    pthread_mutex_unlock(&server->mutex);
    if (full)
        return line_answer(client, MHD_HTTP_SERVICE_UNAVAILABLE, HTTP_TEXT_FULL, "Retry-After", "10");
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, REQUEST_MOST_BYTES, stream_read, client, NULL);
    if (response && MHD_add_response_header(response, "X-Accel-Buffering", "no") != MHD_YES) {
        MHD_destroy_response(response);
        return MHD_NO;
    }
    return response_queue(client, MHD_HTTP_OK, document_types[HTTP_HISTORY], STRICT_POLICY, response);
}

/* --- Requests ------------------------------------------------------------------------------------------- */

static const char *header_of(const HttpClient *client, const char *name)
{
    return MHD_lookup_connection_value(client->connection, MHD_HEADER_KIND, name);
}

static bool has_body(const HttpClient *client)
{
    const char *length = header_of(client, "Content-Length");
    return header_of(client, "Transfer-Encoding") || (length && strcmp(length, "0") != 0);
}

static bool is_authorized(const HttpServer *server, const HttpClient *client)
{
    if (!server->token)
        return true;
    const char *cookie = MHD_lookup_connection_value(client->connection, MHD_COOKIE_KIND, server->cookie);
    return authorization_has(text_of(header_of(client, "Authorization")), text_of(server->token)) ||
           (cookie && token_equal(text_of(cookie), text_of(server->token)));
}

/* The token in the page's address becomes a cookie, so that it stays neither in the history of the browser
 * nor on the screen. */
static enum MHD_Result token_answer(const HttpServer *server, HttpClient *client)
{
    _cleanup_buffer_ Buffer cookie = {0};
    struct MHD_Response *response = MHD_create_response_from_buffer(0, (char *)"", MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    if (buffer_printf(&cookie, "%s=%s; HttpOnly; SameSite=Lax; Path=/", server->cookie, server->token) < 0 ||
        MHD_add_response_header(response, "Set-Cookie", buffer_text(&cookie)) != MHD_YES ||
        MHD_add_response_header(response, "Location", "./") != MHD_YES) {
        MHD_destroy_response(response);
        return MHD_NO;
    }
    return response_queue(client, MHD_HTTP_SEE_OTHER, "text/plain; charset=utf-8", STRICT_POLICY, response);
}

static HttpDocument metrics_of(const HttpClient *client)
{
    return accept_is_openmetrics(text_of(header_of(client, "Accept"))) ? HTTP_METRICS : HTTP_METRICS_TEXT;
}

static enum MHD_Result request_answer(HttpServer *server, HttpClient *client, const char *path)
{
    const char *host = header_of(client, "Host");
    const char *token = MHD_lookup_connection_value(client->connection, MHD_GET_ARGUMENT_KIND, "token");
    if (server->settings.only_literal_hosts && host && !host_is_literal(text_of(host)))
        return line_answer(client, MHD_HTTP_MISDIRECTED_REQUEST, HTTP_TEXT_HOST, NULL, NULL);
    if (strcmp(path, "/healthz") == 0)
        return document_answer(server, client, HTTP_HEALTH);
    if (server->token && token && strcmp(path, "/") == 0 &&
        token_equal(text_of(token), text_of(server->token)))
        return token_answer(server, client);
    if (!is_authorized(server, client))
        return line_answer(client, MHD_HTTP_UNAUTHORIZED, HTTP_TEXT_TOKEN, "WWW-Authenticate",
                           "Bearer realm=\"shmguard\"");
    if (strcmp(path, "/") == 0)
        return document_answer(server, client, HTTP_PAGE);
    if (strcmp(path, "/metrics") == 0)
        return document_answer(server, client, metrics_of(client));
    if (strcmp(path, "/api/snapshot") == 0)
        return document_answer(server, client, HTTP_SNAPSHOT);
    if (strcmp(path, "/api/stream") == 0)
        return stream_answer(server, client);
    return line_answer(client, MHD_HTTP_NOT_FOUND, HTTP_TEXT_PATHS, NULL, NULL);
}

static HttpClient *client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* First when the headers have arrived, then when all of the request has, and again after each resume. */
static enum MHD_Result request_take(void *context, struct MHD_Connection *connection, const char *path,
                                    const char *method, const char *version, const char *body, size_t *size,
                                    void **request)
{
    (void)version;
    (void)body;
    (void)size;
    HttpServer *server = context;
    HttpClient *client = client_of(connection);
    if (!client)
        return MHD_NO;
    if (client->asked)
        return document_answer(server, client, client->document);
    bool first = !*request;
    *request = client;
    if (first && strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return line_answer(client, MHD_HTTP_METHOD_NOT_ALLOWED, HTTP_TEXT_METHOD, "Allow", "GET, HEAD");
    if (first && has_body(client))
        return line_answer(client, MHD_HTTP_CONTENT_TOO_LARGE, HTTP_TEXT_BODY, NULL, NULL);
    if (first)
        return MHD_YES;
    pthread_mutex_lock(&server->mutex);
    client->deadline = now_seconds() + ANSWER_SECONDS;
    pthread_mutex_unlock(&server->mutex);
    return request_answer(server, client, path);
}

static void client_meet(HttpServer *server, struct MHD_Connection *connection, void **ret)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    HttpClient *client = info ? calloc(1, sizeof *client) : NULL;
    *ret = client;
    if (!client)
        return;
    *client = (HttpClient){
        .server = server,
        .connection = connection,
        .fd = info->connect_fd,
        .deadline = now_seconds() + REQUEST_SECONDS,
    };
    int size = SEND_BUFFER_BYTES;
    unsigned msec = (unsigned)(STALL_SECONDS * 1000);
    (void)setsockopt(client->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    (void)setsockopt(client->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &msec, sizeof msec);
    pthread_mutex_lock(&server->mutex);
    client->after = server->clients;
    if (client->after)
        client->after->before = client;
    server->clients = client;
    pthread_mutex_unlock(&server->mutex);
}

/* Before the socket is closed, so no other file can have its number while the client is in the list. */
static void client_forget(HttpServer *server, HttpClient *client)
{
    pthread_mutex_lock(&server->mutex);
    if (client->before)
        client->before->after = client->after;
    else
        server->clients = client->after;
    if (client->after)
        client->after->before = client->before;
    server->streams -= client->streams;
    pthread_mutex_unlock(&server->mutex);
    blob_release(client->current);
    free(client);
}

static void connection_note(void *context, struct MHD_Connection *connection, void **client,
                            enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        client_meet(context, connection, client);
    else if (*client)
        client_forget(context, *client);
}

/* --- The owner's side ----------------------------------------------------------------------------------- */

/* Resumes clients that wait. With our mutex held, which is released in between. */
static void clients_wake(HttpServer *server, bool streams)
{
    struct MHD_Connection *woken[CONNECTIONS_MOST];
    size_t n = 0;
    for (HttpClient *client = server->clients; client && n < ARRAY_SIZE(woken); client = client->after)
        if (client->waiting && client->streams == streams) {
            client->waiting = false;
            client->deadline = now_seconds() + STALL_SECONDS;
            woken[n++] = client->connection;
        }
    pthread_mutex_unlock(&server->mutex);
    for (size_t i = 0; i < n; i++)
        MHD_resume_connection(woken[i]);
    pthread_mutex_lock(&server->mutex);
}

static int socket_listen(ListenAddress *address)
{
    static const int yes = 1;
    bool v6 = address->address.any.sa_family == AF_INET6;
    socklen_t size = v6 ? sizeof address->address.v6 : sizeof address->address.v4;
    _cleanup_close_ int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) < 0 ||
        bind(fd, &address->address.any, size) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, &address->address.any, &size) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* Signals go to the main thread. */
static struct MHD_Daemon *daemon_start(HttpServer *server, int listener)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, request_take, server,
        MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MOST,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_MOST_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)(2 * STALL_SECONDS), MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION,
        connection_note, server, MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return daemon;
}

/* Events of another run of the server cannot be continued: they are told apart by this. */
static int run_name(HttpServer *server)
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return -EIO;
    snprintf(server->run_bytes, sizeof server->run_bytes, "%016llx", (unsigned long long)number);
    server->run = text_of(server->run_bytes);
    return 0;
}

static int server_start(HttpServer *server, const HttpSettings *settings)
{
    server->settings = *settings;
    server->token = settings->token ? strdup(settings->token) : NULL;
    server->policy = strdup(settings->page_policy);
    server->ping = blob_make(TEXT(":\n\n"), (Text){0}, (Text){0});
    if ((settings->token && !server->token) || !server->policy || !server->ping)
        return -ENOMEM;
    server->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = server->fd < 0 ? -errno : run_name(server);
    int listener = r < 0 ? r : socket_listen(&server->settings.address);
    if (listener < 0)
        return listener;
    /* Browsers send a cookie to all ports of a machine. The ports of IPv4 and IPv6 are at one place. */
    snprintf(server->cookie, sizeof server->cookie, "shmguard_%u",
             ntohs(server->settings.address.address.v4.sin_port));
    server->daemon = daemon_start(server, listener);
    if (server->daemon)
        return 0;
    fd_close(listener);
    return -EAGAIN;
}

int http_server_open(const HttpSettings *settings, HttpServer **ret)
{
    HttpServer *server = calloc(1, sizeof *server);
    if (!server)
        return -ENOMEM;
    server->fd = -EBADF;
    pthread_mutex_init(&server->mutex, NULL);
    int r = server_start(server, settings);
    if (r < 0) {
        http_server_close(server);
        return r;
    }
    *ret = server;
    return 0;
}

const char *http_server_library(void)
{
    return MHD_get_version();
}

void http_server_close(HttpServer *server)
{
    if (!server)
        return;
    if (server->daemon) {
        pthread_mutex_lock(&server->mutex);
        server->closing = true;
        clients_wake(server, false);
        clients_wake(server, true);
        pthread_mutex_unlock(&server->mutex);
        MHD_stop_daemon(server->daemon);
    }
    for (size_t i = 0; i < HTTP_DOCUMENTS; i++)
        blob_release(server->documents[i].blob);
    for (size_t i = 0; i < EVENTS_KEPT; i++)
        blob_release(server->events[i]);
    blob_release(server->ping);
    pthread_mutex_destroy(&server->mutex);
    fd_close(server->fd);
    free(server->token);
    free(server->policy);
    free(server);
}

ListenAddress http_server_address(const HttpServer *server)
{
    return server->settings.address;
}

int http_server_fd(const HttpServer *server)
{
    return server->fd;
}

unsigned http_server_wanted(HttpServer *server)
{
    eventfd_t value;
    pthread_mutex_lock(&server->mutex);
    (void)eventfd_read(server->fd, &value);
    unsigned wanted = TAKE(server->wanted, 0);
    pthread_mutex_unlock(&server->mutex);
    return wanted;
}

/* The head of an event. The stream begins with a time after which a browser connects again. */
static int event_head(const HttpServer *server, uint64_t number, bool history, Buffer *out)
{
    return buffer_printf(out, "%sid: %s-%llu\nevent: %s\ndata: ", history ? "retry: 2000\n" : "",
                         server->run_bytes, (unsigned long long)number, history ? "history" : "sample");
}

int http_server_put(HttpServer *server, HttpDocument document, unsigned status, Buffer *content)
{
    _cleanup_buffer_ Buffer taken = TAKE(*content, (Buffer){0});
    _cleanup_buffer_ Buffer head = {0};
    bool history = document == HTTP_HISTORY;
    StoredDocument *stored = &server->documents[document];
    /* Only the owner's thread, this one, changes `newest`. */
    if (history && event_head(server, server->newest, true, &head) < 0)
        return -ENOMEM;
    Blob *blob = blob_make((Text){head.data, head.size}, (Text){taken.data, taken.size},
                           text_of(history ? "\n\n" : ""));
    if (!blob)
        return -ENOMEM;
    pthread_mutex_lock(&server->mutex);
    blob_release(stored->blob);
    *stored = (StoredDocument){blob, status, true, stored->made + 1, server->newest};
    clients_wake(server, history);
    pthread_mutex_unlock(&server->mutex);
    return 0;
}

void http_server_expire(HttpServer *server, HttpDocument document)
{
    pthread_mutex_lock(&server->mutex);
    server->documents[document].valid = false;
    pthread_mutex_unlock(&server->mutex);
}

static void event_store(HttpServer *server, Blob *blob)
{
    pthread_mutex_lock(&server->mutex);
    Blob **place = &server->events[++server->newest % EVENTS_KEPT];
    blob_release(*place);
    *place = blob;
    if (blob) {
        server->sent = now_seconds();
        clients_wake(server, true);
    } else
        server->documents[HTTP_HISTORY].valid = false;
    pthread_mutex_unlock(&server->mutex);
}

int http_server_send(HttpServer *server, Buffer *data)
{
    _cleanup_buffer_ Buffer taken = TAKE(*data, (Buffer){0});
    _cleanup_buffer_ Buffer head = {0};
    if (event_head(server, server->newest + 1, false, &head) < 0)
        return -ENOMEM;
    Blob *blob = blob_make((Text){head.data, head.size}, (Text){taken.data, taken.size}, TEXT("\n\n"));
    if (!blob)
        return -ENOMEM;
    event_store(server, blob);
    return 0;
}

void http_server_skip(HttpServer *server)
{
    event_store(server, NULL);
}

size_t http_server_streams(HttpServer *server)
{
    pthread_mutex_lock(&server->mutex);
    size_t streams = server->streams;
    pthread_mutex_unlock(&server->mutex);
    return streams;
}

void http_server_tick(HttpServer *server)
{
    double now = now_seconds();
    pthread_mutex_lock(&server->mutex);
    bool quiet = now - server->sent > QUIET_SECONDS;
    for (HttpClient *client = server->clients; client; client = client->after) {
        if (client->deadline < now) {
            (void)shutdown(client->fd, SHUT_RDWR);
            client->deadline = INFINITY;
        }
        client->ping |= quiet && client->waiting;
    }
    if (quiet) {
        server->sent = now;
        clients_wake(server, true);
    }
    pthread_mutex_unlock(&server->mutex);
}
