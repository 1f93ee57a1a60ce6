/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>

#include "guard.h"

/*
 * What we need of this process's Python interpreter, if it has one: the constructor looks the functions up
 * among the symbols of the program. All but the first are in every Python since 3.4; some builds hide the
 * first.
 */
static void (*dump)(int fd, void *thread);
static void *(*look_up)(const char *name);
static void *(*thread_of_ours)(void);
static int (*have_lock)(void);
static void *(*save_thread)(void);
static void (*restore_thread)(void *thread);

void python_find(void *(*find)(const char *name))
{
    look_up = find;
    dump = (void (*)(int, void *))find("_Py_DumpTraceback");
    thread_of_ours = (void *(*)(void))find("PyGILState_GetThisThreadState");
    have_lock = (int (*)(void))find("PyGILState_Check");
    save_thread = (void *(*)(void))find("PyEval_SaveThread");
    restore_thread = (void (*)(void *))find("PyEval_RestoreThread");
}

void *python_symbol(const char *name)
{
    return look_up ? look_up(name) : NULL;
}

/* faulthandler calls these in its handlers: both read the interpreter's structures and take no lock. */
bool python_has_stack(void)
{
    return dump && thread_of_ours && thread_of_ours();
}

void python_write_stack(int fd)
{
    dump(fd, thread_of_ours());
}

/*
 * PyTorch creates tensors while it holds the interpreter's lock. A thread that waits for room must not keep
 * it: the thread that sends this worker's last batch needs it, and the trainer may be waiting for that very
 * batch. Every blocking call of Python lets other threads run in the same way; PyTorch holds no lock of its
 * own at this point.
 */
void *python_let_run(void)
{
    bool held =
        have_lock && save_thread && restore_thread && thread_of_ours && thread_of_ours() && have_lock();
    return held ? save_thread() : NULL;
}

void python_go_on(void *thread)
{
    if (thread)
        restore_thread(thread);
}
