/* SPDX-License-Identifier: Apache-2.0 */
#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard.h"
#include "linker.h"
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
 * From the environment of a program whose dynamic linker is musl's, our library is removed, because that
 * linker ends a program if it cannot load one.
 *
 * exec is called by children of vfork, which share their parent's memory, by signal handlers and by several
 * threads at once. So only our own stack is written to, no lock is taken, no memory is allocated, and files
 * are read by system calls, which are not cancellation points. An environment that lacks nothing, which is
 * the ordinary case, is passed on unchanged and costs one look at each of its strings, and one at the
 * program. Any other takes no more stack than ENTRIES_MAX pointers and PRELOAD_MAX bytes; a larger
 * environment is passed on unchanged. errno is that of the real call.
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
    const char *preload; /* the value of LD_PRELOAD */
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

/* The value of LD_PRELOAD, of several the last, as in the dynamic linker; "" if there is none. */
static const char *preload_find(char *const *given, size_t *ret_n)
{
    const char *found = "";
    size_t n = 0;
    for (; given && given[n]; n++) {
        const char *value = value_of(given[n], preload_name);
        if (value)
            found = value;
    }
    *ret_n = n;
    return found;
}

/* False: the environment stays as it is. */
static bool environment_lacks(char *const *given, Lack *ret)
{
    Lack lack;
    lack.preload = preload_find(given, &lack.n);
    if (library[0] == '\0' || lack.n > ENTRIES_MAX)
        return false;
    for (size_t i = 0; i < N_SETTINGS; i++)
        lack.settings[i] = settings[i].text[0] != '\0';
    for (size_t e = 0; e < lack.n; e++) {
        const char *text = given[e];
        if (strcmp(text, PROTOCOL_OFF) == 0 ||
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

static Linker call_linker(const ExecCall *call)
{
    bool empty = call->kind == EXEC_FD || (call->kind == EXEC_AT && call->path[0] == '\0');
    int fd = call->kind == EXEC_SEARCH || call->kind == SPAWN_SEARCH ? program_search(call->path)
             : empty ? (int)syscall(SYS_fcntl, call->fd, F_DUPFD_CLOEXEC, 0)
                     : program_open(call->kind == EXEC_AT ? call->fd : AT_FDCWD, call->path);
    return program_linker(fd);
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

/* With what the environment lacks. */
static int call_complete(const ExecCall *call, char *const *given, Linker linker)
{
    Lack lack;
    if (!environment_lacks(given, &lack))
        return call_make(call, given);
    int saved = errno;
    if (lack.library)
        lack.library = linker == LINKER_LOADS && library_is_readable();
    errno = saved;
    return call_make_with(call, given, &lack);
}

/* Without our library, whatever the environment says about us: the program would not start. */
static __attribute__((noinline)) int call_make_without(const ExecCall *call, char *const *given, size_t n,
                                                       const char *list)
{
    char *preload = alloca(sizeof preload_name + 1 + strlen(list));
    char **environment = alloca((n + 1) * sizeof *environment);
    preload_remove(list, library, stpcpy(stpcpy(preload, preload_name), "="));
    for (size_t i = 0; i < n; i++)
        environment[i] = value_of(given[i], preload_name) ? preload : given[i];
    environment[n] = NULL;
    return call_complete(call, environment, LINKER_FAILS);
}

int exec_call(const ExecCall *call, char *const *given)
{
    if (library[0] == '\0' || (call->kind != EXEC_FD && !call->path))
        return call_make(call, given);
    int saved = errno;
    Linker linker = call_linker(call);
    errno = saved;
    size_t n = 0;
    const char *list = preload_find(given, &n);
    if (linker == LINKER_FAILS && preload_names(list, library) && n <= ENTRIES_MAX &&
        strlen(list) < PRELOAD_MAX)
        return call_make_without(call, given, n, list);
    return call_complete(call, given, linker);
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
