/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "http-request.h"
#include "macro.h"

/* --- Addresses ------------------------------------------------------------------------------------------ */

enum { HOST_MAX = 256 };

static bool text_is(Text a, const char *word)
{
    return a.size == strlen(word) && strncasecmp(a.data, word, a.size) == 0;
}

/* Splits "HOST:PORT", "[HOST]:PORT" or "HOST". False: it is neither. */
static bool host_split(Text text, Text *ret_host, Text *ret_port, bool *ret_brackets)
{
    bool brackets = text_starts(text, "[");
    Text rest = text_skip(text, brackets);
    const char *end = rest.size > 0 ? memchr(rest.data, brackets ? ']' : ':', rest.size) : NULL;
    if (brackets && !end)
        return false;
    Text host = {rest.data, end ? (size_t)(end - rest.data) : rest.size};
    Text port = text_skip(rest, host.size + brackets);
    if (port.size > 0 && port.data[0] != ':')
        return false;
    *ret_host = host;
    *ret_port = text_skip(port, 1);
    *ret_brackets = brackets;
    return port.size != 1; /* a colon, and no port */
}

static bool address_parse(int family, Text host, void *ret)
{
    char name[INET6_ADDRSTRLEN] = "";
    if (host.size == 0 || host.size >= sizeof name || memchr(host.data, '\0', host.size))
        return false;
    memcpy(name, host.data, host.size);
    return inet_pton(family, name, ret) == 1;
}

int listen_parse(Text text, ListenAddress *ret)
{
    Text host;
    Text digits;
    bool brackets = false;
    uint64_t port = LISTEN_PORT;
    ListenAddress address = {0};
    struct in_addr *v4 = &address.address.v4.sin_addr;
    struct in6_addr v6;
    if (text.size == 0 || !host_split(text, &host, &digits, &brackets) ||
        (digits.size > 0 && (text_u64(digits, 10, &port) < 0 || port > UINT16_MAX)))
        return -EINVAL;
    if (brackets) {
        if (!address_parse(AF_INET6, host, &v6))
            return -EINVAL;
        address.address.v6 = (struct sockaddr_in6){
            .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = v6};
        address.loopback = IN6_IS_ADDR_LOOPBACK(&v6);
    } else {
        if (host.size == 0)
            v4->s_addr = htonl(INADDR_ANY);
        else if (text_is(host, "localhost"))
            v4->s_addr = htonl(INADDR_LOOPBACK);
        else if (!address_parse(AF_INET, host, v4))
            return -EINVAL;
        address.address.v4.sin_family = AF_INET;
        address.address.v4.sin_port = htons((uint16_t)port);
        address.loopback = ntohl(v4->s_addr) >> 24 == IN_LOOPBACKNET;
    }
    *ret = address;
    return 0;
}

void listen_format(const ListenAddress *address, Buffer *out)
{
    char name[INET6_ADDRSTRLEN];
    if (address->address.any.sa_family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &address->address.v6.sin6_addr, name, sizeof name);
        (void)buffer_printf(out, "[%s]:%u", name, ntohs(address->address.v6.sin6_port));
    } else {
        (void)inet_ntop(AF_INET, &address->address.v4.sin_addr, name, sizeof name);
        (void)buffer_printf(out, "%s:%u", name, ntohs(address->address.v4.sin_port));
    }
}

bool listen_is_any(const ListenAddress *address)
{
    return address->address.any.sa_family == AF_INET6
               ? IN6_IS_ADDR_UNSPECIFIED(&address->address.v6.sin6_addr)
               : address->address.v4.sin_addr.s_addr == htonl(INADDR_ANY);
}

bool host_is_literal(Text text)
{
    Text host;
    Text port;
    bool brackets = false;
    uint64_t number = 0;
    struct in6_addr unused;
    if (text.size > HOST_MAX || !host_split(text, &host, &port, &brackets) ||
        (port.size > 0 && (text_u64(port, 10, &number) < 0 || number > UINT16_MAX)))
        return false;
    return brackets ? address_parse(AF_INET6, host, &unused)
                    : text_is(host, "localhost") || address_parse(AF_INET, host, &unused);
}

/* --- Headers -------------------------------------------------------------------------------------------- */

/* The quality that the header gives a media type; negative: it does not name it. */
static double accept_quality(Text accept, const char *type)
{
    double best = -1;
    Text range;
    while (text_until(&accept, ',', &range)) {
        Text part;
        Text parameters = range;
        double quality = 1;
        if (!text_until(&parameters, ';', &part) || !text_is(text_trim(part), type))
            continue;
        while (text_until(&parameters, ';', &part)) {
            Text trimmed = text_trim(part);
            if (text_starts(trimmed, "q=") && text_decimal(text_skip(trimmed, 2), &quality) < 0)
                quality = 0;
        }
        best = MAX(best, quality);
    }
    return best;
}

bool accept_is_openmetrics(Text accept)
{
    double quality = accept_quality(accept, "application/openmetrics-text");
    return quality > 0 && quality >= accept_quality(accept, "text/plain");
}

bool token_is_usable(Text token)
{
    for (size_t i = 0; i < token.size; i++)
        if (token.data[i] <= ' ' || token.data[i] > '~' || strchr("\",;\\", token.data[i]))
            return false;
    return token.size >= TOKEN_LEAST && token.size <= TOKEN_MAX;
}

bool token_equal(Text a, Text b)
{
    unsigned char difference = a.size != b.size;
    for (size_t i = 0; i < MIN(a.size, b.size); i++)
        difference |= (unsigned char)(a.data[i] ^ b.data[i]);
    return difference == 0;
}

bool authorization_has(Text header, Text token)
{
    static const char scheme[] = "Bearer ";
    size_t length = sizeof scheme - 1;
    return header.size > length && strncasecmp(header.data, scheme, length) == 0 &&
           token_equal(text_trim(text_skip(header, length)), token);
}

bool event_id_parse(Text text, Text run, uint64_t *ret_number)
{
    Text part;
    uint64_t number = 0;
    if (run.size == 0 || !text_until(&text, '-', &part) || part.size != run.size ||
        memcmp(part.data, run.data, run.size) != 0 || text_u64(text, 10, &number) < 0)
        return false;
    *ret_number = number;
    return true;
}
