/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>

#include "traceback.h"

/* This many lines of other processes may come between the frames of a traceback and its exception. */
enum { FOREIGN_LINES_MAX = 40, TYPE_MAX = 120 };

const char *const traceback_needles[TRACEBACK_NEEDLES] = {
    [NEEDLE_HEADER] = "Traceback (most recent call last)",
    [NEEDLE_FRAME] = "\", line ",
    [NEEDLE_ERROR] = "Error",
    [NEEDLE_EXCEPTION] = "Exception",
    [NEEDLE_INTERRUPT] = "KeyboardInterrupt",
    [NEEDLE_CAUSE] = "exception was the direct cause of the following exception",
    [NEEDLE_HANDLING] = "During handling of the above exception, another exception occurred",
    [NEEDLE_IGNORED] = "Exception ignored in",
    [NEEDLE_FATAL_STACK] = "Current thread 0x",
};

static void copy_cut(Text from, char *to, size_t size)
{
    size_t n = MIN(from.size, size - 1);
    if (n > 0)
        memcpy(to, from.data, n);
    to[n] = '\0';
}

/* A path can be long; its end says more than its beginning. */
static void copy_path(Text from, char *to, size_t size)
{
    copy_cut(text_skip(from, from.size >= size ? from.size - size + 1 : 0), to, size);
}

typedef enum FrameStyle {
    FRAME_NONE,
    FRAME_TRACEBACK,    /* File "x.py", line 3, in f */
    FRAME_FAULTHANDLER, /* File "x.py", line 3 in f */
} FrameStyle;

static FrameStyle frame_parse(Text line, size_t *ret_start, Frame *ret)
{
    Text rest;
    Text after;
    Text function = {"", 0};
    if (!text_after(line, "File \"", &rest) || !text_after(rest, traceback_needles[NEEDLE_FRAME], &after))
        return FRAME_NONE;
    Text path = {rest.data, (size_t)(after.data - rest.data) - strlen(traceback_needles[NEEDLE_FRAME])};
    Text digits = text_digits(after);
    Frame frame = {0};
    if (text_u32(digits, 10, &frame.line) < 0)
        return FRAME_NONE;
    after = text_skip(after, digits.size);
    FrameStyle style = text_starts(after, " in ") ? FRAME_FAULTHANDLER : FRAME_TRACEBACK;
    if (text_starts(after, " in ") || text_starts(after, ", in "))
        text_after(after, "in ", &function);
    copy_cut(text_trim(function), frame.function, sizeof frame.function);
    copy_path(path, frame.file, sizeof frame.file);
    *ret_start = (size_t)(rest.data - line.data) - strlen("File \"");
    *ret = frame;
    return style;
}

static bool frame_is_library(const Frame *frame)
{
    static const char *const places[] = {"-packages/", "-packages\\", "/lib/python", "\\lib\\"};
    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        if (strstr(frame->file, places[i]))
            return true;
    return frame->file[0] == '<';
}

/* "2024-05-01 03:00:01 " and "2024-05-01 03:00:02 " are one prefix. */
static bool prefix_fits(const Traceback *traceback, Text line)
{
    if (line.size < traceback->prefix_size)
        return false;
    for (size_t i = 0; i < traceback->prefix_size; i++) {
        unsigned char a = (unsigned char)traceback->prefix[i];
        unsigned char b = (unsigned char)line.data[i];
        if (a != b && !(isdigit(a) && isdigit(b)))
            return false;
    }
    return true;
}

static bool type_has_usual_end(Text type)
{
    static const char *const ends[] = {"Error",   "Exception", "Interrupt", "Exit",     "Timeout",
                                       "Expired", "Failure",   "NotFound",  "Iteration"};
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        if (text_ends(type, ends[i]))
            return true;
    return false;
}

/* "package.SomeError: message" or a bare "KeyboardInterrupt". `sure`: the line is where a traceback ends. */
static bool exception_parse(Text line, bool sure, Text *ret_type, Text *ret_message)
{
    size_t n = 0;
    size_t last = 0; /* where the part after the last dot begins */
    bool lower = false;
    while (n < line.size && n < TYPE_MAX) {
        unsigned char c = (unsigned char)line.data[n];
        if (c == '.')
            last = n + 1;
        else if (!isalnum(c) && c != '_')
            break;
        lower |= islower(c) != 0;
        n++;
    }
    Text type = {line.data, n};
    Text rest = text_skip(line, n);
    if (n == 0 || isdigit((unsigned char)line.data[0]) || last >= n || !lower)
        return false;
    if (rest.size > 0 && rest.data[0] != ':')
        return false;
    bool usual = type_has_usual_end(type);
    if (!usual &&
        !(sure && rest.size > 0 && (isupper((unsigned char)line.data[last]) || line.data[last] == '_')))
        return false;
    if (!sure && (text_equal(type, "Error") || text_equal(type, "Exception")))
        return false;
    if (text_equal(type, "Message") || text_equal(type, "Arguments")) /* below a "--- Logging error ---" */
        return false;
    *ret_type = type;
    *ret_message = text_trim(text_skip(rest, 1));
    return true;
}

/* Ranks of a distributed job mark their lines. */
static Text rank_prefix_skip(Text line)
{
    if (!text_starts(line, "[rank"))
        return line;
    Text rest = text_skip(line, strlen("[rank"));
    rest = text_skip(rest, text_digits(rest).size);
    return text_starts(rest, "]: ") ? text_skip(rest, 3) : line;
}

static void traceback_begin(Traceback *traceback)
{
    traceback->open = true;
    traceback->foreign = false;
    traceback->waited = 0;
    traceback->prefix_size = 0;
    traceback->inner = traceback->user = (Frame){0};
    traceback->feeder = false;
    traceback->background = false;
    traceback->seen = (NeedleSet){0};
}

static void traceback_header(Traceback *traceback, Text line)
{
    traceback_begin(traceback);
    /* Before PyTorch 1.2 a worker's whole traceback was the message of the exception that passed it on. */
    Text after = line;
    (void)text_after(line, traceback_needles[NEEDLE_HEADER], &after);
    Text before = {line.data, (size_t)(after.data - line.data) - strlen(traceback_needles[NEEDLE_HEADER])};
    Text type;
    Text message;
    if (text_ends(before, "Error: ") && exception_parse(rank_prefix_skip(before), true, &type, &message))
        traceback->worker = true;
}

static void traceback_frame(Traceback *traceback, Text line, size_t start, const Frame *frame)
{
    if (!traceback->open)
        traceback_begin(traceback);
    size_t before = start >= 2 ? start - 2 : 0; /* frames are indented by two */
    if (before < sizeof traceback->prefix) {
        memcpy(traceback->prefix, line.data, before);
        traceback->prefix_size = before;
    }
    traceback->inner = *frame;
    if (!frame_is_library(frame))
        traceback->user = *frame;
    traceback->feeder |=
        strcmp(frame->function, "_feed") == 0 && text_ends(text_of(frame->file), "multiprocessing/queues.py");
    traceback->background |= strcmp(frame->function, "producer") == 0 &&
                             text_ends(text_of(frame->file), "multi_threaded_augmenter.py");
}

static LineKind traceback_exception(Traceback *traceback, Text type, Text message, PyException *ret)
{
    PyException exception = {
        .type = type,
        .message = message,
        .wrapper = text_starts(message, "Caught ") && text_contains(message, " in "),
        .ignored = traceback->ignored,
        .worker = traceback->worker || (traceback->open && (traceback->feeder || traceback->background)),
        .feeder = traceback->open && traceback->feeder,
        .background = traceback->open && traceback->background,
        .chain = traceback->chain,
    };
    if (traceback->open) {
        exception.inner = traceback->inner;
        exception.user = traceback->user;
    }
    traceback->open = false;
    traceback->ignored = false;
    traceback->chain = CHAIN_NONE;
    traceback->worker = exception.wrapper && text_contains(message, "DataLoader worker");
    traceback->was_worker = exception.worker;
    *ret = exception;
    return LINE_EXCEPTION;
}

LineKind traceback_line(Traceback *traceback, Text line, const NeedleSet *hits, PyException *ret)
{
    Text type;
    Text message;

    if (needle_set_has(hits, NEEDLE_HEADER)) {
        traceback_header(traceback, line);
        return LINE_INSIDE;
    }
    if (needle_set_has(hits, NEEDLE_FRAME)) {
        Frame frame;
        size_t start = 0;
        FrameStyle style = frame_parse(line, &start, &frame);
        if (style == FRAME_FAULTHANDLER) {
            if (traceback->fatal_pending && traceback->fatal.file[0] == '\0')
                traceback->fatal = frame;
            traceback->fatal_pending = false;
            return LINE_INSIDE;
        }
        if (style == FRAME_TRACEBACK) {
            traceback_frame(traceback, line, start, &frame);
            needle_set_join(&traceback->seen, hits);
            return LINE_INSIDE;
        }
    }
    if (needle_set_has(hits, NEEDLE_CAUSE) || needle_set_has(hits, NEEDLE_HANDLING)) {
        traceback->chain = needle_set_has(hits, NEEDLE_CAUSE) ? CHAIN_CAUSE : CHAIN_HANDLING;
        traceback->worker |= traceback->was_worker;
    }
    if (needle_set_has(hits, NEEDLE_IGNORED))
        traceback->ignored = true;
    if (needle_set_has(hits, NEEDLE_FATAL_STACK))
        traceback->fatal_pending = true;

    if (traceback->open) {
        bool fits = prefix_fits(traceback, line);
        Text own = fits ? text_skip(line, traceback->prefix_size) : line;
        if (text_trim(own).size == 0)
            return LINE_INSIDE;
        if (fits && (own.data[0] == ' ' || own.data[0] == '\t')) {
            needle_set_join(&traceback->seen, hits);
            return LINE_INSIDE;
        }
        if (exception_parse(own, fits && !traceback->foreign, &type, &message))
            return traceback_exception(traceback, type, message, ret);
        traceback->foreign = true;
        if (++traceback->waited > FOREIGN_LINES_MAX)
            traceback->open = false;
        return LINE_OTHER;
    }
    if ((needle_set_has(hits, NEEDLE_ERROR) || needle_set_has(hits, NEEDLE_EXCEPTION) ||
         needle_set_has(hits, NEEDLE_INTERRUPT)) &&
        exception_parse(rank_prefix_skip(line), false, &type, &message))
        return traceback_exception(traceback, type, message, ret);
    return LINE_OTHER;
}

bool stack_frame(Text stack, Frame *ret)
{
    /* Only a stack of several threads marks the one that faulted. */
    (void)text_after(stack, traceback_needles[NEEDLE_FATAL_STACK], &stack);
    TEXT_FOR_EACH_LINE (line, stack) {
        Frame frame;
        size_t start = 0;
        if (frame_parse(line, &start, &frame) == FRAME_FAULTHANDLER && frame.file[0]) {
            *ret = frame;
            return true;
        }
    }
    return false;
}
