/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guard.h"
#include "python-frames.h"
#include "python-part.h"

/*
 * The Python stack of the calling thread, read where CPython keeps it. An allocation may happen anywhere, so
 * nothing is allocated here, no reference is counted, and the interpreter's lock is not needed: PyTorch
 * releases it before it computes. The thread is inside a C function that Python has called, and so are its
 * frames: only this thread changes them, and they keep their code alive.
 *
 * The layouts are those of CPython 3.9 to 3.14, as their headers have them; within a version they are fixed.
 * A build with other options may differ, so the layout is tried before it is relied on: frames_check compares
 * what is read with what Python itself says, and until then each word is read through /proc/self/mem, where a
 * wrong address is an error and not a fault.
 */
typedef struct FrameLayout {
    int minor;
    unsigned thread_frame; /* in PyThreadState: the newest frame, or what points to it */
    bool through_cframe;   /* the latter, which has it at cframe_frame */
    unsigned cframe_frame;
    unsigned code; /* in a frame, these three */
    unsigned previous;
    unsigned instruction;
    unsigned owner;  /* a byte: whose frame it is; 0: there is none */
    bool by_address; /* `instruction` is an address; otherwise a number */
    unsigned unit;   /* bytes of that number */
    unsigned first;  /* in a code object: its instructions */
    unsigned filename;
    unsigned name;
    unsigned ascii_data; /* in a str */
    unsigned wide_data;
} FrameLayout;

static const FrameLayout layouts[] = {
    {9, 24, false, 0, 32, 24, 104, 0, false, 1, 0, 104, 112, 48, 72},
    {10, 24, false, 0, 32, 24, 96, 0, false, 2, 0, 104, 112, 48, 72},
    {11, 56, true, 8, 32, 48, 56, 0, true, 1, 184, 112, 120, 48, 72},
    {12, 56, true, 0, 0, 8, 56, 70, true, 1, 192, 112, 120, 40, 56},
    {13, 72, false, 0, 0, 8, 56, 70, true, 1, 200, 112, 120, 40, 56},
    {14, 72, false, 0, 0, 8, 56, 74, true, 1, 208, 112, 120, 40, 56},
};

enum {
    TYPE_OFFSET = 8, /* of every object */
    STR_LENGTH = 16,
    STR_STATE = 32,
    STATE_KIND = 0x1c,
    STATE_KIND_SHIFT = 2,
    STATE_COMPACT = 0x20,
    STATE_ASCII = 0x40,
    OWNER_C = 3,  /* the interpreter's own, between C and Python */
    CODE_TAG = 1, /* 3.14: this bit of the address of a frame's code says who counts the reference */
    DEPTH_MOST = 64,
};

typedef struct FrameReader {
    const FrameLayout *layout;
    int memory; /* /proc/self/mem; -1: read directly */
} FrameReader;

static const FrameLayout *known; /* that was checked; NULL: none. Set under the interpreter's lock */
static int (*line_of)(void *code, int offset);
static void *code_type;

static bool bytes_read(const FrameReader *reader, const void *address, void *ret, size_t n)
{
    if (!address)
        return false;
    if (reader->memory >= 0)
        return pread(reader->memory, ret, n, (off_t)(uintptr_t)address) == (ssize_t)n;
    memcpy(ret, address, n);
    return true;
}

static bool word_read(const FrameReader *reader, const void *base, unsigned offset, void *ret)
{
    return base && bytes_read(reader, (const char *)base + offset, ret, sizeof(void *));
}

/* What is not ASCII becomes "?". */
static bool text_read(const FrameReader *reader, const char *object, char *ret, size_t size)
{
    uint32_t state = 0;
    size_t n = 0;
    if (!object || !bytes_read(reader, object + STR_STATE, &state, sizeof state) ||
        !(state & STATE_COMPACT) || !word_read(reader, object, STR_LENGTH, &n))
        return false;
    bool ascii = state & STATE_ASCII;
    size_t kind = ascii ? 1 : (state & STATE_KIND) >> STATE_KIND_SHIFT;
    const char *data = object + (ascii ? reader->layout->ascii_data : reader->layout->wide_data);
    if (kind != 1 && kind != 2 && kind != 4)
        return false;
    size_t skipped = n < size ? 0 : n - (size - 1); /* the end of a path says more than its beginning */
    for (size_t i = skipped; i < n; i++) {
        uint32_t letter = 0;
        if (!bytes_read(reader, data + i * kind, &letter, kind))
            return false;
        ret[i - skipped] = letter >= ' ' && letter < 0x7f ? (char)letter : '?';
    }
    ret[n - skipped] = '\0';
    return true;
}

static bool frame_first(const FrameReader *reader, void **ret)
{
    const FrameLayout *layout = reader->layout;
    void *thread = PyGILState_GetThisThreadState();
    void *frame = NULL;
    if (!word_read(reader, thread, layout->thread_frame, &frame))
        return false;
    if (layout->through_cframe && !word_read(reader, frame, layout->cframe_frame, &frame))
        return false;
    *ret = frame;
    return frame != NULL;
}

static bool frame_code(const FrameReader *reader, void *frame, PythonPlace *ret)
{
    const FrameLayout *layout = reader->layout;
    uintptr_t tagged = 0;
    void *type = NULL;
    if (!word_read(reader, frame, layout->code, &tagged))
        return false;
    void *code = (void *)(tagged & ~(uintptr_t)CODE_TAG);
    if (!word_read(reader, code, TYPE_OFFSET, &type) || type != code_type)
        return false;
    char owner = 0;
    void *filename = NULL;
    void *name = NULL;
    if (layout->owner > 0 &&
        (!bytes_read(reader, (char *)frame + layout->owner, &owner, 1) || owner == OWNER_C))
        return false;
    /* Where an object is made, 3.12 and later put a frame whose code has "__init__" for both. */
    if (!word_read(reader, code, layout->filename, &filename) ||
        !word_read(reader, code, layout->name, &name) || filename == name)
        return false;
    char *at = NULL;
    int32_t number = 0;
    if (layout->by_address ? !word_read(reader, frame, layout->instruction, &at)
                           : !bytes_read(reader, (char *)frame + layout->instruction, &number, sizeof number))
        return false;
    ptrdiff_t offset =
        layout->by_address ? at - ((char *)code + layout->first) : number * (ptrdiff_t)layout->unit;
    *ret = (PythonPlace){.code = code, .offset = (int)offset};
    return offset < INT32_MAX && offset > INT32_MIN;
}

/* *frame: the next one to look at. */
static bool frame_read(const FrameReader *reader, void **frame, unsigned *depth, PythonPlace *ret)
{
    bool found = false;
    for (; !found && *frame && *depth < DEPTH_MOST; (*depth)++) {
        found = frame_code(reader, *frame, ret);
        if (!word_read(reader, *frame, reader->layout->previous, frame))
            *frame = NULL;
    }
    return found;
}

static bool file_read(const FrameReader *reader, const PythonPlace *place, char *ret, size_t size)
{
    const char *object = NULL;
    return word_read(reader, place->code, reader->layout->filename, &object) &&
           text_read(reader, object, ret, size);
}

static bool name_read(const FrameReader *reader, const PythonPlace *place, char *ret, size_t size)
{
    const char *object = NULL;
    return word_read(reader, place->code, reader->layout->name, &object) &&
           text_read(reader, object, ret, size);
}

void frames_begin(PythonFrames *ret)
{
    FrameReader reader = {known, -1};
    *ret = (PythonFrames){0};
    if (!known || !frame_first(&reader, &ret->next))
        ret->next = NULL;
}

bool frames_next(PythonFrames *frames, PythonPlace *ret)
{
    FrameReader reader = {known, -1};
    return frame_read(&reader, &frames->next, &frames->depth, ret);
}

bool frame_file(const PythonPlace *place, char *ret, size_t size)
{
    FrameReader reader = {known, -1};
    return file_read(&reader, place, ret, size);
}

bool frame_name(const PythonPlace *place, char *ret, size_t size)
{
    FrameReader reader = {known, -1};
    return name_read(&reader, place, ret, size);
}

int frame_line(const PythonPlace *place)
{
    return line_of(place->code, place->offset);
}

static bool is_as_expected(const FrameReader *reader, const PythonExpected *expected, size_t n)
{
    void *frame = NULL;
    unsigned depth = 0;
    if (!frame_first(reader, &frame))
        return false;
    for (size_t i = 0; i < n; i++) {
        PythonPlace place;
        char file[256] = "";
        char name[256] = "";
        if (!frame_read(reader, &frame, &depth, &place) || !file_read(reader, &place, file, sizeof file) ||
            !name_read(reader, &place, name, sizeof name) || strcmp(file, expected[i].file) != 0 ||
            strcmp(name, expected[i].name) != 0 || line_of(place.code, place.offset) != expected[i].line)
            return false;
    }
    return true;
}

bool frames_check(const PythonExpected *expected, size_t n)
{
    const char *version = Py_GetVersion();
    long minor = strncmp(version, "3.", 2) == 0 ? strtol(version + 2, NULL, 10) : 0;
    line_of = (int (*)(void *, int))python_symbol("PyCode_Addr2Line");
    code_type = python_symbol("PyCode_Type");
    known = NULL;
    FrameReader reader = {NULL, open("/proc/self/mem", O_RDONLY | O_CLOEXEC)};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (layouts[i].minor == minor)
            reader.layout = &layouts[i];
    bool good = reader.memory >= 0 && reader.layout && line_of && code_type && n >= 2 &&
                is_as_expected(&reader, expected, n);
    if (reader.memory >= 0)
        real_close(reader.memory);
    if (good)
        known = reader.layout;
    return good;
}
