/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
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
 * that is started after that gets a part of its own.
 *
 * fork copies the interpreter together with our state. `asked` is the process that asked, so a child does not
 * wait for a call that only its parent will get.
 *
 * An exception of our own never reaches the program, and one of the program's own always does: a signal
 * handler of the program may run, and raise, between two instructions of the part.
 */

typedef struct Object Object; /* PyObject */

#define PYTHON_FUNCTIONS(X)                                                                                  \
    X(int, Py_IsInitialized, (void))                                                                         \
    X(Object *, PyInterpreterState_Main, (void))                                                             \
    X(const char *, Py_GetVersion, (void))                                                                   \
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
    X(Object *, PyLong_FromUnsignedLongLong, (unsigned long long value))                                     \
    X(long, PyLong_AsLong, (Object * value))                                                                 \
    X(Object *, PyBytes_FromStringAndSize, (const char *bytes, ssize_t size))                                \
    X(int, PyBytes_AsStringAndSize, (Object * bytes, char **ret, ssize_t *ret_size))                         \
    X(Object *, PyByteArray_FromStringAndSize, (const char *bytes, ssize_t size))                            \
    X(Object *, PyMemoryView_FromMemory, (char *bytes, ssize_t size, int flags))                             \
    X(ssize_t, PyTuple_Size, (Object * tuple))                                                               \
    X(Object *, PyTuple_GetItem, (Object * tuple, ssize_t place))                                            \
    X(Object *, PyTuple_New, (ssize_t size))                                                                 \
    X(int, PyTuple_SetItem, (Object * tuple, ssize_t place, Object * value))                                 \
    X(Object *, PyErr_SetFromErrno, (Object * class))                                                        \
    X(void, PyErr_SetNone, (Object * class))                                                                 \
    X(Object *, PyErr_Occurred, (void))                                                                      \
    X(void, PyErr_Clear, (void))                                                                             \
    X(Object *, PyObject_GetAttrString, (Object * object, const char *name))

typedef struct Method { /* PyMethodDef */
    const char *name;
    Object *(*function)(Object *self, Object *arguments);
    int flags;
    const char *text;
} Method;

enum {
    METHOD_ARGUMENTS = 1,
    START_FILE = 257,
    VIEW_WRITE = 0x200
}; /* METH_VARARGS, Py_file_input, PyBUF_WRITE */

/* Where the part is kept, and what its messages refer to is found: where PyTorch's own messages look.
 * Programs that take modules out of sys.modules cannot do without this one. */
static const char home_name[] = "torch.multiprocessing.reductions";
static const char part_name[] = "_shmguard";

#define POINTER(type, name, parameters) static type(*name) parameters;
PYTHON_FUNCTIONS(POINTER)
static Object *(*PyInterpreterState_Get)(void); /* NULL before 3.9 */
static Object **PyExc_OSError;
static Object **PyExc_ValueError;

static bool is_off;          /* set by the constructor, once */
static atomic_bool is_found; /* the functions above are known */
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

static Object *part_listen(Object *self, Object *arguments)
{
    (void)self, (void)arguments;
    LaneName name = {0};
    if (guard_enter()) {
        const LaneName *ours = lane_listen();
        if (ours)
            name = *ours;
        guard_leave(false);
    }
    return PyBytes_FromStringAndSize(name.text, (ssize_t)name.n);
}

static Object *part_connect(Object *self, Object *arguments)
{
    (void)self;
    Object *bytes = NULL;
    char *text = NULL;
    ssize_t n = 0;
    LaneName name = {0};
    int pid = 0;
    uint64_t worker = 0;
    if (!PyArg_ParseTuple(arguments, "Oi", &bytes, &pid) || PyBytes_AsStringAndSize(bytes, &text, &n) < 0)
        return NULL;
    if (n > 0 && (size_t)n <= sizeof name.text && pid > 0 && guard_enter()) {
        name.n = (size_t)n;
        memcpy(name.text, text, name.n);
        worker = lane_connect(&name, pid);
        guard_leave(false);
    }
    return PyLong_FromUnsignedLongLong(worker);
}

static Object *part_send(Object *self, Object *arguments)
{
    (void)self;
    LaneFds fds = {0};
    ssize_t n = PyTuple_Size(arguments);
    uint64_t packet = 0;
    if (n > LANE_FDS_MAX)
        return PyLong_FromLong(0);
    for (; (ssize_t)fds.n < n; fds.n++)
        fds.fds[fds.n] = (int)PyLong_AsLong(PyTuple_GetItem(arguments, (ssize_t)fds.n));
    if (PyErr_Occurred())
        return NULL;
    if (guard_enter()) {
        packet = lane_send(&fds);
        guard_leave(false);
    }
    return PyLong_FromUnsignedLongLong(packet);
}

static Object *part_take(Object *self, Object *arguments)
{
    (void)self;
    LaneFds fds = {0};
    unsigned long long worker = 0;
    unsigned long long packet = 0;
    if (!PyArg_ParseTuple(arguments, "KK", &worker, &packet))
        return NULL;
    bool taken = false;
    errno = ECONNRESET;
    if (guard_enter()) {
        taken = lane_take(worker, packet, &fds);
        guard_leave(!taken);
    }
    if (!taken)
        return PyErr_SetFromErrno(*PyExc_OSError);
    Object *list = PyTuple_New((ssize_t)fds.n);
    for (size_t i = 0; i < fds.n; i++) {
        Object *number = list ? PyLong_FromLong(fds.fds[i]) : NULL;
        if (!number) { /* no memory */
            real_close(fds.fds[i]);
            continue;
        }
        PyTuple_SetItem(list, (ssize_t)i, number);
    }
    return list && !PyErr_Occurred() ? list : NULL;
}

static Object *part_memory(Object *self, Object *arguments)
{
    (void)self;
    unsigned long long address = 0;
    ssize_t size = 0;
    if (!PyArg_ParseTuple(arguments, "Kn", &address, &size))
        return NULL;
    if (address != 0 && size > 0)
        return PyMemoryView_FromMemory((char *)(uintptr_t)address, size, VIEW_WRITE);
    PyErr_SetNone(*PyExc_ValueError);
    return NULL;
}

static Object *part_optional(Object *self, Object *arguments)
{
    (void)self;
    int on = 0;
    if (!PyArg_ParseTuple(arguments, "p", &on))
        return NULL;
    budget_optional(on != 0);
    return PyLong_FromLong(0);
}

static Object *part_room(Object *self, Object *arguments)
{
    (void)self;
    ssize_t size = 0;
    return PyArg_ParseTuple(arguments, "n", &size) ? PyByteArray_FromStringAndSize(NULL, size) : NULL;
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

static void decline(LaneWhy why)
{
    atomic_fetch_or_explicit(&counters_reached()->lane_whys, 1U << (unsigned)why, memory_order_relaxed);
}

static Object *part_decline(Object *self, Object *arguments)
{
    (void)self;
    int why = 0;
    if (!PyArg_ParseTuple(arguments, "i", &why))
        return NULL;
    decline((LaneWhy)why);
    return PyLong_FromLong(0);
}

static Method methods[] = {
    {"listen", part_listen, METHOD_ARGUMENTS, NULL},     {"connect", part_connect, METHOD_ARGUMENTS, NULL},
    {"send", part_send, METHOD_ARGUMENTS, NULL},         {"take", part_take, METHOD_ARGUMENTS, NULL},
    {"memory", part_memory, METHOD_ARGUMENTS, NULL},     {"room", part_room, METHOD_ARGUMENTS, NULL},
    {"optional", part_optional, METHOD_ARGUMENTS, NULL}, {"count", part_count, METHOD_ARGUMENTS, NULL},
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

/* A new module with what the text defines, in home. */
static bool part_make(Object *home)
{
    Object *module = PyModule_New(part_name);
    Object *dict = module ? PyModule_GetDict(module) : NULL;
    bool done = dict && PyDict_SetItemString(dict, "__builtins__", PyEval_GetBuiltins()) == 0;
    for (size_t i = 0; done && i < sizeof methods / sizeof methods[0]; i++)
        done = dict_set_new(dict, methods[i].name, PyCFunction_NewEx(&methods[i], NULL, NULL));
    Object *code = done ? Py_CompileString(python_lane, "<shmguard>", START_FILE) : NULL;
    Object *result = code ? PyEval_EvalCode(code, dict, dict) : NULL;
    done = result && PyDict_SetItemString(home, part_name, module) == 0;
    if (result)
        Py_DecRef(result);
    if (code)
        Py_DecRef(code);
    if (module)
        Py_DecRef(module);
    return done;
}

/* False with an exception set: not the part's own, which it handles itself. */
static bool part_attend(Object *home)
{
    Object *part = PyDict_GetItemString(home, part_name);
    Object *attend = part ? PyDict_GetItemString(PyModule_GetDict(part), "attend") : NULL;
    Object *result = attend ? PyObject_CallObject(attend, NULL) : NULL;
    if (!result)
        return !PyErr_Occurred();
    if (PyObject_IsTrue(result) != 1)
        atomic_store(&is_over, true);
    Py_DecRef(result);
    return true;
}

/* CPython 3.8 to 3.13. The part's text runs in no other. */
static bool version_is_known(void)
{
    enum { LEAST = 8, MOST = 13 };
    const char *version = Py_GetVersion();
    long minor = strncmp(version, "3.", 2) == 0 ? strtol(version + 2, NULL, 10) : 0;
    return minor >= LEAST && minor <= MOST;
}

/*
 * What is raised here is the program's own: by a handler of a signal that came while the part ran, or for
 * lack of memory. It is passed on, as if it had come between two instructions of the program, and the next
 * semaphore tries again.
 */
static int called(void *unused)
{
    (void)unused;
    atomic_store(&asked, 0);
    Object *modules = PyImport_GetModuleDict();
    Object *home = modules ? PyDict_GetItemString(modules, home_name) : NULL;
    Object *names = home ? PyModule_GetDict(home) : NULL;
    if (!names || !PyDict_GetItemString(modules, "torch.utils.data._utils.worker"))
        return 0;
    if (!version_is_known()) {
        decline(LANE_PYTHON);
        atomic_store(&is_over, true);
        return 0;
    }
    bool there = PyDict_GetItemString(names, part_name) || part_make(names);
    return there && part_attend(names) ? 0 : -1;
}

/* Since 3.9 a call that is asked for in a subinterpreter is made in that one, which may end at any time. */
static bool interpreter_is_main(void)
{
    return !PyInterpreterState_Get || PyInterpreterState_Get() == PyInterpreterState_Main();
}

/* 3.8 complains on standard error about calls that are asked for while it ends; its main thread has stopped
 * by then. */
static bool interpreter_is_ending(void)
{
    Object *modules = PyInterpreterState_Get ? NULL : PyImport_GetModuleDict();
    Object *threading = modules ? PyDict_GetItemString(modules, "threading") : NULL;
    Object *names = threading ? PyModule_GetDict(threading) : NULL;
    Object *thread = names ? PyDict_GetItemString(names, "_main_thread") : NULL;
    Object *stopped = thread ? PyObject_GetAttrString(thread, "_is_stopped") : NULL;
    bool is = stopped && PyObject_IsTrue(stopped) == 1;
    if (stopped)
        Py_DecRef(stopped);
    if (PyErr_Occurred())
        PyErr_Clear();
    return is;
}

/* Threads that come here at the same time store the same. */
static bool functions_find(void)
{
    if (atomic_load_explicit(&is_found, memory_order_acquire))
        return true;
    bool all = true;
#define FIND(type, name, parameters) all = all && (name = (type(*) parameters)python_symbol(#name));
    PYTHON_FUNCTIONS(FIND)
    PyInterpreterState_Get = (Object * (*)(void)) python_symbol("PyInterpreterState_Get");
    all = all && (PyExc_OSError = (Object **)python_symbol("PyExc_OSError")) &&
          (PyExc_ValueError = (Object **)python_symbol("PyExc_ValueError"));
    atomic_store_explicit(&is_found, all, memory_order_release);
    return all;
}

static bool interpreter_is_ours(void)
{
    return functions_find() && Py_IsInitialized() && PyGILState_GetThisThreadState() && PyGILState_Check() &&
           interpreter_is_main() && !interpreter_is_ending();
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
