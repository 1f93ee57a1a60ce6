/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "language.h"
#include "translations.h"

static Language chosen = LANGUAGE_ENGLISH;
static _Thread_local Language switched = LANGUAGES; /* to none */

/* The name of a locale: language[_territory][.encoding][@modifier]. */
typedef struct LocaleName {
    Text language;
    Text territory;
    Text encoding;
} LocaleName;

static Text part_take(Text *rest, const char *ends)
{
    size_t n = 0;
    while (n < rest->size && !strchr(ends, rest->data[n]))
        n++;
    Text part = {rest->data, n};
    *rest = text_skip(*rest, n);
    return part;
}

static LocaleName name_split(Text name)
{
    LocaleName locale = {.language = part_take(&name, "_-.@")};
    if (name.size > 0 && (name.data[0] == '_' || name.data[0] == '-')) {
        name = text_skip(name, 1);
        locale.territory = part_take(&name, ".@");
    }
    if (name.size > 0 && name.data[0] == '.') {
        name = text_skip(name, 1);
        locale.encoding = part_take(&name, "@");
    }
    return locale;
}

static bool is_one_of(Text text, const char *const *names)
{
    for (; *names; names++)
        if (text.size == strlen(*names) && (text.size == 0 || strncasecmp(text.data, *names, text.size) == 0))
            return true;
    return false;
}

/* Traditional characters are another language. */
static bool is_simplified(Text territory)
{
    return is_one_of(territory, (const char *const[]){"", "CN", "SG", "Hans", "Hans-CN", "Hans_CN", NULL});
}

bool language_find(Text name, Language *ret)
{
    LocaleName locale = name_split(name);
    if (is_one_of(locale.language, (const char *const[]){"en", "C", "POSIX", NULL}))
        *ret = LANGUAGE_ENGLISH;
    else if (is_one_of(locale.language, (const char *const[]){"zh", NULL}) &&
             is_simplified(locale.territory) &&
             is_one_of(locale.encoding, (const char *const[]){"", "UTF-8", "UTF8", NULL}))
        *ret = LANGUAGE_CHINESE;
    else
        return false;
    return true;
}

Language language_of_environment(void)
{
    static const char *const names[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    Language language = LANGUAGE_ENGLISH;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        Text value = text_of(getenv(names[i]));
        if (value.size > 0) {
            (void)language_find(value, &language);
            break;
        }
    }
    return language;
}

const char *language_tag(Language language)
{
    return language == LANGUAGE_CHINESE ? "zh-CN" : "en";
}

void language_choose(Language language)
{
    chosen = language;
}

Language language_switch(Language language)
{
    Language former = switched;
    switched = language;
    return former;
}

Language language_now(void)
{
    return switched == LANGUAGES ? chosen : switched;
}

const char *language_text(const char *english)
{
    if (language_now() == LANGUAGE_ENGLISH)
        return english;
    size_t at = LOWER_BOUND(i, chinese_n, strcmp(chinese[i].english, english) < 0);
    return at < chinese_n && strcmp(chinese[at].english, english) == 0 ? chinese[at].text : english;
}

const char *sentence_gap(Text before)
{
    return text_ends(before, "。") || text_ends(before, "！") || text_ends(before, "？") ? "" : " ";
}

const char *error_text(int error)
{
    return language_text(strerror(error));
}

Translations language_page_texts(void)
{
    bool english = language_now() == LANGUAGE_ENGLISH;
    return english ? (Translations){0} : (Translations){chinese_of_page, chinese_of_page_n};
}
