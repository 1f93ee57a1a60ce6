/* SPDX-License-Identifier: Apache-2.0 */
#include <alloca.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard.h"
#include "preload.h"

/*
 * A program that this process starts must be guarded too, whatever happened to the environment in between: a
 * script that sets LD_PRELOAD for an allocator, a launcher with an environment of its own,
 * os.environ.clear(). So what the supervisor had set for this process is restored in an environment that
 * lacks it: our library, in front of others in LD_PRELOAD, and the settings below. Nothing is added
 *   - without a supervisor: a library that was preloaded by hand leaves environments alone;
 *   - to an environment with SHMGUARD=off: this switches the guard off for a program;
 *   - to one that names another supervisor: that is an inner run, which has set what it needs;
 *   - if our library is no longer readable here, or the program's dynamic linker cannot load it: the result
 *     would be an error message at best. A set-user-ID program ignores the library by itself.
 *
 * exec is called by children of vfork, which share their parent's memory, by signal handlers and by several
 * threads at once. So only our own stack is written to, no lock is taken, no memory is allocated, and files
 * are read by system calls, which are not cancellation points. An environment that lacks nothing, which is
 * the ordinary case, is passed on unchanged and costs one look at each of its strings. Any other takes no
 * more stack than ENTRIES_MAX pointers and PRELOAD_MAX bytes; a larger environment is passed on unchanged.
 * errno is that of the real call.
 *
 * posix_spawn returns when its child has left our memory, so the array may be in this frame. system() and
 * popen() call glibc's posix_spawn internally, where no library can interpose it, with the process's own
 * environment. If that lacks something, the shell is told to export it first.
 */
enum { ENTRIES_MAX = 1024, PRELOAD_MAX = 8192, COMMAND_MAX = 16384, SETTING_MAX = 160 };

static const char preload_name[] = "LD_PRELOAD";

typedef struct Setting {
    const char *name;
    char text[SETTING_MAX]; /* "NAME=value" if this process was started with it, else "" */
} Setting;

/* Set once, by the constructor, and only read afterwards. */
static Setting settings[] = {
    {PROTOCOL_ENVIRONMENT, ""}, {PROTOCOL_INNER, ""}, {PROTOCOL_ONLY_WITNESS, ""},
    {PROTOCOL_PIN, ""},         {PROTOCOL_LANE, ""},
};
enum { N_SETTINGS = sizeof settings / sizeof settings[0] };
static char library[PATH_MAX]; /* "": not known, or nothing must be passed on */

void exec_start(const char *path)
{
    size_t n = path ? strlen(path) : 0;
    if (!supervisor_is() || n == 0 || n >= sizeof library || path[0] != '/' || path[strcspn(path, ": '")])
        return;
    memcpy(library, path, n + 1);
    for (size_t i = 0; i < N_SETTINGS; i++) {
        const char *value = getenv(settings[i].name);
        size_t name = strlen(settings[i].name);
        if (!value || !*value || name + 1 + strlen(value) >= SETTING_MAX || strchr(value, '\''))
            continue;
        memcpy(settings[i].text, settings[i].name, name);
        settings[i].text[name] = '=';
        memcpy(settings[i].text + name + 1, value, strlen(value) + 1);
    }
}

/* --- What an environment lacks ------------------------------------------------------------------------ */

typedef struct Lack {
    size_t n;            /* strings in the environment */
    const char *preload; /* the value of LD_PRELOAD: of several, the last, as in the dynamic linker */
    bool library;
    bool settings[N_SETTINGS];
} Lack;

/* The value if text is a setting of that name, else NULL. */
static const char *value_of(const char *text, const char *name)
{
    size_t n = strlen(name);
    return strncmp(text, name, n) == 0 && text[n] == '=' ? text + n + 1 : NULL;
}

static bool setting_is_there(const char *text, size_t i)
{
    const char *value = value_of(text, settings[i].name);
    return value && *value;
}

static bool lacks_any(const Lack *lack)
{
    bool any = lack->library;
    for (size_t i = 0; i < N_SETTINGS; i++)
        any |= lack->settings[i];
    return any;
}

/* False: the environment stays as it is. */
static bool environment_lacks(char *const *given, Lack *ret)
{
    Lack lack = {.preload = ""};
    if (library[0] == '\0')
        return false;
    for (size_t i = 0; i < N_SETTINGS; i++)
        lack.settings[i] = settings[i].text[0] != '\0';
    for (; given && given[lack.n]; lack.n++) {
        const char *text = given[lack.n];
        const char *preload = value_of(text, preload_name);
        if (preload)
            lack.preload = preload;
        if (strcmp(text, PROTOCOL_OFF) == 0 || lack.n >= ENTRIES_MAX ||
            (setting_is_there(text, 0) && strcmp(text, settings[0].text) != 0))
            return false;
        for (size_t i = 0; i < N_SETTINGS; i++)
            if (setting_is_there(text, i))
                lack.settings[i] = false;
    }
    lack.library = !preload_holds(lack.preload, library);
    *ret = lack;
    return lacks_any(&lack) && strlen(lack.preload) + sizeof library < PRELOAD_MAX;
}

/* Including a quote at either end. */
static size_t preload_size(const Lack *lack)
{
    return sizeof preload_name + 2 + strlen(library) + strlen(lack->preload) + 2;
}

static void preload_write(const Lack *lack, const char *quote, char *ret)
{
    char *end = stpcpy(stpcpy(stpcpy(ret, preload_name), "="), quote);
    stpcpy(preload_join(lack->preload, library, end), quote);
}

static bool is_replaced(const Lack *lack, const char *text)
{
    bool replaced = lack->library && value_of(text, preload_name);
    for (size_t i = 0; i < N_SETTINGS; i++)
        replaced |= lack->settings[i] && value_of(text, settings[i].name);
    return replaced;
}

/* ret has room for lack->n + N_SETTINGS + 2. */
static void environment_fill(char *const *given, const Lack *lack, char *preload, char **ret)
{
    for (size_t i = 0; i < lack->n; i++)
        if (!is_replaced(lack, given[i]))
            *ret++ = given[i];
    if (lack->library)
        *ret++ = preload;
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (lack->settings[i])
            *ret++ = settings[i].text;
    *ret = NULL;
}

/* --- Whether a program can be started with our library ------------------------------------------------ */

/* By system calls: open and read of libc are cancellation points, and exec is not. */
static int program_open(int directory, const char *path)
{
    if (syscall(SYS_faccessat, directory, path, X_OK) < 0)
        return -1;
    return (int)syscall(SYS_openat, directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static ssize_t program_read(int fd, void *ret, size_t size, uint64_t offset)
{
    return syscall(SYS_pread64, fd, ret, size, offset);
}

/* Where execvp looks. */
static int program_search(const char *file)
{
    char path[1024];
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

/* musl's linker tries to load our library, fails on it, and ends the program. */
static bool linker_is_ours(int fd, const ElfPart *part)
{
    static const char musl[] = "ld-musl";
    char path[256];
    size_t size = part->p_filesz < sizeof path - 1 ? part->p_filesz : sizeof path - 1;
    ssize_t n = program_read(fd, path, size, part->p_offset);
    path[n > 0 ? n : 0] = '\0';
    return !strstr(path, musl);
}

/* A program without a dynamic linker ignores LD_PRELOAD, and may pass the environment on to one that has it.
 */
static bool elf_takes(int fd, const ElfHead *head)
{
    static const unsigned char class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    if (head->e_ident[EI_CLASS] != class)
        return false;
    for (unsigned i = 0; i < head->e_phnum; i++) {
        ElfPart part;
        if (program_read(fd, &part, sizeof part, head->e_phoff + (uint64_t)i * head->e_phentsize) !=
            sizeof part)
            break;
        if (part.p_type == PT_INTERP)
            return linker_is_ours(fd, &part);
    }
    return true;
}

/* The interpreter of a script that starts with these bytes; -1: it is not a script. */
static int interpreter_open(char *head, size_t n)
{
    if (n < 3 || head[0] != '#' || head[1] != '!')
        return -1;
    head[n - 1] = '\0';
    char *path = head + 2 + strspn(head + 2, " \t");
    path[strcspn(path, " \t\n")] = '\0';
    return program_open(AT_FDCWD, path);
}

/* Takes ownership of fd. A program that cannot be read is assumed to be an ordinary one. */
static bool program_takes(int fd)
{
    enum { SCRIPTS_MAX = 4 };
    union {
        ElfHead elf;
        char text[256];
    } head;
    bool takes = true;
    for (int depth = 0; fd >= 0 && depth < SCRIPTS_MAX; depth++) {
        ssize_t n = program_read(fd, &head, sizeof head, 0);
        if (n >= (ssize_t)sizeof head.elf && memcmp(head.elf.e_ident, ELFMAG, SELFMAG) == 0) {
            takes = elf_takes(fd, &head.elf);
            break;
        }
        int next = interpreter_open(head.text, n > 0 ? (size_t)n : 0);
        syscall(SYS_close, fd);
        fd = next;
    }
    if (fd >= 0)
        syscall(SYS_close, fd);
    return takes;
}

static bool call_takes(const ExecCall *call)
{
    bool search = (call->kind == EXEC_SEARCH || call->kind == SPAWN_SEARCH) && !strchr(call->path, '/');
    bool empty = call->kind == EXEC_FD || (call->kind == EXEC_AT && call->path[0] == '\0');
    int fd = search  ? program_search(call->path)
             : empty ? (int)syscall(SYS_fcntl, call->fd, F_DUPFD_CLOEXEC, 0)
                     : program_open(call->kind == EXEC_AT ? call->fd : AT_FDCWD, call->path);
    return program_takes(fd);
}

/* --- The calls ---------------------------------------------------------------------------------------- */

static int call_make(const ExecCall *call, char *const *environment)
{
    switch (call->kind) {
    case EXEC_PATH:
        return real_execve(call->path, call->argv, environment);
    case EXEC_SEARCH:
        return real_execvpe(call->path, call->argv, environment);
    case EXEC_FD:
        return real_fexecve(call->fd, call->argv, environment);
    case EXEC_AT:
        return real_execveat(call->fd, call->path, call->argv, environment, call->flags);
    case SPAWN_PATH:
        return real_posix_spawn(call->pid, call->path, call->actions, call->attributes, call->argv,
                                environment);
    case SPAWN_SEARCH:
        return real_posix_spawnp(call->pid, call->path, call->actions, call->attributes, call->argv,
                                 environment);
    }
    errno = ENOSYS;
    return -1;
}

/* Not inlined: a signal handler on a small stack does not need this frame if its environment lacks nothing.
 */
static __attribute__((noinline)) int call_make_with(const ExecCall *call, char *const *given,
                                                    const Lack *lack)
{
    char *preload = alloca(preload_size(lack));
    char **environment = alloca((lack->n + N_SETTINGS + 2) * sizeof *environment);
    preload_write(lack, "", preload);
    environment_fill(given, lack, preload, environment);
    return call_make(call, environment);
}

static bool library_is_readable(void)
{
    return syscall(SYS_faccessat, AT_FDCWD, library, R_OK) == 0;
}

int exec_call(const ExecCall *call, char *const *given)
{
    Lack lack;
    if (!environment_lacks(given, &lack) || (call->kind != EXEC_FD && !call->path))
        return call_make(call, given);
    int saved = errno;
    if (lack.library)
        lack.library = library_is_readable() && call_takes(call);
    errno = saved;
    return call_make_with(call, given, &lack);
}

/* False: the command stays as it is. A quote in the present value would end ours. */
static bool shell_lacks(const char *command, Lack *ret)
{
    if (!command || strlen(command) >= COMMAND_MAX || !environment_lacks(environ, ret) ||
        strchr(ret->preload, '\''))
        return false;
    int saved = errno;
    ret->library = ret->library && library_is_readable();
    errno = saved;
    return lacks_any(ret); /* `export` without names would print the environment */
}

static size_t shell_size(const char *command, const Lack *lack)
{
    return sizeof "export ; " + preload_size(lack) + N_SETTINGS * (SETTING_MAX + 3) + strlen(command);
}

/* On the command's own first line, so that line numbers in the shell's messages stay right. */
static void shell_write(const char *command, const Lack *lack, char *ret, size_t size)
{
    size_t n = (size_t)snprintf(ret, size, "export ");
    if (lack->library) {
        preload_write(lack, "'", ret + n);
        n += strlen(ret + n);
    }
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (lack->settings[i])
            n += (size_t)snprintf(ret + n, size - n, " %s='%s'", settings[i].name,
                                  value_of(settings[i].text, settings[i].name));
    snprintf(ret + n, size - n, "; %s", command);
}

int exec_system(const char *command)
{
    Lack lack;
    if (!shell_lacks(command, &lack))
        return real_system(command);
    size_t size = shell_size(command, &lack);
    char *longer = alloca(size);
    shell_write(command, &lack, longer, size);
    return real_system(longer);
}

FILE *exec_popen(const char *command, const char *mode)
{
    Lack lack;
    if (!shell_lacks(command, &lack))
        return real_popen(command, mode);
    size_t size = shell_size(command, &lack);
    char *longer = alloca(size);
    shell_write(command, &lack, longer, size);
    return real_popen(longer, mode);
}
