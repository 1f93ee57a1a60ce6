/* SPDX-License-Identifier: Apache-2.0 */
/* What a client of `serve` may send, and what the user may ask it to listen on. Everything here is pure. */
#pragma once

#include <netinet/in.h>

#include "text.h"

enum { LISTEN_PORT = 9477, TOKEN_LEAST = 16, TOKEN_MAX = 256 };

typedef struct ListenAddress {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    bool loopback;
} ListenAddress;

/* "127.0.0.1:9477", "[::1]:9477", "localhost:9477", without the port, or ":9477" for all addresses. -EINVAL:
 * it is none of these. Names other than localhost are not looked up: they may mean another address tomorrow.
 */
int listen_parse(Text text, ListenAddress *ret);

/* "127.0.0.1:9477", "[::1]:9477" */
void listen_format(const ListenAddress *address, Buffer *out);

/* All addresses of this machine, which is none that one could connect to. */
bool listen_is_any(const ListenAddress *address);

/*
 * Whether the Host header names this machine by an address, or as localhost. A page of a stranger's web site
 * can have its own name point to 127.0.0.1, and a browser would let it read what is served here; but it sends
 * that name.
 */
bool host_is_literal(Text host);

/* Whether the Accept header prefers OpenMetrics to Prometheus' older format. */
bool accept_is_openmetrics(Text accept);

/* 16 to 256 visible ASCII characters without those that have a meaning in headers. */
bool token_is_usable(Text token);

/* "Bearer TOKEN". Takes as long for every wrong token of one length. */
bool authorization_has(Text header, Text token);
bool token_equal(Text a, Text b);

/* "RUN-NUMBER": the id of an event that this run of the server has sent. */
bool event_id_parse(Text text, Text run, uint64_t *ret_number);
