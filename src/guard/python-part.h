/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard's parts in Python, and how the library talks to the interpreter. python-part.c has the argument.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "protocol.h"

typedef struct Object Object; /* PyObject */

typedef struct Method { /* PyMethodDef */
    const char *name;
    Object *(*function)(Object *self, Object *arguments);
    int flags;
    const char *text;
} Method;

enum { METHOD_ARGUMENTS = 1 }; /* METH_VARARGS */

/* What every part may call: of CPython 3.8 and later. */
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
    X(int, PyList_Append, (Object * list, Object * value))                                                   \
    X(Object *, PyTuple_New, (ssize_t size))                                                                 \
    X(int, PyTuple_SetItem, (Object * tuple, ssize_t place, Object * value))                                 \
    X(Object *, PyErr_SetFromErrno, (Object * class))                                                        \
    X(void, PyErr_SetNone, (Object * class))                                                                 \
    X(Object *, PyErr_Occurred, (void))                                                                      \
    X(void, PyErr_Clear, (void))                                                                             \
    X(int, PyErr_CheckSignals, (void))                                                                       \
    X(Object *, PyEval_GetFrame, (void))                                                                     \
    X(const char *, PyUnicode_AsUTF8, (Object * text))                                                       \
    X(Object *, PyObject_GetAttrString, (Object * object, const char *name))                                 \
    X(int, PyGILState_Ensure, (void))                                                                        \
    X(void, PyGILState_Release, (int state))

#define PYTHON_POINTER(type, name, parameters) extern type(*name) parameters;
PYTHON_FUNCTIONS(PYTHON_POINTER)
#undef PYTHON_POINTER
extern Object **PyExc_OSError;
extern Object **PyExc_ValueError;

/* A module of ours, which exists only in memory. Its text defines attend(), which is called at every
 * semaphore, or on request, until it returns something false: the part has declined, for good. */
typedef struct PythonPart {
    const char *text;
    const char *name;  /* of the module, in its home */
    const char *home;  /* the module of the program that keeps it */
    const char *needs; /* until this module and its home are imported, there is nothing to do */
    int minor_least;   /* CPython 3.x: the text runs in no other */
    int minor_most;
    Method *methods;         /* what the text may call; the last one has no name */
    bool (*is_wanted)(void); /* by the constructor, once */
    void (*decline)(void);   /* the interpreter is another one */
    bool on_request;         /* not at semaphores, but after python_part_request */
    bool in_loaders;         /* not before a DataLoader, or a spawned process, has made one */
} PythonPart;

extern const PythonPart lane_part;
extern const PythonPart freeze_part;
extern const PythonPart where_part;

/* The interpreter calls the part soon, if it can. `caller` is the code that has called us: it must be
 * Python's own, which takes the interpreter's lock next. Without the lock. */
void python_part_request(const PythonPart *part, const void *caller);

/* The texts, of python/NAME.py. */
extern const char python_lane[];
extern const char python_freeze[];
extern const char python_lane_worker[]; /* within the former */
extern const char python_where[];

int python_minor(void); /* of CPython 3.x */
Counters *counters_reached(void);

/* Of a switch in the environment. */
bool python_part_is_off(const char *variable);
