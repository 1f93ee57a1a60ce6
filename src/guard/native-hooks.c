/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guard.h"
#include "linker-versions.h"
#include "native-hooks.h"

/*
 * Calls of malloc and its relatives pass through us only while a window is open: then the addresses that the
 * loaded libraries call them by (their global offset tables) are exchanged, and afterwards put back. A
 * process that is never asked pays nothing, which interposed symbols would not allow.
 *
 * An address is exchanged only if it is that of the function that the whole program uses. So a library with
 * an allocator of its own keeps it, and what the function returns never changes. One that the linker has not
 * bound yet says nothing of what it will be, so it stays: a library that is bound at the first call is not
 * seen before the window after it.
 *
 * The tables are found anew each time, under a lock of the linker's (dl_iterate_phdr): no library can come or
 * go meanwhile, and nothing is remembered about one. A library that is loaded during a window is not seen.
 *
 * That lock does not keep another thread from relocating a library that is already listed. Its last step is
 * to make the pages that it has relocated read-only (RELRO). So only libraries are touched whose pages are
 * all read-only; in the others, and in those without such pages, nothing is known, and nothing is done. A
 * page is made writable for the moment of the exchange, and read-only again, as it was. What is read-only is
 * read from /proc/self/maps before the lock is taken. If a library came or went in between, the addresses may
 * be another one's by now, and all is read again. Putting back needs no such proof: an address of ours is
 * where we have put it, and a library that is loaded in the place of another one has none.
 *
 * Not exchanged: our own addresses, glibc's, the linker's; and in Python itself only those of free and
 * realloc, because tracemalloc sees what Python allocates.
 *
 * A call that has passed through us may return after the addresses were put back: our code stays. fork: a
 * child's calls go on passing through, and nothing is sampled there (native_forget); to put them back there
 * the linker's lock would be needed, which another thread may have had. A window of the child's own finds
 * our addresses there already, and puts them back at its end.
 */

#if defined(__x86_64__)
enum { SLOT = R_X86_64_JUMP_SLOT, DATA = R_X86_64_GLOB_DAT, KNOWN_MACHINE = 1 };
#elif defined(__aarch64__)
enum { SLOT = R_AARCH64_JUMP_SLOT, DATA = R_AARCH64_GLOB_DAT, KNOWN_MACHINE = 1 };
#else
enum { SLOT = -1, DATA = -1, KNOWN_MACHINE = 0 };
#endif

enum { RANGES_MOST = 8192, TRIES_MOST = 8 };

/* Libraries that have ever come, and gone. */
typedef struct LibraryCounts {
    unsigned long long came;
    unsigned long long went;
} LibraryCounts;

typedef struct Exchange {
    NativeHook *hooks;
    size_t n;
    bool back;
    NativeFiles *files;
    uintptr_t page;
    LibraryCounts counts; /* when read_only was filled */
    bool outdated;
    size_t exchanged;
} Exchange;

/* Of private mappings, in order. All callers have the interpreter's lock. */
static struct {
    uintptr_t start;
    uintptr_t end;
} read_only[RANGES_MOST];
static size_t read_only_n;

/* Of one loaded file. */
typedef struct Tables {
    uintptr_t base;
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Rela) * plt;
    size_t plt_n;
    const ElfW(Rela) * data;
    size_t data_n;
    size_t data_relative; /* that come first, and have no name */
    uintptr_t relro;
    uintptr_t relro_end;
    uintptr_t low; /* of all that is loaded */
    uintptr_t high;
    bool of_python;
} Tables;

/* glibc makes these absolute, except on the vdso and where the section is read-only. */
static uintptr_t absolute(uintptr_t base, uintptr_t value)
{
    return value < base ? base + value : value;
}

static bool tables_find(const struct dl_phdr_info *info, Tables *ret)
{
    Tables tables = {.base = info->dlpi_addr, .low = UINTPTR_MAX};
    const ElfW(Dyn) *dynamic = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)start;
        if (header->p_type == PT_GNU_RELRO) {
            tables.relro = start;
            tables.relro_end = start + header->p_memsz;
        }
        if (header->p_type == PT_LOAD) {
            tables.low = start < tables.low ? start : tables.low;
            tables.high = start + header->p_memsz > tables.high ? start + header->p_memsz : tables.high;
        }
    }
    size_t plt_bytes = 0;
    size_t data_bytes = 0;
    bool rela = true;
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        uintptr_t value = dynamic->d_un.d_val;
        uintptr_t address = absolute(tables.base, value);
        switch (dynamic->d_tag) {
        case DT_SYMTAB:
            tables.symbols = (const ElfW(Sym) *)address;
            break;
        case DT_STRTAB:
            tables.names = (const char *)address;
            break;
        case DT_JMPREL:
            tables.plt = (const ElfW(Rela) *)address;
            break;
        case DT_PLTRELSZ:
            plt_bytes = value;
            break;
        case DT_PLTREL:
            rela = value == DT_RELA;
            break;
        case DT_RELA:
            tables.data = (const ElfW(Rela) *)address;
            break;
        case DT_RELASZ:
            data_bytes = value;
            break;
        case DT_RELACOUNT:
            tables.data_relative = value;
            break;
        default:
            break;
        }
    }
    tables.plt_n = tables.plt && rela ? plt_bytes / sizeof(ElfW(Rela)) : 0;
    tables.data_n = tables.data ? data_bytes / sizeof(ElfW(Rela)) : 0;
    *ret = tables;
    return tables.symbols && tables.names && tables.low < tables.high;
}

/* --- What is read-only -------------------------------------------------------------------------------- */

static void mapping_note(const char *line)
{
    unsigned long start = 0;
    unsigned long end = 0;
    char protection[5] = "";
    if (sscanf(line, "%lx-%lx %4s", &start, &end, protection) != 3 || strcmp(protection, "r--p") != 0)
        return;
    if (read_only_n > 0 && read_only[read_only_n - 1].end == start)
        read_only[read_only_n - 1].end = end;
    else if (read_only_n < RANGES_MOST) {
        read_only[read_only_n].start = start;
        read_only[read_only_n++].end = end;
    }
}

/* What cannot be read counts as not read-only. */
static void mappings_read(void)
{
    static char buffer[1 << 14];
    size_t size = 0;
    read_only_n = 0;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    for (ssize_t n; (n = read(fd, buffer + size, sizeof buffer - 1 - size)) > 0;) {
        size += (size_t)n;
        buffer[size] = '\0';
        char *line = buffer;
        for (char *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            mapping_note(line);
        }
        size -= (size_t)(line - buffer);
        memmove(buffer, line, size);
    }
    real_close(fd);
}

static bool is_read_only(uintptr_t start, uintptr_t end)
{
    for (size_t i = 0; i < read_only_n; i++)
        if (read_only[i].start <= start && end <= read_only[i].end)
            return true;
    return false;
}

/* The pages that the linker makes read-only when it has relocated the library. */
static bool is_relocated(const Exchange *exchange, const Tables *tables)
{
    uintptr_t start = tables->relro & ~(exchange->page - 1);
    uintptr_t end = tables->relro_end & ~(exchange->page - 1);
    return start < end && is_read_only(start, end);
}

/* --- The exchange ------------------------------------------------------------------------------------- */

static bool is_inside(const Tables *tables, uintptr_t address)
{
    return address >= tables->low && address < tables->high;
}

static NativeHook *hook_of(const Exchange *exchange, const Tables *tables, const ElfW(Rela) * entry)
{
    unsigned long type = ELF64_R_TYPE(entry->r_info);
    if (type != (unsigned long)SLOT && type != (unsigned long)DATA)
        return NULL;
    const char *name = tables->names + tables->symbols[ELF64_R_SYM(entry->r_info)].st_name;
    for (size_t i = 0; i < exchange->n; i++)
        if (strcmp(name, exchange->hooks[i].name) == 0)
            return tables->of_python && exchange->hooks[i].allocates ? NULL : &exchange->hooks[i];
    return NULL;
}

static void slot_write(const Exchange *exchange, const Tables *tables, _Atomic(uintptr_t) *slot,
                       uintptr_t value)
{
    uintptr_t page = (uintptr_t)slot & ~(exchange->page - 1);
    bool locked = (uintptr_t)slot >= (tables->relro & ~(exchange->page - 1)) &&
                  (uintptr_t)slot < (tables->relro_end & ~(exchange->page - 1));
    if (locked && real_mprotect((void *)page, exchange->page, PROT_READ | PROT_WRITE) < 0)
        return;
    atomic_store_explicit(slot, value, memory_order_release);
    if (locked)
        (void)real_mprotect((void *)page, exchange->page, PROT_READ);
}

static void entry_exchange(Exchange *exchange, const Tables *tables, const ElfW(Rela) * entry)
{
    const NativeHook *hook = hook_of(exchange, tables, entry);
    if (!hook || !hook->real)
        return;
    _Atomic(uintptr_t) *slot = (_Atomic(uintptr_t) *)(tables->base + entry->r_offset);
    uintptr_t ours = (uintptr_t)hook->ours;
    uintptr_t real = (uintptr_t)hook->real;
    uintptr_t now = atomic_load_explicit(slot, memory_order_acquire);
    uintptr_t wanted = exchange->back ? real : ours;
    if (now == (exchange->back ? ours : real))
        slot_write(exchange, tables, slot, wanted);
    else if (now != wanted)
        return;
    exchange->exchanged++;
}

static bool name_has(const char *path, const char *part)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    return strncmp(file, part, strlen(part)) == 0;
}

static bool file_note(NativeFile *file, const Tables *tables)
{
    if (!is_inside(tables, (uintptr_t)file->address))
        return false;
    file->low = tables->low;
    file->high = tables->high;
    return true;
}

static LibraryCounts counts_of(const struct dl_phdr_info *info)
{
    return (LibraryCounts){info->dlpi_adds, info->dlpi_subs};
}

static int counts_find(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    ((Exchange *)context)->counts = counts_of(info);
    return 1; /* they are the same for all */
}

static int file_exchange(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    Exchange *exchange = context;
    LibraryCounts counts = counts_of(info);
    exchange->outdated =
        !exchange->back && (counts.came != exchange->counts.came || counts.went != exchange->counts.went);
    if (exchange->outdated)
        return 1;
    Tables tables;
    if (!tables_find(info, &tables))
        return 0;
    (void)file_note(&exchange->files->allocator, &tables);
    tables.of_python = file_note(&exchange->files->python, &tables);
    const char *path = info->dlpi_name ? info->dlpi_name : "";
    if (name_has(path, "libc.so") || name_has(path, "ld-linux") || name_has(path, "linux-vdso") ||
        name_has(path, "libc-") || name_has(path, "ld-") || is_inside(&tables, (uintptr_t)file_exchange))
        return 0;
    if (!exchange->back && !is_relocated(exchange, &tables))
        return 0;
    for (size_t i = 0; i < tables.plt_n; i++)
        entry_exchange(exchange, &tables, &tables.plt[i]);
    for (size_t i = tables.data_relative; i < tables.data_n; i++)
        entry_exchange(exchange, &tables, &tables.data[i]);
    return 0;
}

/* In a program that is not position-independent and takes the function's address, its address for everybody
 * is that of a stub in the program; libraries call the function itself. */
void *native_function_find(const char *name)
{
    Dl_info info;
    ElfW(Sym) *symbol = NULL;
    void *found = dlsym(RTLD_DEFAULT, name);
    bool stub = found && dladdr1(found, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol &&
                symbol->st_shndx == SHN_UNDEF;
    if (stub)
        found = dlsym(RTLD_NEXT, name);
    (void)dlerror(); /* the program must not see our errors */
    return found;
}

size_t native_hooks_exchange(NativeHook *hooks, size_t n, bool back, NativeFiles *files)
{
    Exchange exchange = {.hooks = hooks, .n = n, .back = back, .files = files, .page = getauxval(AT_PAGESZ)};
    for (int i = 0; i < TRIES_MOST && KNOWN_MACHINE && exchange.page > 0; i++) {
        if (!back) {
            (void)dl_iterate_phdr(counts_find, &exchange);
            mappings_read();
        }
        (void)dl_iterate_phdr(file_exchange, &exchange);
        if (!exchange.outdated)
            break;
    }
    return exchange.exchanged;
}
