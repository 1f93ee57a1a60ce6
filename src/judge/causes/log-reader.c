/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "arena.h"
#include "log-reader.h"
#include "units.h"

/* Within so many lines before the end of a log, the message of a source line that raises may be missing. */
enum { LINES_CUT = 2 };

static const char ESCAPE = '\x1b';
static const char line_stops[] = {'\n', '\r', '\0', '\x1b'};

/* A compiled pattern. Literals are numbers in the reader's MultiSearch. */
typedef struct Rule {
    NeedleSet all;
    NeedleSet unless;
    NeedleSet above;
    bool seen;
} Rule;

typedef enum EscapeState {
    ESCAPE_NONE,
    ESCAPE_BEGUN,    /* after ESC */
    ESCAPE_SEQUENCE, /* after ESC [ */
} EscapeState;

struct LogReader {
    MultiSearch *needles;
    const char *literals[NEEDLES_MAX];
    size_t n_literals;
    Rule *rules; /* one per pattern */
    NeedleSet death_needles;
    bool death_seen[DEATH_WORDINGS][DEATH_SIGNALS];
    NeedleSet rule_needles; /* all but those that only mark tracebacks */

    uint32_t state;
    EscapeState escape;
    Buffer line;    /* the part of the current line that is not in the piece being fed */
    NeedleSet hits; /* in the current line */
    bool hit_fresh; /* one of them is not in the overlap with the part read before */
    bool continued; /* the current line began before */
    Buffer wrapped; /* the end of the line before, if it may go on in this one */
    uint32_t wrapped_state;
    bool wrapped_colon; /* it ends with a colon, and with half of what a pattern wants */
    bool spoken;        /* a pattern knew the current line */

    Traceback traceback;
    LoggedException *last_exception; /* NULL if a pattern knew it */
    LoggedException passed_on;       /* "Caught X in …": seen until the exception itself follows */
    bool passed_on_worker;
    Buffer raise; /* the source line that raised something, until its message follows */
    uint64_t raise_line;
    Arena arena;
    LogFacts facts;
};

/* Backs out of the middle of a UTF-8 character. */
static size_t utf8_boundary(Text a, size_t n)
{
    size_t back = n;
    while (back > 0 && back < a.size && n - back < 3 && ((unsigned char)a.data[back] & 0xC0) == 0x80)
        back--;
    return back;
}

static void text_copy(Text from, char *to, size_t size)
{
    size_t n = utf8_boundary(from, MIN(from.size, size - 1));
    if (n > 0)
        memcpy(to, from.data, n);
    to[n] = '\0';
}

/* False for a number that a person has divided by commas: "153,700kB". */
static bool number_after(Text line, const char *literal, uint64_t *ret)
{
    Text rest;
    if (!text_after(line, literal, &rest))
        return false;
    Text digits = text_digits(rest);
    rest = text_skip(rest, digits.size);
    bool divided = rest.size > 1 && rest.data[0] == ',' && isdigit((unsigned char)rest.data[1]);
    return !divided && text_u64(digits, 10, ret) == 0;
}

/* There is room for all of them: patterns.c counts them. */
static size_t literal_number(LogReader *reader, const char *literal)
{
    for (size_t i = 0; i < reader->n_literals; i++)
        if (strcmp(reader->literals[i], literal) == 0)
            return i;
    assert(reader->n_literals < NEEDLES_MAX);
    reader->literals[reader->n_literals] = literal;
    return reader->n_literals++;
}

static void literal_add(LogReader *reader, const char *literal, NeedleSet *set)
{
    if (literal)
        needle_set_add(set, literal_number(reader, literal));
}

static int rules_compile(LogReader *reader)
{
    for (size_t i = 0; i < TRACEBACK_NEEDLES; i++)
        reader->literals[reader->n_literals++] = traceback_needles[i];
    for (size_t i = 0; logged_death_needle(i); i++)
        literal_add(reader, logged_death_needle(i), &reader->death_needles);
    reader->rule_needles = reader->death_needles;
    for (size_t i = 0; i < n_patterns; i++) {
        Rule *rule = &reader->rules[i];
        literal_add(reader, patterns[i].needle, &rule->all);
        literal_add(reader, patterns[i].also, &rule->all);
        literal_add(reader, patterns[i].unless, &rule->unless);
        literal_add(reader, patterns[i].above, &rule->above);
        needle_set_join(&reader->rule_needles, &rule->all);
    }
    return multi_search_new(reader->literals, reader->n_literals, line_stops, sizeof line_stops,
                            &reader->needles);
}

LogReader *log_reader_new(void)
{
    LogReader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    reader->rules = calloc(n_patterns, sizeof *reader->rules);
    size_t most = n_patterns + (size_t)DEATH_WORDINGS * DEATH_SIGNALS;
    reader->facts.kept = calloc(most, sizeof *reader->facts.kept);
    if (!reader->rules || !reader->facts.kept || rules_compile(reader) < 0) {
        log_reader_free(reader);
        return NULL;
    }
    log_reader_reset(reader);
    return reader;
}

void log_reader_free(LogReader *reader)
{
    if (!reader)
        return;
    multi_search_free(reader->needles);
    free(reader->rules);
    free(reader->facts.kept);
    buffer_free(&reader->line);
    buffer_free(&reader->wrapped);
    buffer_free(&reader->raise);
    arena_free(&reader->arena);
    free(reader);
}

static void line_begin(LogReader *reader)
{
    buffer_clear(&reader->line);
    reader->hits = (NeedleSet){0};
    reader->hit_fresh = false;
    reader->continued = false;
    reader->spoken = false;
    reader->state = 0;
}

void log_reader_reset(LogReader *reader)
{
    line_begin(reader);
    reader->escape = ESCAPE_NONE;
    reader->traceback = (Traceback){0};
    reader->last_exception = NULL;
    reader->passed_on.seen = false;
    buffer_clear(&reader->raise);
    for (size_t i = 0; i < n_patterns; i++)
        reader->rules[i].seen = false;
    memset(reader->death_seen, 0, sizeof reader->death_seen);
    buffer_clear(&reader->wrapped);
    arena_free(&reader->arena);
    reader->facts = (LogFacts){
        .kept = reader->facts.kept,
        .shm_size_bytes = U64_UNKNOWN,
        .cgroup_limit_bytes = U64_UNKNOWN,
    };
}

/* A line that shows the source of a message, not the message: "raise RuntimeError('DataLoader worker (pid…".
 */
static bool line_is_source(Text line)
{
    Text rest = line;
    while (text_after(rest, "raise ", &rest))
        if (rest.size > 0 && isupper((unsigned char)rest.data[0]))
            return true;
    return false;
}

/* "_63832", or "-63832" as people copy it. */
static bool name_number(Text *text, uint64_t *ret)
{
    if (!text_starts(*text, "_") && !text_starts(*text, "-"))
        return false;
    Text digits = text_digits(text_skip(*text, 1));
    *text = text_skip(*text, digits.size + 1);
    return text_u64(digits, 10, ret) == 0;
}

bool segment_read(Text line, int *ret_pid, uint64_t *ret_number)
{
    Text rest = line;
    while (text_after(rest, "/torch", &rest)) {
        Text name = rest;
        uint64_t pid = 0;
        uint64_t random = 0;
        if (!name_number(&name, &pid) || pid == 0 || pid > INT32_MAX || !name_number(&name, &random))
            continue;
        *ret_pid = (int)pid;
        if (!name_number(&name, ret_number))
            *ret_number = 0;
        return true;
    }
    return false;
}

static int line_pid(Text line, PatternPid how)
{
    static const char *const of_line[] = {
        "(pid(s) ",  "(pid ",           "(pid: ", "(pid:",       "illed process ", "ill process ",
        "with PID ", "reaped process ", ",pid=",  "to process ", ": Process ",     "by PID "};
    int pid = 0;
    uint64_t number = 0;
    if (how == PID_FILE)
        return segment_read(line, &pid, &number) ? pid : 0;
    for (size_t i = 0; how == PID_LINE && i < ARRAY_SIZE(of_line); i++) {
        Text rest;
        if (text_after(line, of_line[i], &rest) && text_pid(text_digits(rest), &pid) == 0)
            return pid;
    }
    return 0;
}

/* A line of the clue that was kept before is replaced if `instead`. needle may be NULL. */
static int line_keep(LogReader *reader, Clue clue, const char *needle, Text line, bool instead)
{
    size_t start = 0;
    size_t size = line.size;
    if (size > LOG_EXCERPT_MAX) {
        const char *found = needle ? memmem(line.data, line.size, needle, strlen(needle)) : NULL;
        size_t at = found ? (size_t)(found - line.data) : 0;
        start = utf8_boundary(line, at > LOG_EXCERPT_MAX / 4 ? at - LOG_EXCERPT_MAX / 4 : 0);
        size = utf8_boundary(text_skip(line, start), MIN(line.size - start, (size_t)LOG_EXCERPT_MAX));
    }
    char *copy = arena_copy(&reader->arena, line.data + start, size);
    if (!copy)
        return -ENOMEM;
    KeptLine *slot = NULL;
    for (size_t i = 0; instead && i < reader->facts.n_kept; i++)
        if (reader->facts.kept[i].clue == clue)
            slot = &reader->facts.kept[i];
    if (!slot)
        slot = &reader->facts.kept[reader->facts.n_kept++];
    *slot = (KeptLine){
        .clue = clue,
        .line = reader->facts.lines + 1,
        .excerpt = {copy, size},
        .cut_before = start > 0 || reader->continued,
        .cut_after = start + size < line.size,
    };
    return 0;
}

/* What a line says, and how. */
typedef struct LineMatch {
    Clue clue;
    const char *needle; /* or NULL */
    int pid;
    bool *kept; /* a line that says it this way was kept before */
} LineMatch;

/* torchrun lists all ranks that failed, and the first of them at the end. */
static bool is_root_cause(const LogReader *reader)
{
    enum { REPORT_LINES = 8 };
    const ClueSeen *seen = &reader->facts.clues[CLUE_ROOT_CAUSE];
    return seen->count > 0 && reader->facts.lines + 1 - seen->last_line <= REPORT_LINES;
}

static int match_record(LogReader *reader, const LineMatch *match, Text line, const PyException *exception)
{
    ClueSeen *seen = &reader->facts.clues[match->clue];
    uint64_t number = reader->facts.lines + 1;
    if (!*match->kept) {
        int r = line_keep(reader, match->clue, match->needle, line, false);
        if (r < 0)
            return r;
        *match->kept = true;
    }
    if (seen->count++ == 0) {
        seen->first_line = number;
        if (exception)
            seen->where = exception->user.file[0] ? exception->user : exception->inner;
    }
    seen->last_line = number;
    if (seen->pid == 0 || (match->pid != 0 && is_root_cause(reader)))
        seen->pid = match->pid;
    return 0;
}

static LoggedVictim *victim_slot(LogFacts *facts, int pid)
{
    for (size_t i = 0; i < facts->n_victims; i++)
        if (facts->victims[i].pid == pid)
            return &facts->victims[i];
    LoggedVictim *last = facts->n_victims > 0 ? &facts->victims[facts->n_victims - 1] : NULL;
    if (last && last->candidate) {
        last->pid = pid;
        return last;
    }
    if (facts->n_victims == LOG_VICTIMS_MAX)
        return NULL;
    LoggedVictim *victim = &facts->victims[facts->n_victims++];
    *victim = (LoggedVictim){.pid = pid, .anon_bytes = U64_UNKNOWN, .shmem_bytes = U64_UNKNOWN};
    return victim;
}

/* "Memory cgroup out of memory: Killed process 12 (python) total-vm:…, anon-rss:398732kB, …, shmem-rss:0kB"
 */
static void victim_note(LogFacts *facts, Text line, int pid, bool cgroup)
{
    LoggedVictim *victim = pid == 0 ? NULL : victim_slot(facts, pid);
    if (!victim)
        return;
    victim->cgroup |= cgroup;
    victim->candidate = text_contains(line, "or sacrifice child");
    Text rest;
    Text name;
    if ((text_after(line, "process ", &rest) && text_after(rest, "(", &rest) &&
         text_until(&rest, ')', &name)) ||
        (text_after(line, ",task=", &rest) && text_until(&rest, ',', &name)))
        text_copy(name, victim->comm, sizeof victim->comm);
    if (text_contains(line, "oom_reaper")) /* its numbers are those after the kill */
        return;
    uint64_t kib = 0;
    if (number_after(line, "anon-rss:", &kib) && kib < UINT64_MAX >> 11)
        victim->anon_bytes = kib * 1024;
    if (number_after(line, "shmem-rss:", &kib) && kib < UINT64_MAX >> 11)
        victim->shmem_bytes = kib * 1024;
}

/* "tmpfs   64M   63M  1.0M  99% /dev/shm". True: /dev/shm is fuller than in all lines before. */
static bool df_note(LogFacts *facts, Text line)
{
    Text fields[5];
    Text rest = line;
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (!text_word(&rest, &fields[i]))
            return false;
    Text percent = fields[4];
    uint32_t used = 0;
    uint64_t size = 0;
    if (!text_ends(percent, "%") || text_u32((Text){percent.data, percent.size - 1}, 10, &used) < 0 ||
        used > 100)
        return false;
    bool fuller = !facts->df_seen || used > facts->shm_used_percent;
    facts->df_seen = true;
    facts->shm_used_percent = MAX(facts->shm_used_percent, used);
    if (size_parse(fields[1], &size) == 0 && !isdigit((unsigned char)fields[1].data[fields[1].size - 1]))
        facts->shm_size_bytes = size;
    return fuller;
}

static void version_note(LogFacts *facts, Text line, const char *needle)
{
    Text rest;
    uint32_t major = 0;
    uint32_t minor = 0;
    if (!text_after(line, needle, &rest))
        return;
    Text digits = text_digits(rest);
    if (text_u32(digits, 10, &major) < 0 || major == 0 || major > 99)
        return;
    rest = text_skip(rest, digits.size);
    if (text_starts(rest, ".") && text_u32(text_digits(text_skip(rest, 1)), 10, &minor) == 0 &&
        minor < 1000) {
        facts->torch_major = major;
        facts->torch_minor = minor;
    }
}

/* Numbers and names that a line contains. */
static int match_details(LogReader *reader, const LineMatch *match, Text line)
{
    LogFacts *facts = &reader->facts;
    uint64_t kib = 0;
    uint64_t bytes = 0;
    Text rest;
    if (match->clue == CLUE_OOM_CGROUP || match->clue == CLUE_OOM_MACHINE || match->clue == CLUE_OOM_SOME)
        victim_note(facts, line, match->pid, match->clue == CLUE_OOM_CGROUP);
    else if (match->clue == CLUE_DF)
        return df_note(facts, line) ? line_keep(reader, CLUE_DF, match->needle, line, true) : 0;
    else if (match->clue == CLUE_VERSION)
        version_note(facts, line, match->needle);
    else if (match->clue == CLUE_OBJECT_STORE_SLOW && number_after(line, "has only ", &bytes))
        facts->shm_size_bytes = bytes;
    else if (match->clue == CLUE_CGROUP_USAGE && text_after(line, "memory: usage ", &rest) &&
             number_after(rest, "limit ", &kib) && kib < UINT64_MAX >> 11)
        facts->cgroup_limit_bytes = kib * 1024;
    return 0;
}

static bool death_fits(LogReader *reader, Text line, LineMatch *ret)
{
    LoggedDeath death;
    if (!needle_set_meets(&reader->hits, &reader->death_needles) || !logged_death_read(line, &death))
        return false;
    *ret = (LineMatch){
        .clue = death.clue,
        .needle = logged_death_needle(death.wording),
        .pid = death.pid != 0 ? death.pid : line_pid(line, PID_LINE),
        .kept = &reader->death_seen[death.wording][death.signal],
    };
    return true;
}

/* Docker names a host after its container: 12 hexadecimal digits, "root@3f0c92d1ab47:/workspace#". */
static bool host_is_container(Text line, const char *needle)
{
    enum { CONTAINER_ID = 12 };
    Text rest;
    size_t n = 0;
    bool digit = false;
    if (!text_after(line, needle, &rest))
        return false;
    for (; n < rest.size && isxdigit((unsigned char)rest.data[n]); n++)
        digit |= isdigit((unsigned char)rest.data[n]) != 0;
    return n == CONTAINER_ID && digit && (n == rest.size || !isalnum((unsigned char)rest.data[n]));
}

/* One of the places where the line has the needle is not behind a negation. */
static bool is_affirmed(Text line, const char *needle)
{
    enum { CLAUSE = 24 };
    static const char *const negations[] = {"not ", "n't ", "no ", "without ", "没", "不", "未"};
    Text rest = line;
    while (text_after(rest, needle, &rest)) {
        size_t end = (size_t)(rest.data - line.data) - strlen(needle);
        Text clause = text_skip((Text){line.data, end}, end > CLAUSE ? end - CLAUSE : 0);
        bool denied = false;
        for (size_t i = 0; i < ARRAY_SIZE(negations); i++)
            denied |= text_contains(clause, negations[i]);
        if (!denied)
            return true;
    }
    return false;
}

static bool place_fits(const Pattern *pattern, Text line, LineKind kind)
{
    int pid;
    uint64_t number;
    switch (pattern->place) {
    case PLACE_EXCEPTION:
        return kind == LINE_EXCEPTION;
    case PLACE_HOST:
        return host_is_container(line, pattern->needle);
    case PLACE_SEGMENT:
        return segment_read(line, &pid, &number);
    case PLACE_AFFIRMED:
        return is_affirmed(line, pattern->needle);
    case PLACE_ANYWHERE:
    case PLACE_DEATH:
        break;
    }
    return true;
}

static bool pattern_fits(LogReader *reader, size_t i, Text line, LineKind kind, LineMatch *ret)
{
    const Pattern *pattern = &patterns[i];
    Rule *rule = &reader->rules[i];
    if (pattern->place == PLACE_DEATH)
        return death_fits(reader, line, ret);
    if (!needle_set_contains(&reader->hits, &rule->all) || needle_set_meets(&reader->hits, &rule->unless))
        return false;
    if (pattern->above &&
        (kind != LINE_EXCEPTION || !needle_set_contains(&reader->traceback.seen, &rule->above)))
        return false;
    if (!place_fits(pattern, line, kind))
        return false;
    *ret = (LineMatch){pattern->clue, pattern->needle, line_pid(line, pattern->pid), &rule->seen};
    return true;
}

/* Keeps an exception that no pattern knows. Of two in a chain the first is the reason, unless it was only
 * being handled when the second was raised: then it may have been harmless, and the second one counts. */
static void exception_note(LogReader *reader, const PyException *exception)
{
    if (exception->ignored)
        return;
    if (exception->wrapper) {
        reader->passed_on = (LoggedException){.seen = true, .line = reader->facts.lines + 1};
        reader->passed_on_worker = text_contains(exception->message, "DataLoader worker");
        text_copy(exception->type, reader->passed_on.type, sizeof reader->passed_on.type);
        return;
    }
    if (exception->chain == CHAIN_CAUSE && reader->last_exception) {
        text_copy(exception->type, reader->last_exception->led_to, sizeof reader->last_exception->led_to);
        return;
    }
    LoggedException *slot = exception->worker ? &reader->facts.worker : &reader->facts.plain;
    *slot = (LoggedException){
        .seen = true,
        .feeder = exception->feeder,
        .background = exception->background,
        .line = reader->facts.lines + 1,
        .inner = exception->inner,
        .user = exception->user,
    };
    text_copy(exception->type, slot->type, sizeof slot->type);
    text_copy(exception->message, slot->message, sizeof slot->message);
    reader->last_exception = slot;
}

/* Looks for what the line says. Background is looked for in silent lines, too. */
static int line_search(LogReader *reader, Text line, LineKind kind, bool silent, const PyException *exception)
{
    if (!needle_set_meets(&reader->hits, &reader->rule_needles))
        return 0;
    for (size_t i = 0; i < n_patterns; i++) {
        bool context = patterns[i].place != PLACE_DEATH && clue_infos[patterns[i].clue].tier == TIER_CONTEXT;
        LineMatch match;
        if ((!context && (silent || reader->spoken)) || !pattern_fits(reader, i, line, kind, &match))
            continue;
        int r = match_record(reader, &match, line, exception);
        if (r >= 0)
            r = match_details(reader, &match, line);
        if (r < 0)
            return r;
        reader->spoken |= !context;
    }
    return 0;
}

/* What stands in front of the header of a traceback: whole messages, if the newlines were lost. */
static Text header_before(Text line)
{
    const char *header = traceback_needles[NEEDLE_HEADER];
    Text after;
    if (!text_after(line, header, &after))
        return (Text){"", 0};
    return (Text){line.data, (size_t)(after.data - line.data) - strlen(header)};
}

static int line_read(LogReader *reader, Text line)
{
    PyException exception;
    LineKind kind =
        reader->continued ? LINE_OTHER : traceback_line(&reader->traceback, line, &reader->hits, &exception);
    bool source = line_is_source(line);
    bool silent = kind == LINE_INSIDE || source;
    if (kind == LINE_EXCEPTION) {
        reader->passed_on.seen = false;
        buffer_clear(&reader->raise);
    } else if (source && line.size <= LOG_WRAP_MAX) {
        buffer_clear(&reader->raise);
        reader->raise_line = reader->facts.lines;
        int r = buffer_append(&reader->raise, line.data, line.size);
        if (r < 0)
            return r;
    }
    Text before = header_before(line);
    if (before.size > 0 && !line_is_source(before)) {
        line = before;
        silent = false;
    }
    int r = line_search(reader, line, kind, silent, kind == LINE_EXCEPTION ? &exception : NULL);
    if (kind == LINE_EXCEPTION && reader->spoken)
        reader->last_exception = NULL;
    else if (kind == LINE_EXCEPTION && !silent)
        exception_note(reader, &exception);
    return r;
}

/* A literal begins in the line before and ends in this one, if `between` stands for the newline. */
static bool wrap_spans(const LogReader *reader, Text between, Text line)
{
    const Text parts[] = {between, line};
    uint32_t state = reader->wrapped_state;
    size_t read = 0;
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        const char *p = parts[i].data;
        const char *end = p + parts[i].size;
        while (p < end) {
            NeedlesEvent event = multi_search_scan(reader->needles, &state, &p, p + 1);
            if (event == NEEDLES_STOP || multi_search_depth(reader->needles, state) <= ++read)
                return false;
            if (event == NEEDLES_HIT && i == 1)
                return true;
        }
    }
    return false;
}

/* Adds the literals of a line that was put together. */
static void line_hits(LogReader *reader, Text line)
{
    uint32_t state = 0;
    const char *p = line.data;
    while (p < line.data + line.size)
        if (multi_search_scan(reader->needles, &state, &p, line.data + line.size) == NEEDLES_HIT)
            needle_set_join(&reader->hits, multi_search_hits(reader->needles, state));
}

/* Reads the line together with the end of the one before, if a literal reaches from one into the other. */
static int wrap_read(LogReader *reader, Text line)
{
    bool in_word = wrap_spans(reader, TEXT(""), line);
    if (!in_word && !reader->wrapped_colon && !wrap_spans(reader, TEXT(" "), line))
        return 0;
    int r = in_word ? 0 : buffer_append_text(&reader->wrapped, " ");
    if (r >= 0)
        r = buffer_append(&reader->wrapped, line.data, line.size);
    if (r < 0)
        return r;
    Text joined = {buffer_text(&reader->wrapped), reader->wrapped.size};
    NeedleSet own = reader->hits;
    line_hits(reader, joined);
    r = line_search(reader, joined, LINE_OTHER, line_is_source(joined), NULL);
    reader->hits = own;
    if (reader->spoken && reader->last_exception && reader->last_exception->line == reader->facts.lines)
        reader->last_exception->seen = false; /* it was half of this one */
    return r;
}

/* Keeps the end of the line if a literal begins there, or if it announces more, unless it is known already
 * what the line says. */
static int wrap_keep(LogReader *reader, Text line)
{
    buffer_clear(&reader->wrapped);
    if (reader->spoken || reader->continued)
        return 0;
    reader->wrapped_state = reader->state;
    reader->wrapped_colon =
        needle_set_meets(&reader->hits, &reader->rule_needles) && text_ends(text_trim(line), ":");
    if (!reader->wrapped_colon && multi_search_depth(reader->needles, reader->state) < 2)
        return 0;
    Text end = text_skip(line, line.size > LOG_WRAP_MAX ? line.size - LOG_WRAP_MAX : 0);
    return buffer_append(&reader->wrapped, end.data, end.size);
}

/* The line from the pieces kept and [start, end). */
static int line_finish(LogReader *reader, const char *start, const char *end)
{
    Text line = {start, (size_t)(end - start)};
    if (reader->line.size > 0) {
        int r = buffer_append(&reader->line, start, (size_t)(end - start));
        if (r < 0)
            return r;
        line = (Text){buffer_text(&reader->line), reader->line.size};
    }
    int r = 0;
    if (reader->wrapped.size > 0 && !reader->continued && !reader->traceback.open)
        r = wrap_read(reader, line);
    if (r >= 0 && !reader->spoken && (reader->hit_fresh || (reader->traceback.open && !reader->continued)))
        r = line_read(reader, line);
    return r < 0 ? r : wrap_keep(reader, line);
}

/*
 * The line is too long to keep: reads what there is as a line and starts another with its last bytes, which
 * are scanned again, so that a pattern across the cut is complete in one of the two.
 */
static int line_cut(LogReader *reader, const char *start, const char *end)
{
    int r = buffer_append(&reader->line, start, (size_t)(end - start));
    if (r < 0)
        return r;
    r = line_finish(reader, end, end);
    if (r < 0)
        return r;
    char overlap[LOG_LINE_OVERLAP];
    memcpy(overlap, reader->line.data + reader->line.size - sizeof overlap, sizeof overlap);
    line_begin(reader);
    reader->continued = true;
    const char *p = overlap;
    while (multi_search_scan(reader->needles, &reader->state, &p, overlap + sizeof overlap) == NEEDLES_HIT)
        needle_set_join(&reader->hits, multi_search_hits(reader->needles, reader->state));
    return buffer_append(&reader->line, overlap, sizeof overlap);
}

/* Skips the rest of a colour code. A byte that cannot belong to it ends it and is not consumed. */
static const char *escape_skip(LogReader *reader, const char *p, const char *end)
{
    while (p < end && reader->escape != ESCAPE_NONE) {
        unsigned char c = (unsigned char)*p;
        if (reader->escape == ESCAPE_BEGUN) {
            reader->escape = c == '[' ? ESCAPE_SEQUENCE : ESCAPE_NONE;
            if (c == '[')
                p++;
        } else if (c >= 0x20 && c <= 0x3F)
            p++;
        else {
            reader->escape = ESCAPE_NONE;
            if (c >= 0x40 && c <= 0x7E)
                p++;
        }
    }
    return p;
}

int log_reader_feed(LogReader *reader, const char *bytes, size_t n)
{
    if (n == 0)
        return 0;
    const char *p = bytes;
    const char *end = bytes + n;
    const char *start = p; /* of the part of the current line that is not in reader->line yet */
    int r = 0;
    reader->facts.bytes += n;
    while (p < end && r >= 0) {
        if (reader->escape != ESCAPE_NONE) {
            start = p = escape_skip(reader, p, end);
            continue;
        }
        size_t room = LOG_LINE_MAX - reader->line.size - (size_t)(p - start);
        const char *stop = (size_t)(end - p) < room ? end : p + room;
        switch (multi_search_scan(reader->needles, &reader->state, &p, stop)) {
        case NEEDLES_HIT:
            needle_set_join(&reader->hits, multi_search_hits(reader->needles, reader->state));
            reader->hit_fresh = true;
            break;
        case NEEDLES_STOP:
            if (p[-1] == ESCAPE) {
                r = buffer_append(&reader->line, start, (size_t)(p - 1 - start));
                reader->escape = ESCAPE_BEGUN;
            } else {
                r = line_finish(reader, start, p - 1);
                line_begin(reader);
                reader->facts.lines += p[-1] == '\n';
            }
            start = p;
            break;
        case NEEDLES_END:
            break;
        }
        if (r >= 0 && reader->line.size + (size_t)(p - start) >= LOG_LINE_MAX) {
            r = line_cut(reader, start, p);
            start = p;
        }
    }
    return r < 0 ? r : buffer_append(&reader->line, start, (size_t)(end - start));
}

/* "    raise ValueError(message" is all that is left of an exception. */
static void raise_note(LogReader *reader, Text line)
{
    Text rest;
    Text type;
    if (!reader->traceback.open || !text_after(line, "raise ", &rest) || !text_until(&rest, '(', &type))
        return;
    reader->facts.plain = (LoggedException){
        .seen = true,
        .cut = true,
        .line = reader->facts.lines + 1,
        .inner = reader->traceback.inner,
        .user = reader->traceback.user,
    };
    text_copy(text_trim(type), reader->facts.plain.type, sizeof reader->facts.plain.type);
}

/* The log ends before the exception that it announces: what is known of it decides. */
static int cut_exception(LogReader *reader)
{
    LoggedException *slot = reader->passed_on_worker ? &reader->facts.worker : &reader->facts.plain;
    if (reader->passed_on.seen) {
        *slot = reader->passed_on;
        if (reader->traceback.open) {
            slot->inner = reader->traceback.inner;
            slot->user = reader->traceback.user;
        }
    }
    if (reader->raise.size == 0 || reader->facts.lines - reader->raise_line > LINES_CUT)
        return 0;
    Text line = {buffer_text(&reader->raise), reader->raise.size};
    uint64_t lines = reader->facts.lines;
    reader->facts.lines = reader->raise_line;
    line_hits(reader, line);
    int r = line_search(reader, line, LINE_OTHER, false, NULL);
    if (!reader->spoken && !reader->passed_on.seen)
        raise_note(reader, line);
    reader->facts.lines = lines;
    return r;
}

const LogFacts *log_reader_finish(LogReader *reader)
{
    const char *nothing = "";
    int r = line_finish(reader, nothing, nothing);
    line_begin(reader);
    if (r >= 0)
        r = cut_exception(reader);
    reader->facts.fatal = reader->traceback.fatal;
    return r < 0 ? NULL : &reader->facts;
}
