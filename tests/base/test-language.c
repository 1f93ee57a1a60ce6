/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "language.h"
#include "translations.h"

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool known;
        Language language;
    } cases[] = {
        {"en", true, LANGUAGE_ENGLISH},
        {"en_US.UTF-8", true, LANGUAGE_ENGLISH},
        {"C", true, LANGUAGE_ENGLISH},
        {"C.UTF-8", true, LANGUAGE_ENGLISH},
        {"POSIX", true, LANGUAGE_ENGLISH},
        {"zh", true, LANGUAGE_CHINESE},
        {"zh_CN", true, LANGUAGE_CHINESE},
        {"zh-CN", true, LANGUAGE_CHINESE},
        {"ZH_cn.utf8", true, LANGUAGE_CHINESE},
        {"zh_CN.UTF-8@pinyin", true, LANGUAGE_CHINESE},
        {"zh_SG.UTF-8", true, LANGUAGE_CHINESE},
        {"zh-Hans", true, LANGUAGE_CHINESE},
        {"zh_TW.UTF-8", false, LANGUAGE_ENGLISH},
        {"zh_HK", false, LANGUAGE_ENGLISH},
        {"zh_CN.GBK", false, LANGUAGE_ENGLISH},
        {"zh_CN.GB18030", false, LANGUAGE_ENGLISH},
        {"de_DE.UTF-8", false, LANGUAGE_ENGLISH},
        {"zhuang", false, LANGUAGE_ENGLISH},
        {"", false, LANGUAGE_ENGLISH},
        {"_", false, LANGUAGE_ENGLISH},
        {".UTF-8", false, LANGUAGE_ENGLISH},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Language language = LANGUAGE_ENGLISH;
        assert_int_equal(language_find(text_of(cases[i].name), &language), cases[i].known);
        assert_int_equal(language, cases[i].language);
    }
}

static void test_environment(void **state)
{
    (void)state;
    static const struct {
        const char *all, *messages, *lang;
        Language language;
    } cases[] = {
        {NULL, NULL, NULL, LANGUAGE_ENGLISH},
        {NULL, NULL, "zh_CN.UTF-8", LANGUAGE_CHINESE},
        {"", "", "zh_CN.UTF-8", LANGUAGE_CHINESE},
        {NULL, "en_US.UTF-8", "zh_CN.UTF-8", LANGUAGE_ENGLISH},
        {NULL, "zh_CN.UTF-8", "en_US.UTF-8", LANGUAGE_CHINESE},
        {"C", "zh_CN.UTF-8", "zh_CN.UTF-8", LANGUAGE_ENGLISH},
        {"zh_CN.UTF-8", "en_US.UTF-8", NULL, LANGUAGE_CHINESE},
        {"de_DE.UTF-8", "zh_CN.UTF-8", NULL, LANGUAGE_ENGLISH},
        {NULL, NULL, "zh_CN.GBK", LANGUAGE_ENGLISH},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *const values[] = {cases[i].all, cases[i].messages, cases[i].lang};
        const char *const names[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
        for (size_t n = 0; n < ARRAY_SIZE(names); n++)
            if (values[n])
                setenv(names[n], values[n], 1);
            else
                unsetenv(names[n]);
        assert_int_equal(language_of_environment(), cases[i].language);
    }
}

/* Also that the table is in the order that the search needs. */
static void test_every_text_is_found(void **state)
{
    (void)state;
    assert_true(chinese_n > 1000);
    Language former = language_switch(LANGUAGE_CHINESE);
    for (size_t i = 0; i < chinese_n; i++)
        assert_ptr_equal(language_text(chinese[i].english), chinese[i].text);
    assert_string_equal(language_text("no such text"), "no such text");
    assert_int_equal(language_page_texts().n, chinese_of_page_n);
    (void)language_switch(LANGUAGE_ENGLISH);
    for (size_t i = 0; i < chinese_n; i++)
        assert_ptr_equal(language_text(chinese[i].english), chinese[i].english);
    assert_int_equal(language_page_texts().n, 0);
    (void)language_switch(former);
}

static void *language_of_thread(void *ret)
{
    *(Language *)ret = language_now();
    return NULL;
}

static Language elsewhere(void)
{
    pthread_t thread;
    Language language = LANGUAGES;
    assert_int_equal(pthread_create(&thread, NULL, language_of_thread, &language), 0);
    pthread_join(thread, NULL);
    return language;
}

static void test_switch(void **state)
{
    (void)state;
    assert_int_equal(language_now(), LANGUAGE_ENGLISH);
    language_choose(LANGUAGE_CHINESE);
    assert_int_equal(language_now(), LANGUAGE_CHINESE);
    {
        IN_ENGLISH;
        assert_int_equal(language_now(), LANGUAGE_ENGLISH);
        assert_int_equal(elsewhere(), LANGUAGE_CHINESE);
        {
            Language former = language_switch(LANGUAGE_CHINESE);
            assert_int_equal(language_now(), LANGUAGE_CHINESE);
            (void)language_switch(former);
        }
        assert_int_equal(language_now(), LANGUAGE_ENGLISH);
    }
    assert_int_equal(language_now(), LANGUAGE_CHINESE);
    language_choose(LANGUAGE_ENGLISH);
}

static void test_gap(void **state)
{
    (void)state;
    assert_string_equal(sentence_gap(text_of("It ended.")), " ");
    assert_string_equal(sentence_gap(text_of("已经结束。")), "");
    assert_string_equal(sentence_gap(text_of("")), " ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_every_text_is_found),
        cmocka_unit_test(test_switch),
        cmocka_unit_test(test_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
