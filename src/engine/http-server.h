/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server of `serve`. It knows addresses, tokens and limits, and nothing of what it serves: that is a
 * few documents, and a stream of numbered events.
 *
 * Its thread (libmicrohttpd's) talks to the clients. It never computes anything: a document that is not there
 * is asked for, the client is suspended, and the owner's thread puts the document in its own time, once for
 * all who wait. So nothing that a client does, or does not do, can delay the owner.
 *
 * No client has a queue. Documents and events exist once, with a count of the clients that are reading them;
 * the last EVENTS_KEPT events are kept, and a client that falls further behind gets the history again. Each
 * connection has a time limit in each of its stages, and answers one request: see http-server.c.
 */
#pragma once

#include "http-request.h"

typedef struct HttpServer HttpServer;

typedef enum HttpDocument {
    HTTP_PAGE,         /* / */
    HTTP_METRICS,      /* /metrics, for clients that accept OpenMetrics */
    HTTP_METRICS_TEXT, /* and for all others */
    HTTP_SNAPSHOT,     /* /api/snapshot */
    HTTP_HEALTH,       /* /healthz, which needs no token */
    HTTP_HISTORY,      /* the data of the first event of /api/stream */
    HTTP_DOCUMENTS,
} HttpDocument;

typedef struct HttpSettings {
    ListenAddress address;
    const char *token;       /* NULL: all who can connect may read */
    bool only_literal_hosts; /* refuse requests to a name: see host_is_literal */
    const char *page_policy; /* the Content-Security-Policy of HTTP_PAGE */
} HttpSettings;

/* Listens, and starts the thread. -ENOSYS: built without libmicrohttpd; otherwise, why it cannot listen. */
int http_server_open(const HttpSettings *settings, HttpServer **ret);

/* NULL is fine. Ends all connections. */
void http_server_close(HttpServer *server);

/* With the port that the kernel chose, if 0 was wanted. */
/* The version of libmicrohttpd; NULL: built without it. */
const char *http_server_library(void);

ListenAddress http_server_address(const HttpServer *server);

/* Readable when documents are wanted; http_server_wanted returns them as bits and forgets them. */
int http_server_fd(const HttpServer *server);
unsigned http_server_wanted(HttpServer *server);

/* Makes this the document, whose content is taken, until http_server_expire. The history is that of all
 * events that were sent so far. -ENOMEM. */
int http_server_put(HttpServer *server, HttpDocument document, unsigned status, Buffer *content);
void http_server_expire(HttpServer *server, HttpDocument document);

/* Sends the next event to all streams. `data` is one line, which is taken. -ENOMEM. */
int http_server_send(HttpServer *server, Buffer *data);

/* In the place of an event that no stream would have got: what was sent before cannot be continued. */
void http_server_skip(HttpServer *server);

size_t http_server_streams(HttpServer *server);

/* Ends what takes too long, and keeps quiet streams alive. To be called about once a second. */
void http_server_tick(HttpServer *server);
