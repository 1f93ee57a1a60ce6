/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json.h"

static char *written(bool indented)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    JsonWriter writer;
    json_writer_open(&writer, out, indented);
    json_writer_field(&writer, "schema", json_string("x/1"));
    json_writer_list(&writer, "empty");
    json_writer_list_end(&writer);
    json_writer_list(&writer, "items");
    json_writer_item(&writer, json_pack("{s:i, s:[i]}", "a", 1, "b", 2));
    json_writer_item(&writer, json_null());
    json_writer_list_end(&writer);
    json_writer_field(&writer, "last", json_true());
    assert_int_equal(json_writer_close(&writer), 0);
    fclose(out);
    return text;
}

static void test_writer(void **state)
{
    (void)state;
    _cleanup_free_ char *compact = written(false);
    assert_string_equal(
        compact, "{\"schema\":\"x/1\",\"empty\":[],\"items\":[{\"a\":1,\"b\":[2]},null],\"last\":true}\n");
    _cleanup_free_ char *indented = written(true);
    assert_string_equal(indented, "{\n"
                                  "  \"schema\": \"x/1\",\n"
                                  "  \"empty\": [],\n"
                                  "  \"items\": [\n"
                                  "    {\n"
                                  "      \"a\": 1,\n"
                                  "      \"b\": [\n"
                                  "        2\n"
                                  "      ]\n"
                                  "    },\n"
                                  "    null\n"
                                  "  ],\n"
                                  "  \"last\": true\n"
                                  "}\n");
    json_t *a = json_loads(compact, 0, NULL);
    json_t *b = json_loads(indented, 0, NULL);
    assert_non_null(a);
    assert_true(json_equal(a, b));
    json_decref(a);
    json_decref(b);
}

static void test_missing_value_is_remembered(void **state)
{
    (void)state;
    FILE *out = fopen("/dev/null", "w");
    assert_non_null(out);
    JsonWriter writer;
    json_writer_open(&writer, out, false);
    json_writer_field(&writer, "a", NULL);
    json_writer_field(&writer, "b", json_true());
    assert_int_equal(json_writer_close(&writer), -ENOMEM);
    fclose(out);
}

static void test_values(void **state)
{
    (void)state;
    json_t *value = json_size(U64_UNKNOWN);
    assert_true(json_is_null(value));
    value = json_size(U64_UNKNOWN - 1);
    assert_true(json_integer_value(value) == INT64_MAX);
    json_decref(value);
    value = json_size(4096);
    assert_int_equal(json_integer_value(value), 4096);
    json_decref(value);

    static const struct {
        Text raw;
        const char *json;
    } raw[] = {
        {TEXT("plain"), "plain"},
        {TEXT("back\\slash"), "back\\\\slash"},
        {TEXT("\xff\n"), "\\xff\\n"},
        {TEXT("nul\0in"), "nul\\x00in"},
        {TEXT(""), ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(raw); i++) {
        value = json_raw(raw[i].raw);
        assert_string_equal(json_string_value(value), raw[i].json);
        json_decref(value);
    }
    value = json_prose("sed 's/\\n//'");
    assert_string_equal(json_string_value(value), "sed 's/\\n//'");
    json_decref(value);
    value = json_prose("bad \xff");
    assert_string_equal(json_string_value(value), "bad \\xff");
    json_decref(value);
    assert_true(json_is_null(json_prose(NULL)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writer),
        cmocka_unit_test(test_missing_value_is_remembered),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
