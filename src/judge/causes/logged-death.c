/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <ctype.h>
#include <signal.h>
#include <string.h>

#include "logged-death.h"

enum { WORDS_MAX = 4 };

typedef struct SignalWords {
    int number;
    Clue clue;
    Clue in_worker;               /* of a DataLoader */
    const char *name;             /* after "SIG" */
    const char *words[WORDS_MAX]; /* in lower case, English and Chinese; longer ones first */
} SignalWords;

static const SignalWords signals[] = {
    {SIGBUS, CLUE_BUS, CLUE_BUS_WORKER, "BUS", {"bus error", "总线错误"}},
    {SIGSEGV, CLUE_SEGFAULT, CLUE_SEGFAULT, "SEGV", {"segmentation fault", "段错误"}},
    {SIGKILL, CLUE_SIGKILL, CLUE_SIGKILL_WORKER, "KILL", {"killed", "已杀死"}},
    {SIGTERM, CLUE_SIGTERM, CLUE_SIGTERM_WORKER, "TERM", {"terminated", "已终止"}},
    {SIGABRT, CLUE_ABORTED, CLUE_ABORTED, "ABRT", {"aborted", "abort", "已放弃", "已中止"}},
    {SIGFPE,
     CLUE_FPE,
     CLUE_FPE,
     "FPE",
     {"floating point exception", "floating-point exception", "浮点数例外"}},
    {SIGILL,
     CLUE_ILLEGAL,
     CLUE_ILLEGAL,
     "ILL",
     {"illegal instruction", "illegal hardware instruction", "非法指令"}},
    {SIGHUP, CLUE_HANGUP, CLUE_HANGUP, "HUP", {"hangup"}},
    {SIGINT, CLUE_INTERRUPTED, CLUE_INTERRUPTED, "INT", {NULL}},
};
static_assert(ARRAY_SIZE(signals) == DEATH_SIGNALS, "logged-death.h counts them");

typedef enum WordingStyle {
    STYLE_STATUS, /* an exit status as Python writes it (-9) or a shell (137) */
    STYLE_MPICH,  /* the same, or the number of the signal */
    STYLE_SIGNAL, /* a signal's number, name or word */
    STYLE_NAME,   /* a signal's name or word */
} WordingStyle;

/* What a program writes before the signal, without the first letter where its case varies. */
static const struct {
    const char *before;
    WordingStyle style;
} wordings[] = {
    {"xit code", STYLE_STATUS},
    {"xit Code", STYLE_STATUS},
    {"xitcode", STYLE_STATUS},
    {"xitCode", STYLE_STATUS},
    {"xit_code", STYLE_STATUS},
    {"xit status", STYLE_STATUS},
    {"eturn code", STYLE_STATUS}, /* DeepSpeed */
    {"eturncode", STYLE_STATUS},
    {"ith code", STYLE_STATUS},
    {"ith status", STYLE_STATUS},
    {"died (", STYLE_STATUS},   /* vLLM */
    {"Exited (", STYLE_STATUS}, /* docker ps */
    {"EXIT CODE:", STYLE_MPICH},
    {"on signal ", STYLE_SIGNAL}, /* mpirun */
    {"by signal", STYLE_SIGNAL},  /* PyTorch of its workers, fish */
    {"ith signal ", STYLE_SIGNAL},
    {"aught signal ", STYLE_SIGNAL}, /* UCX */
    {"eceived signal ", STYLE_SIGNAL},
    {"got signal: ", STYLE_SIGNAL},   /* torchrun */
    {": Signal ", STYLE_SIGNAL},      /* torchrun */
    {"was sent code ", STYLE_STATUS}, /* gunicorn */
    {"was sent ", STYLE_NAME},
    {"ERROR: error code ", STYLE_STATUS},   /* DIGITS */
    {"[signal ", STYLE_SIGNAL},             /* Go */
    {"(signal ", STYLE_SIGNAL},             /* MPICH */
    {"Signal: ", STYLE_SIGNAL},             /* Open MPI */
    {"code=killed, status=", STYLE_SIGNAL}, /* systemd */
    {"code=dumped, status=", STYLE_SIGNAL},
    {"died with <Signals.", STYLE_NAME},
    {"\"signal\":\"", STYLE_NAME}, /* macOS, crash reports */
    {"EXC_BAD_ACCESS (", STYLE_NAME},
    {"EXC_CRASH (", STYLE_NAME},
    {"Namespace SIGNAL, Code ", STYLE_SIGNAL},
    {"codes of the workers are {", STYLE_NAME}, /* loky */
    {"Fatal Python error: ", STYLE_NAME},
    {"nexpected ", STYLE_NAME}, /* PyTorch and Paddle in their workers */
    {"*** ", STYLE_NAME},       /* Abseil and glog, which Ray and Paddle use */
    {"eceived ", STYLE_NAME},
    {"erminated by ", STYLE_NAME},
};
/* The last wording is that of the shells, which have nothing before the word. */
enum { WORDING_SHELL = ARRAY_SIZE(wordings) };
static_assert(WORDING_SHELL + 1 == DEATH_WORDINGS, "logged-death.h counts them");
static_assert(WORDING_SHELL + DEATH_SIGNALS * WORDS_MAX <= DEATH_NEEDLES, "logged-death.h: too few");

/* A word may begin with a capital letter, so that letter is not part of the literal. */
static const char *word_needle(const char *word)
{
    return islower((unsigned char)word[0]) ? word + 1 : word;
}

const char *logged_death_needle(size_t i)
{
    if (i < ARRAY_SIZE(wordings))
        return wordings[i].before;
    i -= ARRAY_SIZE(wordings);
    for (size_t s = 0; s < ARRAY_SIZE(signals); s++)
        for (size_t w = 0; w < WORDS_MAX && signals[s].words[w]; w++)
            if (i-- == 0)
                return word_needle(signals[s].words[w]);
    return NULL;
}

bool logged_death_tells(Clue clue)
{
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
        if (signals[i].clue == clue || signals[i].in_worker == clue)
            return true;
    return false;
}

static size_t signal_of_number(uint32_t number)
{
    size_t i = 0;
    while (i < ARRAY_SIZE(signals) && (uint32_t)signals[i].number != number)
        i++;
    return i;
}

/* "KILL" for "SIGKILL(-9)", "SEGV" for "SIGSEGV:", but not "INT" for "SIGINTEGER". */
static bool name_fits(Text text, const char *name)
{
    Text rest = text_skip(text, strlen(name));
    return text_starts(text, name) && (rest.size == 0 || !isalnum((unsigned char)rest.data[0]));
}

static bool word_fits(Text text, const char *word)
{
    const char *needle = word_needle(word);
    if (needle == word)
        return text_starts(text, word);
    return text.size > 0 && tolower((unsigned char)text.data[0]) == word[0] &&
           (text_starts(text_skip(text, 1), needle) ||
            (text_starts(text, "BUS ") && strcmp(word, "bus error") == 0)); /* Paddle's spelling */
}

/* DEATH_SIGNALS: the text does not begin with the name or a word of a signal. */
static size_t signal_of_name(Text text)
{
    bool prefixed = text_starts(text, "SIG");
    Text name = text_skip(text, prefixed ? strlen("SIG") : 0);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        if (prefixed && name_fits(name, signals[i].name))
            return i;
        for (size_t w = 0; w < WORDS_MAX && signals[i].words[w]; w++)
            if (word_fits(text, signals[i].words[w]))
                return i;
    }
    return DEATH_SIGNALS;
}

/* Windows has exceptions instead of signals. */
static size_t signal_of_exception(uint32_t number)
{
    static const struct {
        uint32_t exception;
        int number;
    } exceptions[] = {{0xC0000005, SIGSEGV}, {0xC000001D, SIGILL}, {0xC0000409, SIGABRT}};
    for (size_t i = 0; i < ARRAY_SIZE(exceptions); i++)
        if (exceptions[i].exception == number)
            return signal_of_number((uint32_t)exceptions[i].number);
    return DEATH_SIGNALS;
}

static size_t signal_of_status(Text text, bool or_number)
{
    bool negative = text_starts(text, "-");
    uint32_t number = 0;
    if (text_u32(text_digits(text_skip(text, negative)), 10, &number) < 0)
        return DEATH_SIGNALS;
    if (number > INT16_MAX)
        return signal_of_exception(negative ? -number : number);
    if (number > 128 && !negative)
        return signal_of_number(number - 128);
    /* 1 and 2 are codes of programs that failed more often than signals. */
    return number > 2 && (negative || or_number) ? signal_of_number(number) : DEATH_SIGNALS;
}

static size_t signal_after(Text text, WordingStyle style)
{
    while (text.size > 0 && strchr(" \t:=\"'([`", text.data[0]))
        text = text_skip(text, 1);
    size_t i = DEATH_SIGNALS;
    uint32_t number = 0;
    switch (style) {
    case STYLE_STATUS:
    case STYLE_MPICH:
        return signal_of_status(text, style == STYLE_MPICH);
    case STYLE_SIGNAL:
        if (text_u32(text_digits(text), 10, &number) == 0)
            i = signal_of_number(number);
        return i == DEATH_SIGNALS ? signal_of_name(text) : i;
    case STYLE_NAME:
        return signal_of_name(text);
    }
    return i;
}

/* "(core dumped)" at the beginning of the text. */
static bool is_core_dumped(Text text)
{
    static const char *const notes[] = {"(core dumped)", "(核心已转储)", "（核心已转储）", "(吐核)",
                                        "（吐核）"};
    Text trimmed = text_trim(text);
    for (size_t i = 0; i < ARRAY_SIZE(notes); i++)
        if (text_starts(trimmed, notes[i]))
            return true;
    return false;
}

/* Nothing follows, or the number that macOS adds ("Killed: 9"). */
static bool is_tail(Text text)
{
    Text rest = text_trim(text);
    if (text_starts(rest, ": "))
        rest = text_skip(text_skip(rest, 2), text_digits(text_skip(rest, 2)).size);
    return rest.size == 0;
}

/* A time, the name of a container in front of its output, a progress bar, or nothing. */
static bool is_line_start(Text before)
{
    if (text_ends(before, "]") || text_ends(before, "]:") || text_ends(before, "|") ||
        text_contains(before, "it/s") || text_contains(before, "s/it"))
        return true;
    for (size_t i = 0; i < before.size; i++)
        if (!strchr("0123456789:-.,+TZ/[] ", before.data[i]))
            return false;
    return true;
}

/* Without the marks of a text that is quoted in Markdown. */
static Text quote_strip(Text text)
{
    text = text_trim(text);
    while (text.size > 0 && strchr("*`>", text.data[0]))
        text = text_trim(text_skip(text, 1));
    while (text.size > 0 && strchr("*`", text.data[text.size - 1]))
        text = text_trim((Text){text.data, text.size - 1});
    return text;
}

/*
 * Whether `before`, a word and `rest` are the report of a shell:
 *     Killed                                            sh, a terminal; also behind a progress bar
 *     x.sh: line 3:  4711 Killed      python train.py   bash in a script
 *     [1]+  Killed      python train.py                 bash, job control
 *     zsh: killed     python train.py
 *     [1]    4711 killed     python train.py            zsh, job control
 *     srun: error: node1: task 0: Killed
 */
static bool shell_reports(Text before, Text rest, bool capital, int *ret_pid)
{
    bool tail = is_tail(rest);
    bool command = text_starts(rest, "  ");
    Text trimmed = text_trim(before);
    size_t digits = 0;
    while (digits < trimmed.size && isdigit((unsigned char)trimmed.data[trimmed.size - 1 - digits]))
        digits++;
    bool pid = digits > 0 && text_pid(text_skip(trimmed, trimmed.size - digits), ret_pid) == 0;
    if (is_core_dumped(rest))
        return true;
    if (pid && (text_contains(before, ": line ") || command || (tail && capital)))
        return capital || text_starts(before, "[");
    *ret_pid = 0;
    if (text_ends(before, "zsh: "))
        return tail || command;
    if (!capital)
        return false;
    if (text_ends(trimmed, "]+") || text_ends(trimmed, "]-"))
        return tail || command;
    if (text_starts(trimmed, "srun: error: ") && text_ends(trimmed, ":"))
        return tail;
    return tail && is_line_start(trimmed);
}

static bool shell_read(Text line, const char *word, int *ret_pid)
{
    const char *needle = word_needle(word);
    size_t first = needle == word ? 0 : 1;
    Text rest = line;
    while (text_after(rest, needle, &rest)) {
        size_t at = (size_t)(rest.data - line.data) - strlen(needle);
        if (at < first)
            continue;
        Text found = text_skip(line, at - first);
        *ret_pid = 0;
        if (word_fits(found, word) && shell_reports((Text){line.data, at - first}, rest,
                                                    !islower((unsigned char)found.data[0]), ret_pid))
            return true;
    }
    return false;
}

static bool is_of_worker(Text line)
{
    return text_contains(line, "DataLoader worker") || text_contains(line, "encountered in worker");
}

static void death_set(Text line, size_t wording, size_t signal_index, int pid, LoggedDeath *ret)
{
    const SignalWords *words = &signals[signal_index];
    bool worker = is_of_worker(line);
    Text rest;
    /* Ray puts the process that writes a line in front of it; a worker of that process is another one. */
    if (pid == 0 && !worker && text_starts(line, "(") && text_after(line, " pid=", &rest))
        (void)text_pid(text_digits(rest), &pid);
    *ret = (LoggedDeath){
        .wording = wording,
        .signal = signal_index,
        .clue = worker ? words->in_worker : words->clue,
        .pid = pid,
    };
}

bool logged_death_read(Text line, LoggedDeath *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(wordings); i++) {
        Text rest = line;
        while (text_after(rest, wordings[i].before, &rest)) {
            size_t found = signal_after(rest, wordings[i].style);
            if (found < DEATH_SIGNALS &&
                !text_starts(rest, "Aborted at ")) { /* the title of glog's reports */
                death_set(line, i, found, 0, ret);
                return true;
            }
        }
    }
    Text bare = quote_strip(line);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
        for (size_t w = 0; w < WORDS_MAX && signals[i].words[w]; w++) {
            int pid = 0;
            if (shell_read(bare, signals[i].words[w], &pid)) {
                death_set(line, WORDING_SHELL, i, pid, ret);
                return true;
            }
        }
    return false;
}
