/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "freeze.h"
#include "guard.h"

/*
 * Objects are reached through the interpreter's own functions. What is read and written directly is little,
 * and objects_are_known tries it on objects whose state is known:
 *
 *   of every object   its count and its type; where its type says so, its list of weak references
 *   of instances      their attribute dict. 3.13 does not visit it while the values are in the instance
 *   of strings        length, hash and kind;  of integers, the number of digits
 *   of numpy arrays   shape, strides, type and the address of the items: they are part of numpy's ABI
 *
 * A type is known by its address, or it is a class that was written in Python (class_is_written), and its
 * first base that was not written in Python is known by its address.
 */

#define DEFINE(type, name, parameters) type(*name) parameters;
FREEZE_FUNCTIONS(DEFINE)
#undef DEFINE
#define DEFINE(name) Object *name;
FREEZE_TYPES(DEFINE)
#undef DEFINE

bool freeze_functions_find(void)
{
    bool all = true;
#define FIND(type, name, parameters) all = all && (name = (type(*) parameters)python_symbol(#name));
    FREEZE_FUNCTIONS(FIND)
#undef FIND
#define FIND(name) all = all && (name = python_symbol(#name));
    FREEZE_TYPES(FIND)
#undef FIND
    return all;
}

/* The numbers of slots (typeslots.h) and the bits of types (object.h): both are part of the stable ABI. */
enum {
    SLOT_BASE = 48,
    SLOT_DEALLOC = 52,
    SLOT_DEL = 53,
    SLOT_DESCRIPTOR_GET = 54,
    SLOT_VISIT = 71,
    SLOT_FINALIZE = 80,
};
enum {
    TYPE_HAS_DICT = 1 << 4, /* kept before the instance */
    TYPE_IS_HEAP = 1 << 9,
    TYPE_HAS_GC = 1 << 14,
};
static const unsigned long type_is_class = 1UL << 31; /* its objects are classes */

enum { GC_HEAD_BYTES = 16, POINTER_BYTES = sizeof(void *) };

/* --- Strings and integers --- */

typedef struct TextHead {
    ObjectHead head;
    ssize_t length;
    ssize_t hash; /* -1: not computed */
    uint32_t state;
} TextHead;

typedef struct NumberHead {
    ObjectHead head;
    uint64_t tag;
} NumberHead;

static unsigned text_kind(const TextHead *text) /* bytes per character */
{
    return text->state >> 2 & 7;
}

static bool text_is_ascii(const TextHead *text)
{
    return text->state >> 6 & 1;
}

static size_t number_digits(const NumberHead *number)
{
    return number->tag >> 3;
}

void text_hash(Object *text)
{
    enum { SHORT = 256 };
    const TextHead *head = (TextHead *)text;
    if (head->hash == -1 && head->length <= SHORT)
        (void)PyObject_Hash(text);
}

static bool text_is_known(const char *utf8, ssize_t length, unsigned kind, bool ascii)
{
    Object *text = PyUnicode_FromString(utf8);
    const TextHead *head = (TextHead *)text;
    if (!text)
        return false;
    bool known = head->length == length && text_kind(head) == kind && text_is_ascii(head) == ascii &&
                 head->hash == -1 && PyObject_Hash(text) == head->hash && head->hash != -1;
    Py_DecRef(text);
    return known;
}

static bool number_is_known(uint64_t value, size_t digits)
{
    Object *number = PyLong_FromUnsignedLongLong(value);
    bool known = number && number_digits((NumberHead *)number) == digits;
    if (number)
        Py_DecRef(number);
    return known;
}

static bool leaves_are_known(void)
{
    return text_is_known("shmguard's own", 14, 1, true) &&
           text_is_known("Stra\xc3\x9f"
                         "e 1",
                         8, 1, false) &&
           text_is_known("\xe4\xb8\xad\xe6\x96\x87", 2, 2, false) &&
           text_is_known("\xf0\x9f\x9a\x82\xf0\x9f\x9a\x83", 2, 4, false) &&
           number_is_known(UINT64_C(1) << 20, 1) && number_is_known(UINT64_C(1) << 40, 2) &&
           number_is_known(UINT64_C(1) << 62, 3);
}

/* --- Arrays of numpy --- */

typedef struct ArrayHead { /* PyArrayObject_fields */
    ObjectHead head;
    char *data;
    int n_dimensions;
    ssize_t *dimensions;
    ssize_t *strides;
    Object *base;
    Object *type;
} ArrayHead;

bool array_has_objects(const ObjectTypes *types, Object *array)
{
    return ((ArrayHead *)array)->type == types->object_dtype;
}

size_t array_items(Object *array)
{
    const ArrayHead *head = (ArrayHead *)array;
    size_t n = 1;
    for (int i = 0; i < head->n_dimensions; i++)
        n *= (size_t)head->dimensions[i];
    return n;
}

Object *array_item(Object *array, size_t place)
{
    const ArrayHead *head = (ArrayHead *)array;
    const char *item = head->data;
    for (int i = head->n_dimensions - 1; i >= 0; i--) {
        size_t n = (size_t)head->dimensions[i];
        item += (ssize_t)(place % n) * head->strides[i];
        place /= n;
    }
    Object *object = NULL;
    memcpy(&object, item, POINTER_BYTES); /* it may be unaligned */
    return object;
}

/* --- Types --- */

static ObjectType *type_place(ObjectTypes *types, Object *type)
{
    size_t place = (uintptr_t)type / 16 * 2654435761U % OBJECT_TYPES_MAX;
    while (types->types[place].type && types->types[place].type != type)
        place = (place + 1) % OBJECT_TYPES_MAX;
    return &types->types[place];
}

/* A member of a class, which is read without its metaclass: that may be the program's. -1: unreadable. */
static long type_member(Object *member, Object *type)
{
    typedef Object *(*Get)(Object *, Object *, Object *);
    Get get = (Get)PyType_GetSlot(object_head(member)->type, SLOT_DESCRIPTOR_GET);
    Object *value = get ? get(member, type, NULL) : NULL;
    long number = value ? PyLong_AsLong(value) : -1;
    if (value)
        Py_DecRef(value);
    if (PyErr_Occurred())
        PyErr_Clear();
    return number;
}

static bool array_is_known(ObjectTypes *types, const Specimens *specimens)
{
    enum { ROWS = 2, COLUMNS = 3 };
    const ArrayHead *head = (ArrayHead *)specimens->array;
    if (specimens->array_address == 0)
        return true;
    if (type_member(types->basic_size, head->head.type) < (long)sizeof *head)
        return false;
    types->object_dtype = head->type;
    return (uintptr_t)head->data == specimens->array_address && head->n_dimensions == 2 &&
           head->dimensions[0] == ROWS && head->dimensions[1] == COLUMNS &&
           head->strides[0] == COLUMNS * POINTER_BYTES && head->strides[1] == POINTER_BYTES;
}

static ObjectType *type_add(ObjectTypes *types, Object *type, ObjectKind kind)
{
    ObjectType *known = type_place(types, type);
    if (known->type)
        return known;
    types->n++;
    *known = (ObjectType){.type = type,
                          .kind = kind,
                          .data = kind,
                          .is_plain = kind > OBJECT_TYPE && kind != OBJECT_ARRAY,
                          .weak_offset = type_member(types->weak_offset, type),
                          .basic_bytes = (size_t)type_member(types->basic_size, type)};
    known->visit = (int (*)(Object *, ObjectVisitor, void *))(uintptr_t)PyType_GetSlot(type, SLOT_VISIT);
    return known;
}

static const struct {
    Object **type;
    ObjectKind kind;
} builtin_types[] = {
    {&PyList_Type, OBJECT_LIST},    {&PyTuple_Type, OBJECT_TUPLE}, {&PyDict_Type, OBJECT_DICT},
    {&PyODict_Type, OBJECT_OTHER},  {&PySet_Type, OBJECT_OTHER},   {&PyFrozenSet_Type, OBJECT_OTHER},
    {&PyUnicode_Type, OBJECT_TEXT}, {&PyBytes_Type, OBJECT_BYTES}, {&PyByteArray_Type, OBJECT_BYTES},
    {&PyLong_Type, OBJECT_NUMBER},  {&PyFloat_Type, OBJECT_LEAF},  {&PyComplex_Type, OBJECT_LEAF},
    {&PyRange_Type, OBJECT_LEAF},
};

static void types_begin(ObjectTypes *types, const Specimens *specimens)
{
    for (size_t i = 0; i < sizeof builtin_types / sizeof builtin_types[0]; i++)
        type_add(types, *builtin_types[i].type, builtin_types[i].kind);
    type_add(types, PyODict_Type, OBJECT_OTHER)->data = OBJECT_DICT;
    type_add(types, PySet_Type, OBJECT_OTHER)->is_set = true;
    type_add(types, PyFrozenSet_Type, OBJECT_OTHER)->is_set = true;
    type_add(types, specimens->deque, OBJECT_OTHER);
    type_add(types, specimens->default_dict, OBJECT_OTHER)->data = OBJECT_DICT;
    for (ssize_t i = 0; i < PyTuple_Size(specimens->leaves); i++) {
        Object *leaf = PyTuple_GetItem(specimens->leaves, i);
        if (PyType_GetFlags(object_head(leaf)->type) & type_is_class &&
            !(PyType_GetFlags(leaf) & TYPE_IS_HEAP))
            type_add(types, leaf, OBJECT_LEAF);
    }
    if (specimens->array_address != 0)
        type_add(types, object_head(specimens->array)->type, OBJECT_ARRAY);
}

static Object *dict_text(Object *dict, const char *key)
{
    Object *name = PyUnicode_FromString(key);
    Object *value = name ? PyDict_GetItemWithError(dict, name) : NULL;
    if (name)
        Py_DecRef(name);
    return value;
}

/* What a name like "Outer.Inner" means in these names; borrowed. */
static Object *name_meaning(Object *names, const char *name)
{
    enum { NAME_MAX_BYTES = 256 };
    char part[NAME_MAX_BYTES];
    Object *found = NULL;
    Object *inner = NULL;
    for (;;) {
        size_t n = strcspn(name, ".");
        if (n >= sizeof part)
            break;
        memcpy(part, name, n);
        part[n] = '\0';
        found = dict_text(inner ? inner : names, part);
        if (inner)
            Py_DecRef(inner);
        inner = NULL;
        if (!found || name[n] == '\0')
            return found;
        if (!(PyType_GetFlags(object_head(found)->type) & type_is_class))
            break;
        inner = PyType_GetDict(found);
        name += n + 1;
    }
    return NULL;
}

bool class_is_in_module(Object *class)
{
    Object *names = PyType_GetDict(class);
    Object *module_name = names ? dict_text(names, "__module__") : NULL;
    Object *modules = PyImport_GetModuleDict();
    Object *module = module_name && object_head(module_name)->type == PyUnicode_Type
                         ? PyDict_GetItemWithError(modules, module_name)
                         : NULL;
    Object *qualified = PyType_GetQualName(class);
    const char *name = qualified ? PyUnicode_AsUTF8AndSize(qualified, NULL) : NULL;
    bool is = name && module && PyType_IsSubtype(object_head(module)->type, PyModule_Type) &&
              name_meaning(PyModule_GetDict(module), name) == class;
    if (qualified)
        Py_DecRef(qualified);
    if (names)
        Py_DecRef(names);
    if (PyErr_Occurred())
        PyErr_Clear();
    return is;
}

/* Whether the class was written in Python: then the interpreter frees its instances and visits them; and if
 * it does not visit them, the class has added nothing to its base. A type made in C may have left freeing to
 * the interpreter, but then it has a visitor of its own, or adds what nobody visits. */
static bool class_is_written(const ObjectTypes *types, Object *class)
{
    unsigned long flags = PyType_GetFlags(class);
    Object *base = PyType_GetSlot(class, SLOT_BASE);
    if (!(flags & TYPE_IS_HEAP) || !base || PyType_GetSlot(class, SLOT_DEALLOC) != types->class_dealloc)
        return false;
    return flags & TYPE_HAS_GC
               ? PyType_GetSlot(class, SLOT_VISIT) == types->class_visit
               : type_member(types->basic_size, class) == type_member(types->basic_size, base);
}

/* Instances of a class that was written in Python are looked into in any case; whether they are plain depends
 * on its base. */
static void class_judge(ObjectTypes *types, ObjectType *judged)
{
    Object *base = judged->type;
    while (class_is_written(types, base))
        base = PyType_GetSlot(base, SLOT_BASE);
    const ObjectType *known = type_place(types, base);
    bool base_is_plain = base == PyBaseObject_Type || (known->type && known->is_plain);
    bool refers = PyType_GetFlags(judged->type) & TYPE_HAS_GC;
    judged->kind = refers ? OBJECT_OTHER : OBJECT_LEAF;
    judged->is_plain = base_is_plain && !PyType_GetSlot(judged->type, SLOT_FINALIZE) &&
                       !PyType_GetSlot(judged->type, SLOT_DEL) && class_is_in_module(judged->type);
    judged->data = known->type ? known->data : OBJECT_OTHER;
    judged->is_set = known->is_set;
    if (PyType_GetFlags(judged->type) & TYPE_HAS_DICT)
        judged->dict_offset = -3 * (ssize_t)POINTER_BYTES;
    if (judged->weak_offset == -1 || (!refers && !judged->is_plain))
        judged->kind = OBJECT_UNKNOWN;
}

const ObjectType *object_type(ObjectTypes *types, Object *type)
{
    static const ObjectType unknown = {.kind = OBJECT_UNKNOWN};
    ObjectType *known = type_place(types, type);
    if (known->type)
        return known;
    if (types->n >= OBJECT_TYPES_MAX / 2)
        return &unknown;
    unsigned long flags = PyType_GetFlags(type);
    known = type_add(types, type, flags & type_is_class ? OBJECT_TYPE : OBJECT_UNKNOWN);
    if (known->kind == OBJECT_UNKNOWN && class_is_written(types, type))
        class_judge(types, known);
    return known;
}

Object *instance_dict(const ObjectType *type, Object *instance)
{
    uintptr_t dict = 0;
    if (type->dict_offset != 0)
        memcpy(&dict, (char *)instance + type->dict_offset, POINTER_BYTES);
    return dict & 1 ? NULL : (Object *)dict; /* 3.12: odd while it is an array of values */
}

/* --- Sizes --- */

static size_t data_bytes(ObjectKind data, Object *object)
{
    enum { DIGIT_BYTES = 4 };
    const TextHead *text = (TextHead *)object;
    size_t n = 0;
    switch (data) {
    case OBJECT_TEXT:
        return ((size_t)text->length + 1) * text_kind(text);
    case OBJECT_NUMBER:
        n = number_digits((NumberHead *)object);
        return (n > 1 ? n : 1) * DIGIT_BYTES;
    case OBJECT_BYTES:
        memcpy(&n, (char *)object + sizeof(ObjectHead), sizeof n);
        return n;
    case OBJECT_UNKNOWN:
    case OBJECT_TYPE:
    case OBJECT_LEAF:
    case OBJECT_LIST:
    case OBJECT_TUPLE:
    case OBJECT_DICT:
    case OBJECT_ARRAY:
    case OBJECT_OTHER:
        break;
    }
    return 0;
}

size_t leaf_bytes(const ObjectType *type, Object *leaf)
{
    enum { ASCII_HEAD = 40, OTHER_HEAD = 56 };
    size_t head = type->kind != OBJECT_TEXT         ? type->basic_bytes
                  : text_is_ascii((TextHead *)leaf) ? ASCII_HEAD
                                                    : OTHER_HEAD;
    return head + data_bytes(type->data, leaf);
}

/* Of the least power of two that is greater. */
static size_t power_above(size_t n, size_t least)
{
    size_t power = least;
    while (power <= n)
        power *= 2;
    return power;
}

static size_t dict_bytes(size_t n)
{
    enum { LEAST = 8, KEYS_HEAD = 32, ENTRY = 24 };
    if (n == 0)
        return 0;
    size_t places = power_above(n * 3 / 2, LEAST);
    size_t index = places <= 0xff ? 1 : places <= 0xffff ? 2 : 4;
    return KEYS_HEAD + places * index + places * 2 / 3 * ENTRY;
}

static size_t set_bytes(size_t n)
{
    enum { LEAST = 8, ENTRY = 16 };
    return n < LEAST / 2 + 1 ? 0 : power_above(n * 5 / 3, LEAST) * ENTRY;
}

size_t container_bytes(const ObjectType *type, Object *container, size_t n)
{
    size_t bytes = GC_HEAD_BYTES + type->basic_bytes + data_bytes(type->data, container);
    if (type->data == OBJECT_DICT)
        bytes += dict_bytes((size_t)PyDict_Size(container));
    else if (type->is_set)
        bytes += set_bytes((size_t)PySet_Size(container));
    else
        bytes += n * POINTER_BYTES;
    return bytes;
}

/* --- Whether all of that is so --- */

static bool counts_are_known(uint64_t immortal)
{
    Object *list = PyList_New(0);
    ObjectHead *head = object_head(list);
    const ObjectHead *none = python_symbol("_Py_NoneStruct");
    int (*is_immortal)(Object *) = (int (*)(Object *))python_symbol("PyUnstable_IsImmortal"); /* 3.14 */
    if (!list)
        return false;
    bool known = none && count_is_immortal(none->count) && head->count == 1 && head->type == PyList_Type;
    Py_IncRef(list);
    known = known && head->count == 2;
    Py_DecRef(list);
    known = known && head->count == 1;
    if (known) {
        head->count = immortal;
        for (int i = 0; i < 3; i++)
            Py_IncRef(list);
        known = head->count == immortal && (!is_immortal || is_immortal(list));
        for (int i = 0; i < 5; i++)
            Py_DecRef(list);
        known = known && head->count == immortal;
        head->count = 1;
    }
    known = known && PyObject_GC_IsTracked(list);
    PyObject_GC_UnTrack(list);
    known = known && !PyObject_GC_IsTracked(list);
    Py_DecRef(list);
    return known;
}

static int attribute_look(Object *object, void *context)
{
    Object **wanted = context;
    if (object == *wanted)
        *wanted = NULL;
    return 0;
}

static bool classes_are_known(ObjectTypes *types, const Specimens *specimens)
{
    Object *class = object_head(specimens->probe)->type;
    types->class_dealloc = PyType_GetSlot(class, SLOT_DEALLOC);
    types->class_visit = PyType_GetSlot(class, SLOT_VISIT);
    if (!types->class_dealloc || !types->class_visit ||
        types->class_dealloc == PyType_GetSlot(PyBaseObject_Type, SLOT_DEALLOC))
        return false;
    const ObjectType *type = object_type(types, class);
    Object *wanted = specimens->attribute;
    if (type->kind != OBJECT_OTHER || type->weak_offset == 0 || instance_dict(type, specimens->probe) ||
        instance_dict(type, specimens->owner) != specimens->names)
        return false;
    (void)type->visit(specimens->probe, attribute_look, &wanted);
    Object *weak = PyWeakref_NewRef(specimens->probe, NULL);
    Object *found = NULL;
    memcpy(&found, (char *)specimens->probe + type->weak_offset, POINTER_BYTES);
    bool known = !wanted && weak && found == weak;
    if (weak)
        Py_DecRef(weak);
    memcpy(&found, (char *)specimens->probe + type->weak_offset, POINTER_BYTES);
    return known && !found;
}

bool objects_are_known(ObjectTypes *types, const Specimens *specimens, uint64_t immortal)
{
    memset(types, 0, sizeof *types);
    if (!counts_are_known(immortal) || !leaves_are_known())
        return false;
    Object *members = PyType_GetDict(PyType_Type);
    types->basic_size = members ? dict_text(members, "__basicsize__") : NULL;
    types->weak_offset = members ? dict_text(members, "__weakrefoffset__") : NULL;
    bool known = types->basic_size && types->weak_offset && array_is_known(types, specimens);
    if (known) {
        types_begin(types, specimens);
        known = classes_are_known(types, specimens);
    }
    if (members)
        Py_DecRef(members);
    if (PyErr_Occurred())
        PyErr_Clear();
    return known;
}
