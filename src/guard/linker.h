/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the dynamic linker of a program does with our library in LD_PRELOAD. For the guard and the supervisor,
 * which both start programs.
 *
 * exec calls this in children of vfork and in signal handlers: it takes no lock, allocates nothing and may
 * change errno.
 */
#pragma once

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef enum Linker {
    LINKER_LOADS, /* also if there is none: a static program may pass the environment on to one that has it */
    LINKER_DECLINES, /* with a message: it has another word size */
    LINKER_FAILS,    /* and ends the program: it is musl's */
} Linker;

/* By system calls: open and read of libc are cancellation points, and exec is not. */
static inline int program_open(int directory, const char *path)
{
    if (syscall(SYS_faccessat, directory, path, X_OK) < 0)
        return -1;
    return (int)syscall(SYS_openat, directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static inline ssize_t program_read(int fd, void *ret, size_t size, uint64_t offset)
{
    return syscall(SYS_pread64, fd, ret, size, offset);
}

/* Where execvp looks. */
static inline int program_search(const char *file)
{
    char path[1024];
    if (strchr(file, '/'))
        return program_open(AT_FDCWD, file);
    const char *list = getenv("PATH");
    for (list = list ? list : "/bin:/usr/bin"; list;) {
        size_t n = strcspn(list, ":");
        int fits = snprintf(path, sizeof path, "%.*s%s%s", (int)n, list, n > 0 ? "/" : "", file);
        int fd = fits > 0 && (size_t)fits < sizeof path ? program_open(AT_FDCWD, path) : -1;
        if (fd >= 0)
            return fd;
        list = list[n] ? list + n + 1 : NULL;
    }
    return -1;
}

typedef ElfW(Ehdr) ElfHead;
typedef ElfW(Phdr) ElfPart;

static inline Linker linker_read(int fd, const ElfPart *part)
{
    char path[256];
    size_t size = part->p_filesz < sizeof path - 1 ? part->p_filesz : sizeof path - 1;
    ssize_t n = program_read(fd, path, size, part->p_offset);
    path[n > 0 ? n : 0] = '\0';
    return strstr(path, "ld-musl") ? LINKER_FAILS : LINKER_LOADS;
}

static inline Linker elf_linker(int fd, const ElfHead *head)
{
    static const unsigned char class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    if (head->e_ident[EI_CLASS] != class)
        return LINKER_DECLINES;
    for (unsigned i = 0; i < head->e_phnum; i++) {
        ElfPart part;
        if (program_read(fd, &part, sizeof part, head->e_phoff + (uint64_t)i * head->e_phentsize) !=
            sizeof part)
            break;
        if (part.p_type == PT_INTERP)
            return linker_read(fd, &part);
    }
    return LINKER_LOADS;
}

/* The interpreter of a script that starts with these bytes; -1: it is not a script. */
static inline int interpreter_open(char *head, size_t n)
{
    if (n < 3 || head[0] != '#' || head[1] != '!')
        return -1;
    head[n - 1] = '\0';
    char *path = head + 2 + strspn(head + 2, " \t");
    path[strcspn(path, " \t\n")] = '\0';
    return program_open(AT_FDCWD, path);
}

/* Takes ownership of fd. A program that cannot be read is assumed to be an ordinary one. */
static inline Linker program_linker(int fd)
{
    enum { SCRIPTS_MAX = 4 };
    union {
        ElfHead elf;
        char text[256];
    } head;
    Linker linker = LINKER_LOADS;
    for (int depth = 0; fd >= 0 && depth < SCRIPTS_MAX; depth++) {
        ssize_t n = program_read(fd, &head, sizeof head, 0);
        if (n >= (ssize_t)sizeof head.elf && memcmp(head.elf.e_ident, ELFMAG, SELFMAG) == 0) {
            linker = elf_linker(fd, &head.elf);
            break;
        }
        int next = interpreter_open(head.text, n > 0 ? (size_t)n : 0);
        syscall(SYS_close, fd);
        fd = next;
    }
    if (fd >= 0)
        syscall(SYS_close, fd);
    return linker;
}
