/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes plain data of the interpreter immortal, so that the processes that share its pages do not write to
 * them (docs/freeze.md).
 *
 * plain: lists, tuples, dicts, sets, strings, bytes, numbers, and instances of classes written in Python
 * that are found by their name and have no finalizer and no weak references.
 *
 * frozen: immortal (PEP 683), and out of the garbage collector's generations. It is never freed.
 *
 * closed: everything that an object reaches is plain. Only what is closed is frozen. So a frozen object keeps
 * nothing alive but frozen ones, whose sizes are counted: never a tensor, a file, a lock or a finalizer.
 */
#pragma once

#include "python-part.h"

#include <stdint.h>

/* What freezing calls: of CPython 3.12 and later. None runs code of the program for the objects that it is
 * called with. */
typedef int (*ObjectVisitor)(Object *object, void *context);
#define FREEZE_FUNCTIONS(X)                                                                                  \
    X(void, Py_IncRef, (Object * object))                                                                    \
    X(Object *, PyList_New, (ssize_t n))                                                                     \
    X(ssize_t, PyList_Size, (Object * list))                                                                 \
    X(Object *, PyList_GetItem, (Object * list, ssize_t place))                                              \
    X(ssize_t, PyDict_Size, (Object * dict))                                                                 \
    X(Object *, PyDict_GetItemWithError, (Object * dict, Object * key))                                      \
    X(int, PyDict_Next, (Object * dict, ssize_t * place, Object * *ret_key, Object * *ret_value))            \
    X(ssize_t, PySet_Size, (Object * set))                                                                   \
    X(void, PyObject_GC_UnTrack, (void *object))                                                             \
    X(int, PyObject_GC_IsTracked, (Object * object))                                                         \
    X(ssize_t, PyObject_Hash, (Object * object))                                                             \
    X(Object *, PyUnicode_FromString, (const char *text))                                                    \
    X(const char *, PyUnicode_AsUTF8AndSize, (Object * text, ssize_t * ret_size))                            \
    X(void *, PyType_GetSlot, (Object * type, int slot))                                                     \
    X(unsigned long, PyType_GetFlags, (Object * type))                                                       \
    X(Object *, PyType_GetDict, (Object * type))                                                             \
    X(Object *, PyType_GetQualName, (Object * type))                                                         \
    X(int, PyType_IsSubtype, (Object * type, Object * of))                                                   \
    X(Object *, PyWeakref_NewRef, (Object * object, Object * callback))                                      \
    X(Object *, PyWeakref_GetObject, (Object * reference))                                                   \
    X(int, PyOS_InterruptOccurred, (void))                                                                   \
    X(void, PyErr_SetInterrupt, (void))

#define FREEZE_TYPES(X)                                                                                      \
    X(PyBaseObject_Type)                                                                                     \
    X(PyType_Type)                                                                                           \
    X(PyModule_Type)                                                                                         \
    X(PyList_Type)                                                                                           \
    X(PyTuple_Type)                                                                                          \
    X(PyDict_Type)                                                                                           \
    X(PyODict_Type)                                                                                          \
    X(PySet_Type)                                                                                            \
    X(PyFrozenSet_Type)                                                                                      \
    X(PyUnicode_Type)                                                                                        \
    X(PyBytes_Type)                                                                                          \
    X(PyByteArray_Type)                                                                                      \
    X(PyLong_Type)                                                                                           \
    X(PyFloat_Type)                                                                                          \
    X(PyComplex_Type)                                                                                        \
    X(PyRange_Type)

#define FREEZE_POINTER(type, name, parameters) extern type(*name) parameters;
FREEZE_FUNCTIONS(FREEZE_POINTER)
#undef FREEZE_POINTER
#define FREEZE_POINTER(name) extern Object *name;
FREEZE_TYPES(FREEZE_POINTER)
#undef FREEZE_POINTER

/* What each object begins with, in the builds that objects_are_known accepts. */
typedef struct ObjectHead {
    uint64_t count;
    Object *type;
} ObjectHead;

static inline ObjectHead *object_head(Object *object)
{
    return (ObjectHead *)object;
}

/* An immortal object, or one that a walk is looking at. */
static inline bool count_is_immortal(uint64_t count)
{
    return (int32_t)count < 0;
}

/* --- freeze-types.c: what is known of an object --- */

typedef enum ObjectKind {
    OBJECT_UNKNOWN, /* not plain, and not looked into */
    OBJECT_TYPE,    /* of an object that is a class */
    OBJECT_TEXT,
    OBJECT_BYTES,
    OBJECT_NUMBER,
    OBJECT_LEAF, /* any other that refers to nothing */
    OBJECT_LIST,
    OBJECT_TUPLE,
    OBJECT_DICT,
    OBJECT_ARRAY, /* of objects; never frozen itself */
    OBJECT_OTHER, /* visited by its type's own function */
} ObjectKind;

/* Of the objects of one type. */
typedef struct ObjectType {
    Object *type; /* NULL: a free place of the table */
    ObjectKind kind;
    ObjectKind data; /* OBJECT_OTHER, OBJECT_LEAF: it has the data of this kind, too */
    bool is_plain;   /* may be frozen, if nothing refers to it weakly */
    bool is_set;
    ssize_t weak_offset; /* of the list of its weak references; 0: none */
    ssize_t dict_offset; /* of its attribute dict, which visit may pass over; 0: none */
    size_t basic_bytes;
    int (*visit)(Object *object, ObjectVisitor visitor, void *context); /* OBJECT_OTHER */
} ObjectType;

/* Objects of the program and of the part that show what is what: freeze.py has made them. */
typedef struct Specimens {
    Object *probe;     /* an instance of an ordinary class, whose only attribute is the next one */
    Object *attribute; /* a list */
    Object *owner;     /* another instance of that class, and its attribute dict */
    Object *names;
    Object *leaves; /* types: a tuple */
    Object *deque;  /* types */
    Object *default_dict;
    Object *array; /* an empty array of objects, of 2 times 3, and the address of its items; or None, 0 */
    unsigned long long array_address;
} Specimens;

enum { OBJECT_TYPES_MAX = 2048 };

typedef struct ObjectTypes {
    ObjectType types[OBJECT_TYPES_MAX]; /* by the type's address: an open hash table */
    size_t n;
    void *class_dealloc; /* of classes that are written in Python */
    void *class_visit;
    void *object_dtype; /* of arrays of objects */
    Object *basic_size; /* members of types */
    Object *weak_offset;
} ObjectTypes;

/* The functions and types above. False: the interpreter lacks one. */
bool freeze_functions_find(void);

/* Fills the table's beginning, and compares what this file believes about objects with objects whose state is
 * known. False: do not touch any. */
bool objects_are_known(ObjectTypes *types, const Specimens *specimens, uint64_t immortal);

/* Never NULL. */
const ObjectType *object_type(ObjectTypes *types, Object *type);

/* Whether the class is found by its name, so that keeping it keeps nothing else. */
bool class_is_in_module(Object *class);

/* Arrays of objects: how many items, and each; NULL for none. */
bool array_has_objects(const ObjectTypes *types, Object *array);
size_t array_items(Object *array);
Object *array_item(Object *array, size_t place);

/* The attribute dict of an instance, if the program has asked for it; else NULL. */
Object *instance_dict(const ObjectType *type, Object *instance);

/* Bytes of a leaf, or of a container with n items; computed, without what the allocator adds. */
size_t leaf_bytes(const ObjectType *type, Object *leaf);
size_t container_bytes(const ObjectType *type, Object *container, size_t n);

/* Computes a string's hash now, if it is short: looking it up writes it otherwise. */
void text_hash(Object *text);

/* --- freeze.c: the walk --- */

typedef enum WalkEnd {
    WALK_DONE,
    WALK_LIMIT,       /* of bytes */
    WALK_INTERRUPTED, /* by Ctrl-C, which the program has yet to see */
    WALK_NO_MEMORY,   /* for the walk itself */
} WalkEnd;

/* A frozen container that something mortal refers to. */
typedef struct FreezeRoot {
    Object *object;
    size_t n;      /* items, if that is known; else 0 */
    size_t frozen; /* of its items, as far as they are looked at */
    bool seen;     /* and it has lost nothing */
} FreezeRoot;

enum { FREEZE_ROOTS_MAX = 64 };

typedef struct FreezeRoots {
    FreezeRoot roots[FREEZE_ROOTS_MAX];
    size_t n;
    bool may_change; /* one of all such containers may be given more, as far as is known */
} FreezeRoots;

typedef struct FreezeWalk {
    uint64_t objects;
    uint64_t bytes;
    bool is_closed; /* the dataset itself */
} FreezeWalk;

/* Is told what was frozen since it was last told, and how many bytes are wanted next. How many may be frozen
 * until it is told again: as many as are wanted, or more, or what is left. */
typedef uint64_t (*FreezeMore)(uint64_t objects, uint64_t bytes, uint64_t wanted);

/*
 * Freezes what is closed below the dataset, but not the dataset. Called with the interpreter's lock, which it
 * keeps, and without any exception set; none is set afterwards. What was frozen before it ended early stays
 * frozen.
 */
WalkEnd freeze_walk(ObjectTypes *types, Object *dataset, uint64_t immortal, FreezeMore more, FreezeWalk *ret);

/* What is frozen below the dataset, as far as a short walk goes. */
void freeze_look(ObjectTypes *types, Object *dataset, uint64_t immortal, FreezeRoots *ret);

/* Whether those are still there and have lost nothing; true if a short walk cannot tell. */
bool freeze_is_intact(ObjectTypes *types, Object *dataset, uint64_t immortal, FreezeRoots *roots);
