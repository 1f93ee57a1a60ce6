/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a log in pieces of any size, and keeps what it says: which clues it contains and where, and the
 * exception that ended it. Memory use does not grow with the log.
 *
 * Lines end at LF, CR and NUL (PyTorch prints a NUL after its message about a bus error); only LF counts in
 * line numbers. Colour codes are skipped. A line of more than LOG_LINE_MAX bytes is read as several that
 * overlap. A message that a terminal or mail program wrapped in the middle of a literal is read as one line.
 */
#pragma once

#include "clues.h"
#include "logged-death.h"
#include "traceback.h"

enum {
    LOG_LINE_MAX = 8192,
    LOG_LINE_OVERLAP = 512,
    LOG_EXCERPT_MAX = 400,
    LOG_VICTIMS_MAX = 32,
    LOG_WRAP_MAX = 512
};

typedef struct ClueSeen {
    uint64_t count; /* 0: not seen */
    uint64_t first_line;
    uint64_t last_line;
    int pid;     /* the first that was named, 0: none */
    Frame where; /* of the first, when it was an exception with a traceback */
} ClueSeen;

/* A matching line, the first of its pattern. */
typedef struct KeptLine {
    Clue clue;
    uint64_t line;
    Text excerpt; /* raw bytes; for a long line the part around the match */
    bool cut_before;
    bool cut_after;
} KeptLine;

/* An exception that no pattern knows. */
typedef struct LoggedException {
    bool seen;
    bool feeder;
    bool background;
    uint64_t line;
    char type[128];
    char message[LOG_EXCERPT_MAX]; /* raw bytes, truncated */
    Frame inner;
    Frame user;
    bool cut;         /* the log ends before its message */
    char led_to[128]; /* the type of the exception that was raised because of it, "" for none */
} LoggedException;

/* A process that the OOM killer killed. */
typedef struct LoggedVictim {
    int pid;
    char comm[32];
    bool cgroup;
    bool candidate;      /* before 5.0 the kernel may kill a child of the process that it names first */
    uint64_t anon_bytes; /* U64_UNKNOWN */
    uint64_t shmem_bytes;
} LoggedVictim;

typedef struct LogFacts {
    uint64_t bytes;
    uint64_t lines;
    ClueSeen clues[CLUES];
    KeptLine *kept; /* in their order */
    size_t n_kept;
    LoggedException worker; /* the last that was raised in a worker */
    LoggedException plain;  /* the last that was raised elsewhere */
    LoggedVictim victims[LOG_VICTIMS_MAX];
    size_t n_victims;
    Frame fatal;                 /* where a fatal error (faulthandler) happened */
    bool df_seen;                /* of /dev/shm */
    unsigned shm_used_percent;   /* the highest that df printed */
    uint64_t shm_size_bytes;     /* the last that df or Ray printed; U64_UNKNOWN */
    uint64_t cgroup_limit_bytes; /* as the kernel printed it at an OOM kill; U64_UNKNOWN */
    unsigned torch_major;        /* 0: unknown */
    unsigned torch_minor;
} LogFacts;

/* "</torch_10497_3546569614_63832>", however it is quoted: the pid of its creator, and its number there (0:
 * it has none). False: the line names no segment of PyTorch. */
bool segment_read(Text line, int *ret_pid, uint64_t *ret_number);

typedef struct LogReader LogReader;

LogReader *log_reader_new(void); /* NULL: no memory */
void log_reader_free(LogReader *reader);
void log_reader_reset(LogReader *reader); /* forgets the log, keeps the compiled patterns */
int log_reader_feed(LogReader *reader, const char *bytes, size_t n); /* -ENOMEM */

/* Reads the last line, which may lack a newline. The facts are valid until the reader is reset or freed.
 * NULL: no memory. */
const LogFacts *log_reader_finish(LogReader *reader);
