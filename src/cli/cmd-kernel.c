/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli-text.h"
#include "command.h"

typedef struct KernelOptions {
    const char *python;
    const char *prefix;
    const char *name;
    const char *display_name;
} KernelOptions;

static const Option kernel_options[] = {
    {OPTION_TEXT, 0, "python", offsetof(KernelOptions, python), "PROGRAM",
     .help = N_("the Python of the kernel, which must have ipykernel (default: the first python3 in PATH)")},
    {OPTION_TEXT, 0, "prefix", offsetof(KernelOptions, prefix), "DIR",
     .help = N_("install for all users of this environment (default: for you)")},
    {OPTION_TEXT, 0, "name", offsetof(KernelOptions, name), "WORD",
     .help = N_("the directory of the kernel (default: shmguard)")},
    {OPTION_TEXT, 0, "display-name", offsetof(KernelOptions, display_name), "TEXT",
     .help = N_("what Jupyter calls the kernel (default: Python 3 (shmguard))")},
    {OPTION_END},
};

/* Jupyter accepts no other letters. */
static bool name_is_plain(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    return *name && strlen(name) < NAME_MAX && strspn(name, letters) == strlen(name) && *name != '.';
}

static int failed_complain(const char *path, int error)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    bool denied = error == EACCES || error == EPERM || error == EROFS;
    return complain(denied ? EX_NOPERM : EX_DATAERR, CLI_KERNEL_FAILED, buffer_text(&safe),
                    error_text(error));
}

/* --- The interpreter ------------------------------------------------------------------------------------ */

/* Starts the interpreter, which prints its own path if it has ipykernel. A positive errno, or 0. */
static int python_start(const char *python, int output, pid_t *ret_pid)
{
    static const char code[] = "import sys, ipykernel; sys.stdout.write(sys.executable)";
    char *const argv[] = {(char *)python, (char *)"-c", (char *)code, NULL};
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0)
        return error;
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    error = posix_spawnp(ret_pid, python, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* The absolute path of an interpreter that has ipykernel. */
static int python_find(const char *python, char path[static PATH_MAX])
{
    _cleanup_close_ int input = -EBADF;
    _cleanup_close_ int output = -EBADF;
    _cleanup_buffer_ Buffer safe = {0};
    _cleanup_buffer_ Buffer printed = {0};
    int ends[2];
    pid_t pid = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return complain(EX_SOFTWARE, CLI_NO_FORK, "kernel", error_text(errno));
    input = ends[0];
    output = ends[1];
    (void)text_escape(text_of(python), &safe);
    int error = python_start(python, output, &pid);
    if (error != 0)
        return complain(EX_UNAVAILABLE, CLI_NOT_STARTED, "kernel", buffer_text(&safe), error_text(error));
    fd_close(TAKE_FD(output));
    int status = 0;
    int r = buffer_read_fd(&printed, input, PATH_MAX - 1);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (r < 0 || status != 0 || buffer_text(&printed)[0] != '/')
        return complain(EX_UNAVAILABLE, CLI_KERNEL_NO_IPYKERNEL, buffer_text(&safe), buffer_text(&safe));
    stpcpy(path, buffer_text(&printed));
    return EX_OK;
}

/* --- The files ------------------------------------------------------------------------------------------ */

/* Where Jupyter looks for kernels of this user, or of the environment. */
static int file_name(const KernelOptions *options, const char *name, char path[static PATH_MAX])
{
    const struct {
        const char *directory;
        const char *below;
    } places[] = {
        {options->prefix, "/share/jupyter"},
        {getenv("JUPYTER_DATA_DIR"), ""},
        {getenv("XDG_DATA_HOME"), "/jupyter"},
        {getenv("HOME"), "/.local/share/jupyter"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        if (places[i].directory && *places[i].directory)
            return snprintf(path, PATH_MAX, "%s%s/kernels/%s/kernel.json", places[i].directory,
                            places[i].below, name) < PATH_MAX
                       ? EX_OK
                       : failed_complain(places[i].directory, ENAMETOOLONG);
    return complain(EX_UNAVAILABLE, CLI_KERNEL_NO_HOME);
}

/* Makes the directories above the file. If one cannot be made, the file cannot be either. */
static void directories_make(char path[static PATH_MAX])
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0777);
        *slash = '/';
    }
}

/* The supervisor forwards the signal of Jupyter's stop button to the kernel. */
static json_t *kernel_specification(const char *program, const char *python, const char *display_name)
{
    return json_pack("{s:[s,s,s,s,s,s,s,s,s], s:s, s:s, s:{s:b}}", "argv", program, "run", "--quiet", "--",
                     python, "-m", "ipykernel_launcher", "-f", "{connection_file}", "display_name",
                     display_name, "language", "python", "metadata", "debugger", 1);
}

static int kernel_install(const KernelOptions *options)
{
    const char *name = options->name ? options->name : "shmguard";
    const char *display_name = options->display_name ? options->display_name : "Python 3 (shmguard)";
    char file[PATH_MAX];
    char program[PATH_MAX];
    char python[PATH_MAX];
    _cleanup_buffer_ Buffer safe = {0};
    if (!name_is_plain(name)) {
        (void)text_escape(text_of(name), &safe);
        return complain(EX_USAGE, CLI_KERNEL_NAME, buffer_text(&safe));
    }
    int code = file_name(options, name, file);
    if (code != EX_OK)
        return code;
    if (!realpath("/proc/self/exe", program))
        return complain(EX_UNAVAILABLE, CLI_NO_PROC);
    code = python_find(options->python ? options->python : "python3", python);
    if (code != EX_OK)
        return code;

    json_t *specification = kernel_specification(program, python, display_name);
    if (!specification)
        return complain(EX_SOFTWARE, CLI_JSON_FAILED, error_text(EINVAL)); /* not UTF-8 */
    directories_make(file);
    int r = json_dump_file(specification, file, JSON_INDENT(2));
    int error = errno;
    json_decref(specification);
    if (r < 0)
        return failed_complain(file, error);
    (void)text_escape(text_of(file), &safe);
    printf(CLI_KERNEL_INSTALLED, buffer_text(&safe), display_name, name);
    putchar('\n');
    return EX_OK;
}

static int kernel_run(const Command *command, int argc, char **argv)
{
    KernelOptions options = {0};
    Operands operands;
    int code = EX_OK;
    if (!command_parse(command, argc, argv, &options, &operands, &code))
        return code;
    if (operands.n == 0 || strcmp(operands.items[0], "install") != 0)
        return complain(EX_USAGE, CLI_KERNEL_WHAT);
    return kernel_install(&options);
}

const Command command_kernel = {
    .name = "kernel",
    .summary = N_("run notebooks under the guard, by a kernel for Jupyter"),
    .operands = "install",
    .operands_most = 1,
    .about = N_("Installs a kernel for Jupyter that runs Python under shmguard run. Choose it in the "
                "notebook's menu of kernels; \"jupyter kernelspec remove\" removes it."),
    .options = kernel_options,
    .run = kernel_run,
};
