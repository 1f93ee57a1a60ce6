/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "http-request.h"
#include "macro.h"

static void test_listen(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *address; /* NULL: refused */
        bool loopback;
    } cases[] = {
        {"127.0.0.1:9477", "127.0.0.1:9477", true},
        {"127.0.0.1", "127.0.0.1:9477", true},
        {"127.9.9.9:1", "127.9.9.9:1", true},
        {"localhost", "127.0.0.1:9477", true},
        {"LocalHost:80", "127.0.0.1:80", true},
        {"[::1]:80", "[::1]:80", true},
        {"[::1]", "[::1]:9477", true},
        {"[::]:80", "[::]:80", false},
        {"[fe80::1]:80", "[fe80::1]:80", false},
        {"0.0.0.0:9477", "0.0.0.0:9477", false},
        {":9000", "0.0.0.0:9000", false},
        {"10.0.0.1:0", "10.0.0.1:0", false},
        {"10.0.0.1:65535", "10.0.0.1:65535", false},
        {"10.0.0.1:65536", NULL, false},
        {"10.0.0.1:", NULL, false},
        {"10.0.0.1:x", NULL, false},
        {"10.0.0.1:-1", NULL, false},
        {"10.0.0.1: 1", NULL, false},
        {"10.0.0:1", NULL, false},
        {"010.0.0.1", NULL, false},
        {"9477", NULL, false},
        {"::1", NULL, false},
        {"::1:80", NULL, false},
        {"[::1", NULL, false},
        {"[::1]80", NULL, false},
        {"[127.0.0.1]:80", NULL, false},
        {"[]:80", NULL, false},
        {"node17:80", NULL, false},
        {"http://127.0.0.1:80", NULL, false},
        {":", NULL, false},
        {"", NULL, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        ListenAddress address;
        _cleanup_buffer_ Buffer text = {0};
        int r = listen_parse(text_of(cases[i].text), &address);
        assert_int_equal(r, cases[i].address ? 0 : -EINVAL);
        if (r < 0)
            continue;
        listen_format(&address, &text);
        assert_string_equal(buffer_text(&text), cases[i].address);
        assert_int_equal(address.loopback, cases[i].loopback);
        assert_int_equal(listen_is_any(&address),
                         strstr(cases[i].address, "0.0.0.0:") || strstr(cases[i].address, "[::]:"));
    }
}

static void test_host(void **state)
{
    (void)state;
    static const char *const literal[] = {"127.0.0.1",  "127.0.0.1:9477", "localhost", "LOCALHOST:1",
                                          "[::1]:9477", "10.1.2.3:80",    "[fe80::1]"};
    static const char *const others[] = {"",
                                         ":",
                                         "evil.example",
                                         "evil.example:9477",
                                         "127.0.0.1.evil.example",
                                         "localhost.evil.example",
                                         "127.0.0.1:",
                                         "127.0.0.1:x",
                                         "127.0.0.1:99999",
                                         "[::1",
                                         "127.0.0.1 ",
                                         "localhost.",
                                         "2130706433"};
    for (size_t i = 0; i < ARRAY_SIZE(literal); i++)
        assert_true(host_is_literal(text_of(literal[i])));
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_false(host_is_literal(text_of(others[i])));
}

static void test_accept(void **state)
{
    (void)state;
    static const struct {
        const char *accept;
        bool openmetrics;
    } cases[] = {
        /* Prometheus 2.42 and 3.5 */
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/"
         "plain;version=0.0.4;q=0.5,*/*;q=0.1",
         true},
        {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/"
         "plain;version=0.0.4;q=0.3,"
         "*/*;q=0.2",
         true},
        {"Application/OpenMetrics-Text", true},
        {"text/plain, application/openmetrics-text", true},
        {"text/plain;q=0.9,application/openmetrics-text;q=0.8", false},
        {"application/openmetrics-text;q=0", false},
        {"application/openmetrics-text;q=x", false},
        {"application/openmetrics-textual", false},
        {"*/*", false},
        {"text/plain", false},
        {",,;;=,q=1", false},
        {"", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(accept_is_openmetrics(text_of(cases[i].accept)), cases[i].openmetrics);
}

static void test_token(void **state)
{
    (void)state;
    char longest[TOKEN_MAX + 2];
    memset(longest, 'x', sizeof longest);
    Text token = TEXT("0123456789abcdef");
    assert_true(token_is_usable(token));
    assert_true(token_is_usable((Text){longest, TOKEN_MAX}));
    assert_false(token_is_usable((Text){longest, TOKEN_MAX + 1}));
    static const char *const unusable[] = {"",
                                           "0123456789abcde",
                                           "0123456789 abcdef",
                                           "0123456789\nabcdef",
                                           "0123456789\"abcdef",
                                           "0123456789;abcdef",
                                           "0123456789\xc3\xa9"
                                           "abcdef"};
    for (size_t i = 0; i < ARRAY_SIZE(unusable); i++)
        assert_false(token_is_usable(text_of(unusable[i])));
    assert_true(authorization_has(TEXT("Bearer 0123456789abcdef"), token));
    assert_true(authorization_has(TEXT("bearer  0123456789abcdef "), token));
    static const char *const wrong[] = {"",
                                        "Bearer",
                                        "Bearer ",
                                        "Bearer 0123456789abcdeg",
                                        "Bearer 0123456789abcde",
                                        "Bearer 0123456789abcdef0",
                                        "Basic 0123456789abcdef",
                                        "0123456789abcdef"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_false(authorization_has(text_of(wrong[i]), token));
}

static void test_event_id(void **state)
{
    (void)state;
    uint64_t number = 7;
    assert_true(event_id_parse(TEXT("abc-12"), TEXT("abc"), &number));
    assert_int_equal(number, 12);
    static const char *const wrong[] = {"",        "abc",    "abc-",  "abd-12",  "abc-12-",
                                        "abc--12", "abc-1x", "ab-12", "abcd-12", "abc-99999999999999999999"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_false(event_id_parse(text_of(wrong[i]), TEXT("abc"), &number));
    assert_int_equal(number, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listen), cmocka_unit_test(test_host),     cmocka_unit_test(test_accept),
        cmocka_unit_test(test_token),  cmocka_unit_test(test_event_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
