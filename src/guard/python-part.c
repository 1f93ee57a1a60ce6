/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guard.h"
#include "linker-versions.h"
#include "python-part.h"

/*
 * The guard's parts in Python (python/NAME.py): modules that exist only in memory. They are made through the
 * interpreter's own functions, which are looked up by name: nothing is linked, and no file or variable of the
 * program is touched. This file is about their life; what each may call is in python-NAME.c.
 *
 * When: Python's multiprocessing makes semaphores "/mp-..." for every queue, and a DataLoader makes its
 * queues before its workers. At each semaphore the interpreter is asked to call us (Py_AddPendingCall), which
 * it does in its main thread, under its lock, between two instructions of the program. A process without such
 * semaphores pays nothing. One whose semaphores are not a loader's pays for a look at its callers and one
 * into sys.modules: `import torch` alone imports the loader's modules, and progress bars make semaphores, so
 * it is the loader's own file among the callers that tells. A child that was spawned finds it in the file
 * that starts such children. A child that was forked inherits the answer. A part on request is called, in the
 * same way, when the supervisor asks for it: the request is made between two batches, where Python waits in
 * poll.
 *
 * Nothing of the interpreter is kept between two calls, so it may be finalized at any time. An interpreter
 * that is started after that gets a part of its own.
 *
 * fork copies the interpreter together with our state. `asked` is the process that asked, so a child does not
 * wait for a call that only its parent will get.
 *
 * An exception of our own never reaches the program, and one of the program's own always does: a signal
 * handler of the program may run, and raise, between two instructions of a part.
 */

#define POINTER(type, name, parameters) type(*name) parameters;
PYTHON_FUNCTIONS(POINTER)
Object **PyExc_OSError;
Object **PyExc_ValueError;
static Object *(*PyInterpreterState_Get)(void); /* NULL before 3.9 */

enum { START_FILE = 257 }; /* Py_file_input */

static const PythonPart *const parts[] = {&lane_part, &freeze_part, &where_part};
enum { PARTS = sizeof parts / sizeof parts[0] };

static atomic_bool is_over[PARTS]; /* not wanted, or it has declined for good */
static atomic_bool is_found;       /* the functions are known */
static atomic_bool is_loading;     /* a loader has made a semaphore here, or this process was spawned */
static _Atomic pid_t asked;        /* the process whose interpreter will call us; 0: none */
static _Atomic pid_t requested;    /* the same, for a part on request */

bool python_part_is_off(const char *variable)
{
    const char *wish = getenv(variable);
    return wish && strcmp(wish, "off") == 0;
}

int python_minor(void)
{
    const char *version = Py_GetVersion();
    return strncmp(version, "3.", 2) == 0 ? (int)strtol(version + 2, NULL, 10) : 0;
}

/* A worker whose tensors all travel by value, and a trainer that freezes, have no other reason to connect. */
Counters *counters_reached(void)
{
    if (guard_enter()) {
        (void)broker_reach();
        guard_leave(false);
    }
    return guard_counters();
}

void python_part_start(void)
{
    for (size_t i = 0; i < PARTS; i++)
        atomic_store(&is_over[i], !parts[i]->is_wanted());
}

static bool dict_set_new(Object *dict, const char *key, Object *value)
{
    bool done = value && PyDict_SetItemString(dict, key, value) == 0;
    if (value)
        Py_DecRef(value);
    return done;
}

/* A new module with what the text defines, in home. */
static bool part_make(const PythonPart *part, Object *home)
{
    Object *module = PyModule_New(part->name);
    Object *dict = module ? PyModule_GetDict(module) : NULL;
    bool done = dict && PyDict_SetItemString(dict, "__builtins__", PyEval_GetBuiltins()) == 0;
    for (Method *method = part->methods; done && method->name; method++)
        done = dict_set_new(dict, method->name, PyCFunction_NewEx(method, NULL, NULL));
    Object *code = done ? Py_CompileString(part->text, "<shmguard>", START_FILE) : NULL;
    Object *result = code ? PyEval_EvalCode(code, dict, dict) : NULL;
    done = result && PyDict_SetItemString(home, part->name, module) == 0;
    if (result)
        Py_DecRef(result);
    if (code)
        Py_DecRef(code);
    if (module)
        Py_DecRef(module);
    return done;
}

/* -1 with an exception set, which is not the part's own: it handles those itself. Else whether the part goes
 * on. */
static int part_attend(const PythonPart *part, Object *home)
{
    Object *module = PyDict_GetItemString(home, part->name);
    Object *attend = module ? PyDict_GetItemString(PyModule_GetDict(module), "attend") : NULL;
    Object *result = attend ? PyObject_CallObject(attend, NULL) : NULL;
    if (!result)
        return PyErr_Occurred() ? -1 : 1;
    int goes_on = PyObject_IsTrue(result);
    Py_DecRef(result);
    return goes_on;
}

/* As part_attend, for a part that may have to be made first. */
static int part_call(const PythonPart *part, Object *modules)
{
    Object *home = PyDict_GetItemString(modules, part->home);
    Object *names = home ? PyModule_GetDict(home) : NULL;
    if (!names || !PyDict_GetItemString(modules, part->needs))
        return 1;
    if (python_minor() < part->minor_least || python_minor() > part->minor_most) {
        part->decline();
        return 0;
    }
    bool there = PyDict_GetItemString(names, part->name) || part_make(part, names);
    return there ? part_attend(part, names) : -1;
}

static bool part_may_go_on(size_t i)
{
    return !parts[i]->on_request && !atomic_load(&is_over[i]) &&
           (!parts[i]->in_loaders || atomic_load(&is_loading));
}

/*
 * What is raised here is the program's own: by a handler of a signal that came while a part ran, or for lack
 * of memory. It is passed on, as if it had come between two instructions of the program, and the next
 * semaphore tries again.
 */
static int called(void *only)
{
    atomic_store(only ? &requested : &asked, 0);
    Object *modules = PyImport_GetModuleDict();
    int goes_on = 1;
    for (size_t i = 0; modules && goes_on >= 0 && i < PARTS; i++) {
        if (only ? parts[i] != only || atomic_load(&is_over[i]) : !part_may_go_on(i))
            continue;
        goes_on = part_call(parts[i], modules);
        if (goes_on == 0)
            atomic_store(&is_over[i], true);
    }
    return goes_on >= 0 ? 0 : -1;
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

/* The attribute, in the place of what it belongs to. */
static Object *attribute_take(Object *object, const char *name)
{
    Object *found = PyObject_GetAttrString(object, name);
    Py_DecRef(object);
    return found;
}

static bool frame_is_loader(Object *frame)
{
    static const char *const files[] = {"torch/utils/data/dataloader.py", "multiprocessing/spawn.py"};
    Object *code = PyObject_GetAttrString(frame, "f_code");
    Object *file = code ? attribute_take(code, "co_filename") : NULL;
    const char *text = file ? PyUnicode_AsUTF8(file) : NULL;
    bool is = false;
    for (size_t i = 0; text && i < sizeof files / sizeof files[0]; i++) {
        size_t n = strlen(files[i]);
        is = is || (strlen(text) >= n && strcmp(text + strlen(text) - n, files[i]) == 0);
    }
    if (file)
        Py_DecRef(file);
    return is;
}

/* Under the interpreter's lock: whether a loader, or the start of a spawned process, has led to this call. */
static bool caller_is_loader(void)
{
    enum { FRAMES_MAX = 64 };
    Object *first = PyErr_Occurred() ? NULL : PyEval_GetFrame(); /* not ours to release */
    if (!first)
        return false;
    bool is = frame_is_loader(first);
    Object *frame = PyObject_GetAttrString(first, "f_back");
    for (int i = 0; !is && frame && i < FRAMES_MAX; i++) {
        is = frame_is_loader(frame);
        frame = attribute_take(frame, "f_back"); /* that of None fails */
    }
    if (frame)
        Py_DecRef(frame);
    PyErr_Clear();
    return is;
}

static bool any_part_may_go_on(void)
{
    for (size_t i = 0; i < PARTS; i++)
        if (part_may_go_on(i))
            return true;
    return false;
}

static bool any_part_waits_for_a_loader(void)
{
    for (size_t i = 0; i < PARTS; i++)
        if (parts[i]->in_loaders && !atomic_load(&is_over[i]))
            return !atomic_load(&is_loading);
    return false;
}

void python_part_offer(const char *semaphore)
{
    pid_t self = getpid();
    bool waits = any_part_waits_for_a_loader();
    if (strncmp(semaphore, "/mp-", 4) != 0 || (!waits && !any_part_may_go_on()) ||
        (!waits && atomic_load(&asked) == self) || !interpreter_is_ours() || !guard_is_on())
        return;
    if (waits && caller_is_loader())
        atomic_store(&is_loading, true);
    if (!any_part_may_go_on() || atomic_load(&asked) == self)
        return;
    atomic_store(&asked, self);
    if (Py_AddPendingCall(called, NULL) != 0) /* the queue is full: at the next semaphore, then */
        atomic_store(&asked, 0);
}

static bool is_over_for_good(const PythonPart *part)
{
    size_t i = 0;
    while (i < PARTS && parts[i] != part)
        i++;
    return i == PARTS || atomic_load(&is_over[i]);
}

/*
 * Python's select module, the interpreter that has it built in, or the lane. It has released the
 * interpreter's lock around this call, and takes it again as soon as we return; or it is the lane, which only
 * looks and has kept the lock, so that taking it here is taking it twice. It holds no other lock. So we may
 * wait for that one here. If the interpreter is being finalized, taking it ends this thread, here as there.
 */
static bool caller_is_python(const void *caller)
{
    static const char *const names[] = {"select.", "libpython", "python"};
    static _Atomic(const void *) known; /* the linker need not be asked again */
    Dl_info info;
    Dl_info ours;
    if (caller == atomic_load(&known))
        return true;
    if (!dladdr(caller, &info) || !info.dli_fname)
        return false;
    if (dladdr((void *)python_part_request, &ours) && ours.dli_fbase == info.dli_fbase)
        return true;
    const char *slash = strrchr(info.dli_fname, '/');
    const char *file = slash ? slash + 1 : info.dli_fname;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(file, names[i], strlen(names[i])) == 0) {
            atomic_store(&known, caller);
            return true;
        }
    return false;
}

void python_part_request(const PythonPart *part, const void *caller)
{
    pid_t self = getpid();
    if (is_over_for_good(part) || atomic_load(&requested) == self || !functions_find() ||
        !Py_IsInitialized() || !PyGILState_GetThisThreadState() || !caller_is_python(caller))
        return;
    int state = PyGILState_Ensure();
    if (interpreter_is_main() && !interpreter_is_ending()) {
        atomic_store(&requested, self);
        if (Py_AddPendingCall(called, (void *)part) != 0)
            atomic_store(&requested, 0);
    }
    PyGILState_Release(state);
}
