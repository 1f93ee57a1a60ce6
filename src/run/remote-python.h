/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the interpreter of another process to run a file, as sys.remote_exec does (PEP 768), in CPython 3.14.
 *
 * The interpreter has a table of its own addresses. We write the file's path into its state, then that a file
 * waits, then that the main thread should look up; that thread runs the file between two instructions.
 *
 * All is written through one descriptor of /proc/PID/mem, which belongs to the memory of this program: after
 * an exec, or under another process that gets the same number, nothing can be written by it.
 */
#pragma once

#include "root.h"

typedef struct RemotePython {
    int memory;
    int minor;        /* of CPython 3.x */
    uint64_t breaker; /* where these are: what makes the main thread look up, */
    uint64_t pending; /* whether a file waits, */
    uint64_t path;    /* and its path, of so many bytes */
    uint64_t path_size;
} RemotePython;

#define REMOTE_PYTHON_NONE      ((RemotePython){.memory = -EBADF})
#define _cleanup_remote_python_ _cleanup_(remote_python_close)

/* What the table of an interpreter says; offsets in its structures. */
typedef struct RemoteOffsets {
    uint64_t finalizing; /* in the runtime, as the next one */
    uint64_t interpreters;
    uint64_t id; /* in an interpreter, as the next three */
    uint64_t next;
    uint64_t main_thread;
    uint64_t enabled;
    uint64_t breaker; /* in a thread, as the rest */
    uint64_t pending;
    uint64_t path;
    uint64_t path_size;
} RemoteOffsets;

enum { REMOTE_TABLE_BYTES = 760, REMOTE_MINOR = 14 };

/*
 * The table of an interpreter, of which n bytes are there. *ret_minor: its version, also if it is one that
 * we do not know (-EPROTONOSUPPORT). -ENOTSUP: a free-threaded or 32-bit build. -EBADMSG: no table. Pure.
 */
int remote_table_parse(const void *table, size_t n, int *ret_minor, RemoteOffsets *ret);

/*
 * -ESRCH: no such process. -EACCES, -EPERM: the kernel does not let us look into it. -ENOEXEC: it has no
 * interpreter that can be asked. -EPROTONOSUPPORT, -ENOTSUP: as above, with ret->minor. -ENOTTY: the
 * process was started with remote debugging switched off. -ESHUTDOWN: its interpreter is coming up, or ends.
 */
int remote_python_open(const Root *root, int pid, RemotePython *ret);
void remote_python_close(RemotePython *python);

/* path: as the process sees it. -EBUSY: another file waits. -ENAMETOOLONG, -EIO: it has ended. */
int remote_python_ask(const RemotePython *python, const char *path);

/* The file is not wanted any more. It may be running already. */
void remote_python_withdraw(const RemotePython *python);
