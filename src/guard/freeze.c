/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "freeze.h"
#include "guard.h"

/*
 * The walk: which containers are closed? One that reaches itself is closed if everything in that cycle is, so
 * the question is about strongly connected components, and the walk is Tarjan's, without recursion.
 *
 * While it looks at a container, it has written the container's place among its nodes into the container's
 * count, so it needs no table of what it has seen. The lower half of such a count is that of an immortal
 * object: the interpreter neither counts nor frees it. The true count is in the node, and comes back unless
 * the container is closed. Until then nobody may notice: the walk keeps the interpreter's lock, runs no code
 * of the program, and takes and drops no reference to what it looks at.
 *
 * A closed component is frozen as soon as its first container is finished. Then no node in the table is newer
 * than that one: everything that was found later was found below it, is closed, too, and has been frozen.
 * So the table holds the containers on the way down, and those that are not closed.
 *
 * Strings, numbers and bytes are frozen when they are met. Leaves do not refer to anything.
 *
 * A container that is closed now may be given a tensor later. It keeps the tensor alive until it is taken
 * out again, as every container does; and if the program forgets the container with the tensor in it, both
 * stay. So containers of a dataset that were frozen must not be what a program fills and drops again and
 * again: each dataset is frozen once, and nothing after the first that was dropped (python-freeze.c).
 *
 * The collector has nothing to do with frozen containers, since they never go: the interpreter itself takes
 * those it makes immortal out of the collector's lists (_Py_SetImmortal). A dict comes back into them when
 * the program puts a container into it; the collector then sets it aside, as it does with all that is
 * immortal.
 *
 * A signal sets a flag of the interpreter, which the walk looks at. Other threads without the interpreter's
 * lock may fork; such a child cannot run Python.
 */

enum { ATTEND_OBJECTS = 1 << 16, LOOK_NODES = 10000, AHEAD = 8 };

typedef struct WalkNode {
    Object *object;
    uint64_t count;   /* the true one */
    uint64_t bytes;   /* once its items have been visited */
    uint32_t least;   /* the first node of its component, as far as is known */
    bool is_open;     /* reaches something that is not plain */
    bool is_finished; /* and is open: its component is known */
} WalkNode;

/* A container on the way down, and how far its items have been visited. */
typedef struct Step {
    const ObjectType *type;
    uint32_t node;
    bool has_key; /* of a dict: the item's key is done */
    ssize_t place;
    size_t first; /* OBJECT_OTHER: its items are in `found` from here on */
    size_t n;     /* items */
} Step;

typedef struct Stack {
    void *data;
    size_t bytes; /* of the mapping */
    size_t n;
} Stack;

typedef struct Walk {
    ObjectTypes *types;
    uint64_t immortal;
    FreezeMore more;
    uint64_t room;      /* bytes that may be frozen before `more` is asked */
    FreezeRoots *roots; /* freezes nothing, but looks what is frozen */
    bool is_recording;  /* in roots */
    Stack nodes;
    Stack steps;
    Stack pending; /* nodes whose component is not known: their places */
    Stack found;
    uint64_t visited;
    FreezeWalk frozen;
    FreezeWalk told;
    WalkEnd end;
} Walk;

static void *stack_push(Walk *walk, Stack *stack, size_t item_bytes)
{
    enum { FIRST_BYTES = 1 << 20 };
    if ((stack->n + 1) * item_bytes > stack->bytes) {
        size_t bytes = stack->bytes > 0 ? stack->bytes * 2 : FIRST_BYTES;
        void *data = stack->data
                         ? real_mremap(stack->data, stack->bytes, bytes, MREMAP_MAYMOVE, NULL)
                         : real_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (data == MAP_FAILED) {
            walk->end = WALK_NO_MEMORY;
            return NULL;
        }
        stack->data = data;
        stack->bytes = bytes;
    }
    return (char *)stack->data + stack->n++ * item_bytes;
}

static void stack_free(Stack *stack)
{
    if (stack->data)
        real_munmap(stack->data, stack->bytes);
}

static WalkNode *node_at(const Walk *walk, uint32_t place)
{
    return (WalkNode *)walk->nodes.data + place;
}

static Step *step_last(const Walk *walk)
{
    return (Step *)walk->steps.data + walk->steps.n - 1;
}

/* The node of the container that is visited now. */
static WalkNode *node_now(const Walk *walk)
{
    return node_at(walk, step_last(walk)->node);
}

/* NULL: the walk does not look at this object. */
static WalkNode *node_of(const Walk *walk, Object *object, uint64_t count)
{
    uint64_t place = count >> 32;
    if (place == 0 || place > walk->nodes.n)
        return NULL;
    WalkNode *node = node_at(walk, (uint32_t)(place - 1));
    return node->object == object ? node : NULL;
}

static void tell(Walk *walk, uint64_t wanted)
{
    FreezeWalk now = walk->frozen;
    walk->room = walk->more(now.objects - walk->told.objects, now.bytes - walk->told.bytes, wanted);
    walk->told = now;
}

/* False: those objects may not be frozen, and the walk has ended. */
static bool room_take(Walk *walk, uint64_t objects, uint64_t bytes)
{
    if (bytes > walk->room)
        tell(walk, bytes);
    if (bytes > walk->room) {
        walk->end = WALK_LIMIT;
        return false;
    }
    walk->room -= bytes;
    walk->frozen.objects += objects;
    walk->frozen.bytes += bytes;
    return true;
}

/* At every object; does something now and then. */
static void attend(Walk *walk)
{
    if (++walk->visited % ATTEND_OBJECTS != 0)
        return;
    if (walk->roots) {
        walk->end = WALK_LIMIT;
        return;
    }
    tell(walk, 0);
    if (walk->end == WALK_DONE && PyOS_InterruptOccurred()) {
        PyErr_SetInterrupt(); /* it was taken from the program, whose turn it is now */
        walk->end = WALK_INTERRUPTED;
    }
}

/* --- What is frozen already --- */

static size_t root_items(const ObjectType *type, Object *root)
{
    if (type->kind == OBJECT_LIST)
        return (size_t)PyList_Size(root);
    if (type->data == OBJECT_DICT)
        return (size_t)PyDict_Size(root);
    return type->kind == OBJECT_TUPLE ? (size_t)PyTuple_Size(root) : 0;
}

typedef struct RootItems {
    ObjectTypes *types;
    size_t frozen;
} RootItems;

static int container_count(Object *object, void *context)
{
    RootItems *items = context;
    ObjectHead *head = object_head(object);
    if (count_is_immortal(head->count) && object_type(items->types, head->type)->kind >= OBJECT_LIST)
        items->frozen++;
    return 0;
}

/* How many of its n items are frozen: fewer, once the program has replaced them. Of many, some are looked at.
 * Counters and the like may change, so leaves count only in lists. */
static size_t root_frozen(ObjectTypes *types, const ObjectType *type, Object *root, size_t n)
{
    enum { SAMPLES = 64 };
    RootItems items = {.types = types};
    Object *key = NULL;
    Object *value = NULL;
    ssize_t place = 0;
    size_t samples = n < SAMPLES ? n : SAMPLES;
    if (type->kind == OBJECT_LIST)
        for (size_t i = 0; i < samples; i++) {
            Object *item = PyList_GetItem(root, (ssize_t)(i * n / samples));
            items.frozen += item && count_is_immortal(object_head(item)->count);
        }
    else if (type->data == OBJECT_DICT)
        for (size_t i = 0; i < samples && PyDict_Next(root, &place, &key, &value); i++)
            (void)container_count(value, &items);
    else if (type->kind == OBJECT_OTHER && !type->is_set)
        (void)type->visit(root, container_count, &items);
    return items.frozen;
}

static void root_meet(Walk *walk, Object *object)
{
    FreezeRoots *roots = walk->roots;
    const ObjectType *type = object_type(walk->types, object_head(object)->type);
    size_t i = 0;
    if (type->kind != OBJECT_LIST && type->kind != OBJECT_DICT && type->kind != OBJECT_OTHER &&
        (type->kind != OBJECT_TUPLE || PyTuple_Size(object) == 0))
        return;
    roots->may_change |= type->kind != OBJECT_TUPLE;
    while (i < roots->n && roots->roots[i].object != object)
        i++;
    if (i == FREEZE_ROOTS_MAX || (i == roots->n && !walk->is_recording))
        return;
    FreezeRoot *root = &roots->roots[i];
    size_t n = root_items(type, object);
    if (i == roots->n) {
        roots->n++;
        *root = (FreezeRoot){object, n, root_frozen(walk->types, type, object, n), true};
    } else {
        root->seen = n >= root->n && root_frozen(walk->types, type, object, root->n) >= root->frozen;
    }
}

/* --- Objects --- */

static void container_begin(Walk *walk, Object *object, const ObjectType *type);

/* True if there is nothing more to do for an object that is referred to by the container visited now. */
static bool is_done(Walk *walk, Object *object, const ObjectType **ret_type)
{
    ObjectHead *head = object_head(object);
    attend(walk);
    if (count_is_immortal(head->count)) {
        const WalkNode *node = node_of(walk, object, head->count);
        WalkNode *now = node_now(walk);
        if (node && node->is_finished)
            now->is_open = true;
        else if (node && (uint32_t)(node - node_at(walk, 0)) < now->least)
            now->least = (uint32_t)(node - node_at(walk, 0));
        else if (!node && walk->roots)
            root_meet(walk, object);
        return true;
    }
    const ObjectType *type = object_type(walk->types, head->type);
    *ret_type = type;
    switch (type->kind) {
    case OBJECT_UNKNOWN:
        node_now(walk)->is_open = true;
        return true;
    case OBJECT_TYPE:
        if (!class_is_in_module(object))
            node_now(walk)->is_open = true;
        return true;
    case OBJECT_TEXT:
        if (!walk->roots)
            text_hash(object);
        break;
    case OBJECT_ARRAY:
        if (array_has_objects(walk->types, object))
            return false;
        node_now(walk)->is_open = true;
        return true;
    case OBJECT_LIST:
    case OBJECT_TUPLE:
    case OBJECT_DICT:
    case OBJECT_OTHER:
        return false;
    case OBJECT_BYTES:
    case OBJECT_NUMBER:
    case OBJECT_LEAF:
        break;
    }
    if (!walk->roots && room_take(walk, 1, leaf_bytes(type, object)))
        head->count = walk->immortal;
    return true;
}

static void visit(Walk *walk, Object *object)
{
    const ObjectType *type = NULL;
    if (object && !is_done(walk, object, &type))
        container_begin(walk, object, type);
}

/* Of OBJECT_OTHER: an item. Its class is none: classes that are plain keep nothing. */
static int find(Object *object, void *context)
{
    Walk *walk = context;
    const ObjectType *type = NULL;
    Step *step = step_last(walk);
    if (object == step->type->type)
        return 0;
    step->n++;
    if (!is_done(walk, object, &type)) {
        Object **place = stack_push(walk, &walk->found, sizeof(Object *));
        if (place)
            *place = object;
    }
    return walk->end != WALK_DONE;
}

static void find_keys(Walk *walk, Object *dict)
{
    ssize_t place = 0;
    Object *key = NULL;
    Object *value = NULL;
    while (walk->end == WALK_DONE && PyDict_Next(dict, &place, &key, &value))
        (void)find(key, walk);
}

/* The attributes of the dataset: what a program replaces, and is looked for there. */
static bool is_of_dataset(const Walk *walk, const ObjectType *type)
{
    const Step *first = walk->steps.data;
    return type->kind == OBJECT_DICT && walk->steps.n == 2 && first->type->kind == OBJECT_OTHER;
}

static bool has_weak_references(const ObjectType *type, Object *object)
{
    void *list = NULL;
    if (type->weak_offset != 0)
        memcpy(&list, (char *)object + type->weak_offset, sizeof list);
    return list != NULL;
}

static void container_begin(Walk *walk, Object *object, const ObjectType *type)
{
    uint32_t place = (uint32_t)walk->nodes.n;
    if (place == UINT32_MAX || (walk->roots && place == LOOK_NODES)) {
        walk->end = walk->roots ? WALK_LIMIT : WALK_NO_MEMORY;
        return;
    }
    WalkNode *node = stack_push(walk, &walk->nodes, sizeof(WalkNode));
    uint32_t *pending = node ? stack_push(walk, &walk->pending, sizeof(uint32_t)) : NULL;
    Step *step = pending ? stack_push(walk, &walk->steps, sizeof(Step)) : NULL;
    if (!step) {
        walk->nodes.n = place;
        return;
    }
    *node = (WalkNode){.object = object,
                       .count = object_head(object)->count,
                       .least = place,
                       .is_open = walk->roots || !type->is_plain || is_of_dataset(walk, type) ||
                                  has_weak_references(type, object)};
    *pending = place;
    *step = (Step){.type = type, .node = place, .first = walk->found.n};
    object_head(object)->count = ((uint64_t)place + 1) << 32 | (uint32_t)walk->immortal;
    if (type->kind == OBJECT_OTHER) {
        Object *dict = node->is_open ? NULL : instance_dict(type, object);
        (void)type->visit(object, find, walk);
        if (dict && walk->end == WALK_DONE)
            (void)find(dict, walk);
        if (type->data == OBJECT_DICT)
            find_keys(walk, object);
    }
}

/* Visits items of the container until one is a container that has to be visited first. False: there are no
 * more. */
static bool step_go_on(Walk *walk)
{
    size_t depth = walk->steps.n;
    Step *step = step_last(walk);
    Object *object = node_at(walk, step->node)->object;
    Object *key = NULL;
    Object *value = NULL;
    while (walk->steps.n == depth && walk->end == WALK_DONE) {
        step = step_last(walk);
        ssize_t next = step->place;
        switch (step->type->kind) {
        case OBJECT_LIST:
            if (step->place >= PyList_Size(object))
                return false;
            /* Items that the program has shuffled come from memory one by one otherwise. */
            if (step->place + AHEAD < PyList_Size(object))
                __builtin_prefetch(PyList_GetItem(object, step->place + AHEAD), 1);
            visit(walk, PyList_GetItem(object, step->place++));
            break;
        case OBJECT_TUPLE:
            if (step->place >= PyTuple_Size(object))
                return false;
            visit(walk, PyTuple_GetItem(object, step->place++));
            break;
        case OBJECT_DICT:
            if (!PyDict_Next(object, &next, &key, &value))
                return false;
            step->has_key = !step->has_key;
            if (!step->has_key)
                step->place = next;
            visit(walk, step->has_key ? key : value);
            break;
        case OBJECT_ARRAY:
            if ((size_t)step->place >= array_items(object))
                return false;
            visit(walk, array_item(object, (size_t)step->place++));
            break;
        case OBJECT_OTHER:
            if (walk->found.n == step->first)
                return false;
            visit(walk, ((Object **)walk->found.data)[--walk->found.n]);
            break;
        case OBJECT_UNKNOWN:
        case OBJECT_TYPE:
        case OBJECT_TEXT:
        case OBJECT_BYTES:
        case OBJECT_NUMBER:
        case OBJECT_LEAF:
            return false;
        }
    }
    return true;
}

/* The component that begins with this node is complete. */
static void component_end(Walk *walk, uint32_t first, bool is_open)
{
    const uint32_t *pending = walk->pending.data;
    size_t begin = walk->pending.n;
    uint64_t bytes = 0;
    do
        bytes += node_at(walk, pending[--begin])->bytes;
    while (pending[begin] != first);
    if (!is_open && !room_take(walk, walk->pending.n - begin, bytes))
        return;
    for (size_t i = begin; i < walk->pending.n; i++) {
        WalkNode *node = node_at(walk, pending[i]);
        if (is_open) {
            node->is_finished = node->is_open = true;
        } else {
            PyObject_GC_UnTrack(node->object);
            object_head(node->object)->count = walk->immortal;
        }
    }
    walk->pending.n = begin;
    if (!is_open)
        walk->nodes.n = first;
}

static void container_end(Walk *walk)
{
    const Step *step = step_last(walk);
    uint32_t place = step->node;
    WalkNode *node = node_at(walk, place);
    size_t items = step->type->kind == OBJECT_OTHER ? step->n : (size_t)step->place;
    uint32_t least = node->least;
    bool is_open = node->is_open;
    if (!is_open)
        node->bytes = container_bytes(step->type, node->object, items);
    walk->steps.n--;
    if (walk->steps.n == 0) { /* the dataset itself is never frozen, nor what refers to it */
        walk->frozen.is_closed = !is_open && walk->pending.n == 1;
        return;
    }
    if (least == place)
        component_end(walk, place, is_open);
    WalkNode *above = node_now(walk);
    above->is_open |= is_open;
    if (least < above->least)
        above->least = least;
}

static void walk_run(Walk *walk, Object *dataset)
{
    const ObjectType *type = object_type(walk->types, object_head(dataset)->type);
    bool has_items =
        type->kind >= OBJECT_LIST && (type->kind != OBJECT_ARRAY || array_has_objects(walk->types, dataset));
    if (!has_items || count_is_immortal(object_head(dataset)->count))
        return;
    container_begin(walk, dataset, type);
    while (walk->steps.n > 0 && walk->end == WALK_DONE)
        if (!step_go_on(walk))
            container_end(walk);
    for (uint32_t i = 0; i < walk->nodes.n; i++)
        object_head(node_at(walk, i)->object)->count = node_at(walk, i)->count;
    stack_free(&walk->nodes);
    stack_free(&walk->steps);
    stack_free(&walk->pending);
    stack_free(&walk->found);
}

WalkEnd freeze_walk(ObjectTypes *types, Object *dataset, uint64_t immortal, FreezeMore more, FreezeWalk *ret)
{
    Walk walk = {.types = types, .immortal = immortal, .more = more};
    walk_run(&walk, dataset);
    tell(&walk, 0);
    *ret = walk.frozen;
    return walk.end;
}

void freeze_look(ObjectTypes *types, Object *dataset, uint64_t immortal, FreezeRoots *ret)
{
    Walk walk = {.types = types, .immortal = immortal, .roots = ret, .is_recording = true};
    *ret = (FreezeRoots){0};
    walk_run(&walk, dataset);
    ret->may_change |= walk.end != WALK_DONE;
}

bool freeze_is_intact(ObjectTypes *types, Object *dataset, uint64_t immortal, FreezeRoots *roots)
{
    Walk walk = {.types = types, .immortal = immortal, .roots = roots};
    for (size_t i = 0; i < roots->n; i++)
        roots->roots[i].seen = false;
    walk_run(&walk, dataset);
    for (size_t i = 0; walk.end == WALK_DONE && i < roots->n; i++)
        if (!roots->roots[i].seen)
            return false;
    return true;
}
