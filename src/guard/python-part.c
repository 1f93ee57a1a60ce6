/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "guard.h"

/*
 * The guard's part in Python (python/lane.py): a module that exists only in memory. It is made through the
 * interpreter's own functions, which are looked up by name: nothing is linked, and no file or variable of the
 * program is touched. docs/lane.md says what it does.
 *
 * When: Python's multiprocessing makes semaphores "/mp-..." for every queue, and a DataLoader makes its
 * queues before its workers. At each semaphore the interpreter is asked to call us (Py_AddPendingCall), which
 * it does in its main thread, under its lock, between two instructions of the program. A process without such
 * semaphores pays nothing, and one without PyTorch's loader pays for a look into sys.modules.
 *
 * Nothing of the interpreter is kept between two calls, so it may be finalized at any time. An interpreter
 * that is started after that gets no part.
 *
 * fork copies the interpreter together with our state. `asked` is the process that asked, so a child does not
 * wait for a call that only its parent will get.
 *
 * An exception of our own never reaches the program. One that is not an Exception (Ctrl-C) is the program's
 * and is passed on.
 */

typedef struct Object Object; /* PyObject */

#define PYTHON_FUNCTIONS(X)                                                                                  \
    X(int, Py_IsInitialized, (void))                                                                         \
    X(Object *, PyGILState_GetThisThreadState, (void))                                                       \
    X(int, PyGILState_Check, (void))                                                                         \
    X(int, Py_AddPendingCall, (int (*call)(void *), void *argument))                                         \
    X(void, Py_DecRef, (Object * object))                                                                    \
    X(Object *, Py_CompileString, (const char *text, const char *file, int start))                           \
    X(Object *, PyEval_EvalCode, (Object * code, Object * globals, Object * locals))                         \
    X(Object *, PyEval_GetBuiltins, (void))                                                                  \
    X(Object *, PyImport_GetModuleDict, (void))                                                              \
    X(Object *, PyModule_New, (const char *name))                                                            \
    X(Object *, PyModule_GetDict, (Object * module))                                                         \
    X(Object *, PyDict_GetItemString, (Object * dict, const char *key))                                      \
    X(int, PyDict_SetItemString, (Object * dict, const char *key, Object *value))                            \
    X(int, PyObject_IsTrue, (Object * object))                                                               \
    X(Object *, PyObject_CallObject, (Object * function, Object * arguments))                                \
    X(Object *, PyCFunction_NewEx, (struct Method * method, Object * self, Object * module))                 \
    X(int, PyArg_ParseTuple, (Object * arguments, const char *format, ...))                                  \
    X(Object *, PyLong_FromLong, (long value))                                                               \
    X(Object *, PyBytes_FromStringAndSize, (const char *bytes, ssize_t size))                                \
    X(int, PyErr_ExceptionMatches, (Object * class))                                                         \
    X(Object *, PyErr_Occurred, (void))                                                                      \
    X(void, PyErr_Clear, (void))

typedef struct Method { /* PyMethodDef */
    const char *name;
    Object *(*function)(Object *self, Object *arguments);
    int flags;
    const char *text;
} Method;

enum { METHOD_ARGUMENTS = 1, START_FILE = 257 }; /* METH_VARARGS, Py_file_input */

static const char module_name[] = "_shmguard";

#define POINTER(type, name, parameters) static type(*name) parameters;
PYTHON_FUNCTIONS(POINTER)
static Object **PyExc_Exception;

static bool is_off;          /* set by the constructor, once */
static atomic_bool is_found; /* the functions above are known */
static atomic_bool is_made;  /* the module was made, once */
static atomic_bool is_over;  /* the part has declined, for good */
static _Atomic pid_t asked;  /* the process whose interpreter will call us; 0: none */

void python_part_start(void)
{
    const char *wish = getenv(PROTOCOL_LANE);
    is_off = wish && strcmp(wish, "off") == 0;
}

/* --- What the part may call --- */

/* A worker whose tensors all travel by value has no other reason to connect. */
static Counters *counters_reached(void)
{
    if (guard_enter()) {
        (void)broker_reach();
        guard_leave(false);
    }
    return guard_counters();
}

static Object *part_memory(Object *self, Object *arguments)
{
    (void)self;
    unsigned long long address = 0;
    ssize_t size = 0;
    return PyArg_ParseTuple(arguments, "Kn", &address, &size)
               ? PyBytes_FromStringAndSize((const char *)(uintptr_t)address, size)
               : NULL;
}

static Object *part_widen(Object *self, Object *arguments)
{
    (void)self;
    enum { PIPE_BYTES = 1 << 20 }; /* as much as any user may have */
    int fd = -1;
    if (!PyArg_ParseTuple(arguments, "i", &fd))
        return NULL;
    int size = real_fcntl(fd, F_GETPIPE_SZ, NULL);
    if (size >= 0 && size < PIPE_BYTES && real_fcntl(fd, F_SETPIPE_SZ, (void *)(uintptr_t)PIPE_BYTES) >= 0)
        size = PIPE_BYTES;
    return PyLong_FromLong(size > 0 ? size : 0);
}

static Object *part_unread(Object *self, Object *arguments)
{
    (void)self;
    int fd = -1;
    int bytes = 0;
    if (!PyArg_ParseTuple(arguments, "i", &fd))
        return NULL;
    return PyLong_FromLong(ioctl(fd, FIONREAD, &bytes) == 0 ? bytes : INT_MAX);
}

static Object *part_count(Object *self, Object *arguments)
{
    (void)self;
    int taken = 0;
    unsigned long long by_value = 0;
    unsigned long long others = 0;
    if (!PyArg_ParseTuple(arguments, "pKK", &taken, &by_value, &others))
        return NULL;
    Counters *counters = counters_reached();
    batch_by_lane();
    atomic_fetch_add_explicit(taken ? &counters->lane_batches : &counters->lane_declined, 1,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->lane_value_bytes, by_value, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->lane_segment_bytes, others, memory_order_relaxed);
    return PyLong_FromLong(0);
}

static Object *part_decline(Object *self, Object *arguments)
{
    (void)self;
    int why = 0;
    if (!PyArg_ParseTuple(arguments, "i", &why))
        return NULL;
    atomic_fetch_or_explicit(&counters_reached()->lane_whys, 1U << (unsigned)why, memory_order_relaxed);
    return PyLong_FromLong(0);
}

static Method methods[] = {
    {"memory", part_memory, METHOD_ARGUMENTS, NULL},   {"widen", part_widen, METHOD_ARGUMENTS, NULL},
    {"unread", part_unread, METHOD_ARGUMENTS, NULL},   {"count", part_count, METHOD_ARGUMENTS, NULL},
    {"decline", part_decline, METHOD_ARGUMENTS, NULL},
};

/* --- Its life --- */

static bool dict_set_new(Object *dict, const char *key, Object *value)
{
    bool done = value && PyDict_SetItemString(dict, key, value) == 0;
    if (value)
        Py_DecRef(value);
    return done;
}

/* A new module with what the text defines, in sys.modules. */
static bool module_make(Object *modules)
{
    Object *module = PyModule_New(module_name);
    Object *dict = module ? PyModule_GetDict(module) : NULL;
    bool done = dict && PyDict_SetItemString(dict, "__builtins__", PyEval_GetBuiltins()) == 0;
    for (size_t i = 0; done && i < sizeof methods / sizeof methods[0]; i++)
        done = dict_set_new(dict, methods[i].name, PyCFunction_NewEx(&methods[i], NULL, NULL));
    Object *code = done ? Py_CompileString(python_lane, "<shmguard>", START_FILE) : NULL;
    Object *result = code ? PyEval_EvalCode(code, dict, dict) : NULL;
    done = result && PyDict_SetItemString(modules, module_name, module) == 0;
    if (result)
        Py_DecRef(result);
    if (code)
        Py_DecRef(code);
    if (module)
        Py_DecRef(module);
    return done;
}

/* False: the part has declined, or an exception is set. */
static bool module_attend(Object *modules)
{
    Object *module = PyDict_GetItemString(modules, module_name);
    Object *dict =
        module ? PyModule_GetDict(module) : NULL; /* NULL: the program has put something else there */
    Object *attend = dict ? PyDict_GetItemString(dict, "attend") : NULL;
    Object *result = attend ? PyObject_CallObject(attend, NULL) : NULL;
    bool goes_on = result && PyObject_IsTrue(result) == 1;
    if (result)
        Py_DecRef(result);
    return goes_on;
}

static int called(void *unused)
{
    (void)unused;
    atomic_store(&asked, 0);
    Object *modules = PyImport_GetModuleDict();
    if (!modules || !PyDict_GetItemString(modules, "torch.utils.data._utils.worker"))
        return 0;
    bool there = atomic_exchange(&is_made, true) || module_make(modules);
    if (there && module_attend(modules))
        return 0;
    atomic_store(&is_over, true);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(*PyExc_Exception))
        return -1;
    PyErr_Clear();
    return 0;
}

/* Threads that come here at the same time store the same. */
static bool functions_find(void)
{
    if (atomic_load_explicit(&is_found, memory_order_acquire))
        return true;
    bool all = true;
#define FIND(type, name, parameters) all = all && (name = (type(*) parameters)python_symbol(#name));
    PYTHON_FUNCTIONS(FIND)
    all = all && (PyExc_Exception = (Object **)python_symbol("PyExc_Exception"));
    atomic_store_explicit(&is_found, all, memory_order_release);
    return all;
}

static bool interpreter_is_ours(void)
{
    return functions_find() && Py_IsInitialized() && PyGILState_GetThisThreadState() && PyGILState_Check();
}

static bool guard_is_on(void)
{
    bool on = guard_enter();
    if (on)
        guard_leave(false);
    return on;
}

void python_part_offer(const char *semaphore)
{
    pid_t self = getpid();
    if (strncmp(semaphore, "/mp-", 4) != 0 || is_off || atomic_load(&is_over) ||
        atomic_load(&asked) == self || !interpreter_is_ours() || !guard_is_on())
        return;
    atomic_store(&asked, self);
    if (Py_AddPendingCall(called, NULL) != 0) /* the queue is full: at the next semaphore, then */
        atomic_store(&asked, 0);
}
