/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python tracebacks in a log: which lines belong to one, and which exception ends it. Lines are read one by
 * one; other processes may write between them, and a launcher may put a prefix ("[rank0]: ") before each.
 */
#pragma once

#include "multi-search.h"
#include "text.h"

/* The literals by which lines of a traceback are recognised. The reader puts them first into its MultiSearch,
 * so that each is known by its number here. */
typedef enum TracebackNeedle {
    NEEDLE_HEADER,
    NEEDLE_FRAME,
    NEEDLE_ERROR,
    NEEDLE_EXCEPTION,
    NEEDLE_INTERRUPT,
    NEEDLE_CAUSE,
    NEEDLE_HANDLING,
    NEEDLE_IGNORED,
    NEEDLE_FATAL_STACK,
    TRACEBACK_NEEDLES,
} TracebackNeedle;

extern const char *const traceback_needles[TRACEBACK_NEEDLES];

typedef struct Frame {
    char file[200]; /* "" for none */
    uint32_t line;
    char function[80];
} Frame;

typedef enum Chain {
    CHAIN_NONE,
    CHAIN_CAUSE,    /* raised because of the exception before ("direct cause") */
    CHAIN_HANDLING, /* raised while the exception before was handled */
} Chain;

typedef struct Traceback {
    bool open;       /* frames were seen, but not the exception yet */
    bool foreign;    /* lines of other processes came in between */
    unsigned waited; /* how many */
    char prefix[48]; /* before each line, "" mostly */
    size_t prefix_size;
    Frame inner;     /* the innermost frame so far */
    Frame user;      /* the innermost one outside of Python's library and installed packages */
    bool feeder;     /* in the thread that sends a worker's batches */
    bool background; /* in a worker of batchgenerators, which prints its traceback itself */
    bool worker;     /* what follows was raised in a worker and is only passed on here */
    bool was_worker; /* the exception before was; one that is chained to it is too */
    bool ignored;    /* what follows failed in a destructor: an after-effect */
    Chain chain;
    NeedleSet seen;     /* literals in the traceback's lines */
    bool fatal_pending; /* the stack of a fatal error begins with the next frame */
    Frame fatal;        /* where the first fatal error happened */
} Traceback;

typedef enum LineKind {
    LINE_OTHER,
    LINE_INSIDE,    /* header, frame or source of a traceback: says nothing by itself */
    LINE_EXCEPTION, /* ends a traceback, or looks like the end of one */
} LineKind;

typedef struct PyException {
    Text type; /* views of the line */
    Text message;
    bool wrapper; /* only passes on an exception of another process or thread, which follows */
    bool ignored;
    bool worker;
    bool feeder;
    bool background;
    Chain chain;
    Frame inner;
    Frame user;
} PyException;

/* ret is written for LINE_EXCEPTION. While traceback->open, every line must be passed; otherwise only lines
 * with a hit. */
LineKind traceback_line(Traceback *traceback, Text line, const NeedleSet *hits, PyException *ret);

/* The innermost frame of the thread that faulted, in a stack as faulthandler writes it. False: not found. */
bool stack_frame(Text stack, Frame *ret);
