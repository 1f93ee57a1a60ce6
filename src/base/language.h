/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The language in which people are spoken to. Texts are written in English, where they are used; translations
 * from po/ are linked into the program, so that they need neither files nor a locale of the system.
 *
 * What programs read (JSON, recordings, journals, metrics) is always English: code that makes such text
 * while people read another language switches for as long as it takes.
 */
#pragma once

#include "text.h"

typedef enum Language {
    LANGUAGE_ENGLISH,
    LANGUAGE_CHINESE, /* Simplified */
    LANGUAGES,
} Language;

/* "en", "zh", "zh_CN.UTF-8", "C". False: no such language. */
bool language_find(Text name, Language *ret);

/* That of LC_ALL, LC_MESSAGES or LANG. English where another language or encoding is wanted. */
Language language_of_environment(void);

/* As HTML names it: "zh-CN". */
const char *language_tag(Language language);

/* Of the process, before it has threads. English until then. */
void language_choose(Language language);

/* Of this thread, until it is switched again. Returns the former one. */
Language language_switch(Language language);

Language language_now(void);

static inline void language_restore(const Language *former)
{
    (void)language_switch(*former);
}

/* Until the end of the block, this thread speaks English. */
#define IN_ENGLISH                                                                                           \
    __attribute__((cleanup(language_restore), unused)) const Language _former_language =                     \
        language_switch(LANGUAGE_ENGLISH)

/* The text in the language of this thread, or itself if there is no translation. Static memory. */
const char *language_text(const char *english) __attribute__((format_arg(1), returns_nonnull, nonnull));

/* What stands between two sentences: a blank, but nothing after a full-width stop. */
const char *sentence_gap(Text before);

/* The description of an errno. */
const char *error_text(int error);

/* A text, and one that is only marked for translation, because it is in a table: what reads the table
 * translates it. */
#define _(english)  language_text(english)
#define N_(english) english

/* One translation; they are sorted by the English text. */
typedef struct Translation {
    const char *english;
    const char *text;
} Translation;

/* Those of the page, for which it looks by itself. */
typedef struct Translations {
    const Translation *items;
    size_t n;
} Translations;
Translations language_page_texts(void);
