/* SPDX-License-Identifier: Apache-2.0 */
/* In the place of http-server.c in a program without libmicrohttpd. */
#include <errno.h>

#include "http-server.h"

int http_server_open(const HttpSettings *settings, HttpServer **ret)
{
    (void)settings;
    (void)ret;
    return -ENOSYS;
}

const char *http_server_library(void)
{
    return NULL;
}

void http_server_close(HttpServer *server)
{
    (void)server;
}

ListenAddress http_server_address(const HttpServer *server)
{
    (void)server;
    return (ListenAddress){0};
}

int http_server_fd(const HttpServer *server)
{
    (void)server;
    return -1;
}

unsigned http_server_wanted(HttpServer *server)
{
    (void)server;
    return 0;
}

int http_server_put(HttpServer *server, HttpDocument document, unsigned status, Buffer *content)
{
    (void)server;
    (void)document;
    (void)status;
    (void)content;
    return -ENOSYS;
}

void http_server_expire(HttpServer *server, HttpDocument document)
{
    (void)server;
    (void)document;
}

int http_server_send(HttpServer *server, Buffer *data)
{
    (void)server;
    (void)data;
    return -ENOSYS;
}

void http_server_skip(HttpServer *server)
{
    (void)server;
}

size_t http_server_streams(HttpServer *server)
{
    (void)server;
    return 0;
}

void http_server_tick(HttpServer *server)
{
    (void)server;
}
