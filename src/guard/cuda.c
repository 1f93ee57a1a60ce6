/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda.h"
#include "guard.h"
#include "linker-versions.h"

#define CALL_NAME(type, name, parameters, call) [call] = #name,
static const char *const call_names[CUDA_CALLS] = {INTERPOSED_CUDA(CALL_NAME)};

/* A loaded object, as dl_iterate_phdr shows it. */
typedef struct Object {
    const char *name; /* valid while it is loaded */
    uintptr_t base;
    uintptr_t start;
    uintptr_t end;
    const ElfW(Dyn) * dynamic;
} Object;

static Object object_of(const struct dl_phdr_info *info)
{
    Object object = {
        .name = info->dlpi_name ? info->dlpi_name : "", .base = info->dlpi_addr, .start = UINTPTR_MAX};
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_DYNAMIC)
            object.dynamic = (const ElfW(Dyn) *)start; /* NOLINT(performance-no-int-to-ptr) */
        if (part->p_type != PT_LOAD)
            continue;
        object.start = start < object.start ? start : object.start;
        object.end = start + part->p_memsz > object.end ? start + part->p_memsz : object.end;
    }
    return object;
}

static bool object_holds(const Object *object, uintptr_t address)
{
    return object->start <= address && address < object->end;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* --- Is there a runtime at all? ----------------------------------------------------------------------- */

/* "libcudart.so.13" or, as wheels rename it, "libcudart-d0da41ae.so.11.0". 0: it is another library. */
static int runtime_version(const char *path)
{
    const char *name = base_name(path);
    const char *version = begins_with(name, "libcudart") ? strstr(name, ".so.") : NULL;
    int number = 0;
    /* By hand: since glibc 2.38 atoi is a symbol that older systems do not have. */
    for (const char *digit = version ? version + 4 : ""; *digit >= '0' && *digit <= '9' && number < 1000;
         digit++)
        number = 10 * number + (*digit - '0');
    return number;
}

/* Before 11 cudaPointerGetAttributes fills another structure. */
static bool is_runtime(const char *path)
{
    return runtime_version(path) >= 11;
}

static atomic_bool near;
static _Atomic pid_t looked; /* in which process */

/*
 * Reads the mappings of the process and does not call dl_iterate_phdr: that takes a lock of the loader, which
 * fork leaves as it is, so that a child would wait forever if another thread of its parent held it.
 */
static bool runtime_is_mapped(void)
{
    char text[4096 + 512];
    size_t n = 0;
    ssize_t more = 0;
    bool found = false;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && !found && (more = read(fd, text + n, sizeof text - 1 - n)) > 0) {
        char *line = text;
        text[n + (size_t)more] = '\0';
        for (char *end = NULL; !found && (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            found = is_runtime(line);
        }
        n = strlen(line);
        if (n == sizeof text - 1) /* longer than any path of a runtime */
            n = 0;
        memmove(text, line, n);
    }
    if (fd >= 0)
        real_close(fd);
    return found;
}

void cuda_look(void)
{
    if (atomic_load_explicit(&near, memory_order_relaxed))
        return;
    pid_t self = getpid();
    if (atomic_exchange_explicit(&looked, self, memory_order_relaxed) == self)
        return;
    int saved = errno;
    atomic_store_explicit(&near, runtime_is_mapped(), memory_order_relaxed);
    errno = saved;
}

bool cuda_is_near(void)
{
    return atomic_load_explicit(&near, memory_order_relaxed);
}

/* --- What a caller would have called without us -------------------------------------------------------- */

/*
 * A process may have several CUDA runtimes, and each caller must get its own: the one among the libraries
 * that the caller's object was linked with. Each object is looked at once and then stays loaded. Entries are
 * only added, each is complete before it is ready, and a duplicate does no harm.
 */
enum { CALLERS_MAX = 64 };

typedef struct Caller {
    uintptr_t start;
    uintptr_t end;
    void *real[CUDA_CALLS];
    atomic_bool ready;
} Caller;

static Caller callers[CALLERS_MAX];
static atomic_uint n_callers;

typedef struct ObjectSearch {
    uintptr_t address;
    Object found;
    bool is_found;
} ObjectSearch;

static int find_object(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    ObjectSearch *search = context;
    Object object = object_of(info);
    if (!object_holds(&object, search->address))
        return 0;
    search->found = object;
    return search->is_found = true;
}

static bool object_find(const void *address, Object *ret)
{
    ObjectSearch search = {.address = (uintptr_t)address};
    dl_iterate_phdr(find_object, &search);
    *ret = search.found;
    return search.is_found;
}

static void *handle_of(const Object *object)
{
    return object->name[0] == '\0' ? NULL : dlopen(object->name, RTLD_LAZY | RTLD_NOLOAD);
}

static int find_runtime(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    if (!info->dlpi_name || runtime_version(info->dlpi_name) == 0)
        return 0;
    *(const char **)context = info->dlpi_name;
    return 1;
}

static void *look_up_in(void *handle, CudaCall call)
{
    void *found = dlsym(handle, call_names[call]);
    return found == cuda_symbol(call) ? NULL : found;
}

static void *look_up(void *handle, CudaCall call)
{
    void *found = handle ? look_up_in(handle, call) : NULL;
    if (!found)
        found = look_up_in(RTLD_NEXT, call);
    const char *runtime = NULL;
    if (!found && dl_iterate_phdr(find_runtime, (void *)&runtime) &&
        (handle = dlopen(runtime, RTLD_LAZY | RTLD_NOLOAD))) {
        found = look_up_in(handle, call);
        dlclose(handle); /* undoes dlopen; the runtime stays loaded */
    }
    return found;
}

static void *caller_add(CudaCall call, const void *address)
{
    Object object;
    if (!object_find(address, &object))
        return look_up(NULL, call); /* code that was generated at run time */
    void *handle = handle_of(&object);
    void *real = look_up(handle, call);
    unsigned i = CALLERS_MAX;
    if (atomic_load_explicit(&n_callers, memory_order_relaxed) < CALLERS_MAX)
        i = atomic_fetch_add_explicit(&n_callers, 1, memory_order_relaxed);
    if (i < CALLERS_MAX) {
        callers[i].start = object.start;
        callers[i].end = object.end;
        for (CudaCall other = 0; other < CUDA_CALLS; other++)
            callers[i].real[other] = look_up(handle, other);
        atomic_store_explicit(&callers[i].ready, true, memory_order_release);
    } else if (handle)
        dlclose(handle);
    (void)dlerror(); /* the program must not see our errors */
    return real;
}

void *cuda_real(CudaCall call, const void *caller)
{
    for (size_t i = 0; i < CALLERS_MAX; i++) {
        if (!atomic_load_explicit(&callers[i].ready, memory_order_acquire))
            continue;
        if (callers[i].start <= (uintptr_t)caller && (uintptr_t)caller < callers[i].end)
            return callers[i].real[call];
    }
    return caller_add(call, caller);
}

/* --- Do PyTorch's copies go through us? ---------------------------------------------------------------- */

/*
 * To be proven: no copy that PyTorch makes from its pinned memory bypasses us.
 *
 * - The object that asks whether memory is pinned has reached us with this very question: its symbols are
 *   looked up in an order in which we come before the runtime. That object must import cudaMemcpyAsync, so
 * its copies are bound by the same rule. (An object with a statically linked runtime imports nothing, and
 * does not reach us at all.)
 *
 * - In it and in every library of PyTorch, each relocation for a function of ours that is already bound must
 *   be bound to ours. One that still points into its own object is bound at its first call.
 *
 * - None of them may import an asynchronous copy that we do not know.
 *
 * - The function that would have answered without us is in libcudart.so, of a version whose structures we
 *   know.
 *
 * PyTorch's own pinned memory does not see copies by others either (a library with a CUDA runtime of its own
 * inside, Triton, CuPy, a kernel that is given the address): it waits for the copies that PyTorch makes and
 * reuses a freed block regardless of others. Code that makes such a copy must keep the tensor until the copy
 * is done, with or without us.
 */
static const char *const harmless[] = {
    "cudaMemcpy",           "cudaMemcpy_ptds",
    "cudaMemcpy2D",         "cudaMemcpy2D_ptds",
    "cudaMemcpy3D",         "cudaMemcpy3D_ptds",
    "cudaMemcpyToSymbol",   "cudaMemcpyToSymbol_ptds",
    "cudaMemcpyFromSymbol", "cudaMemcpyFromSymbol_ptds",
    "cudaMemcpyPeer",       "cudaMemcpyPeerAsync", /* between devices */
};

typedef struct Proof {
    const void *caller;
    bool imports_copy; /* the caller's object */
    bool refuted;
} Proof;

static CudaCall call_by_name(const char *name)
{
    CudaCall call = 0;
    while (call < CUDA_CALLS && strcmp(name, call_names[call]) != 0)
        call++;
    return call;
}

static bool is_harmless(const char *name)
{
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (strcmp(name, harmless[i]) == 0)
            return true;
    return !begins_with(name, "cudaMemcpy") && !begins_with(name, "cudaGraphAddMemcpy");
}

/* glibc has turned these into addresses on most machines, and left them as offsets on some. */
static uintptr_t dynamic_address(const Object *object, uintptr_t value)
{
    return value < object->base ? object->base + value : value;
}

/* NOLINTBEGIN(performance-no-int-to-ptr): these tables consist of addresses */
static void relocations_check(const Object *object, uintptr_t table, size_t bytes, const ElfW(Sym) * symbols,
                              const char *strings, Proof *proof)
{
    const ElfW(Rela) *relocations = (const ElfW(Rela) *)table;
    for (size_t i = 0; i < bytes / sizeof *relocations; i++) {
        size_t symbol = ELF64_R_SYM(relocations[i].r_info);
        if (symbol == 0)
            continue;
        const char *name = strings + symbols[symbol].st_name;
        if (!begins_with(name, "cuda"))
            continue;
        CudaCall call = call_by_name(name);
        if (call == CUDA_CALLS) {
            proof->refuted = proof->refuted || !is_harmless(name);
            continue;
        }
        uintptr_t bound = *(const uintptr_t *)(object->base + relocations[i].r_offset);
        if (bound != (uintptr_t)cuda_symbol(call) && !object_holds(object, bound))
            proof->refuted = true;
        if ((call == CUDA_COPY || call == CUDA_COPY_PTSZ) && object_holds(object, (uintptr_t)proof->caller))
            proof->imports_copy = true;
    }
}

static void object_check(const Object *object, Proof *proof)
{
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    uintptr_t tables[2] = {0};
    size_t bytes[2] = {0};
    for (const ElfW(Dyn) *entry = object->dynamic; entry && entry->d_tag != DT_NULL; entry++) {
        uintptr_t address = dynamic_address(object, entry->d_un.d_ptr);
        switch (entry->d_tag) {
        case DT_SYMTAB:
            symbols = (const ElfW(Sym) *)address;
            break;
        case DT_STRTAB:
            strings = (const char *)address;
            break;
        case DT_RELA:
            tables[0] = address;
            break;
        case DT_RELASZ:
            bytes[0] = entry->d_un.d_val;
            break;
        case DT_JMPREL:
            tables[1] = address;
            break;
        case DT_PLTRELSZ:
            bytes[1] = entry->d_un.d_val;
            break;
        default:
            break;
        }
    }
    if (!symbols || !strings)
        return;
    for (size_t i = 0; i < 2; i++)
        if (tables[i])
            relocations_check(object, tables[i], bytes[i], symbols, strings, proof);
}
/* NOLINTEND(performance-no-int-to-ptr) */

static int check_one(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    Proof *proof = context;
    Object object = object_of(info);
    const char *name = base_name(object.name);
    if (object_holds(&object, (uintptr_t)proof->caller) || begins_with(name, "libtorch") ||
        begins_with(name, "libc10"))
        object_check(&object, proof);
    return 0;
}

static Cuda driver;

static bool driver_find(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return false;
    const struct {
        void *place;
        const char *name;
    } functions[] = {
        {&driver.context_now, "cuCtxGetCurrent"},
        {&driver.context_push, "cuCtxPushCurrent_v2"},
        {&driver.context_pop, "cuCtxPopCurrent_v2"},
        {&driver.host_register, "cuMemHostRegister_v2"},
        {&driver.host_unregister, "cuMemHostUnregister"},
        {&driver.event_create, "cuEventCreate"},
        {&driver.event_record, "cuEventRecord"},
        {&driver.event_query, "cuEventQuery"},
        {&driver.stream_context, "cuStreamGetCtx"},
        {&driver.stream_capturing, "cuStreamIsCapturing"},
        {&driver.stream_wait, "cuStreamSynchronize"},
        {&driver.capture_mode, "cuThreadExchangeStreamCaptureMode"},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(handle, functions[i].name);
        if (!found)
            return false;
        memcpy(functions[i].place, &found, sizeof found);
    }
    void *found = dlsym(handle, "cuStreamGetId");
    memcpy(&driver.stream_id, &found, sizeof found);
    return true;
}

typedef enum RuntimeProof { PROOF_NONE, PROOF_COMES, PROOF_YES, PROOF_NO } RuntimeProof;
static _Atomic RuntimeProof proven;

static bool prove(const void *caller)
{
    Proof proof = {.caller = caller};
    Object runtime;
    dl_iterate_phdr(check_one, &proof);
    const void *real = cuda_real(CUDA_ATTRIBUTES, caller);
    bool shown = proof.imports_copy && !proof.refuted && real && object_find(real, &runtime) &&
                 is_runtime(runtime.name) && driver_find();
    (void)dlerror();
    return shown;
}

bool cuda_is_ours(const void *caller)
{
    RuntimeProof known = PROOF_NONE;
    if (atomic_compare_exchange_strong_explicit(&proven, &known, PROOF_COMES, memory_order_acquire,
                                                memory_order_acquire)) {
        known = prove(caller) ? PROOF_YES : PROOF_NO;
        atomic_store_explicit(&proven, known, memory_order_release);
    }
    return known == PROOF_YES; /* no, while another thread is still proving it */
}

const Cuda *cuda_driver(void)
{
    return atomic_load_explicit(&proven, memory_order_acquire) == PROOF_YES ? &driver : NULL;
}
