/* SPDX-License-Identifier: Apache-2.0 */
#include <gnu/libc-version.h>
#include <jansson.h>
#include <sys/utsname.h>

#include "commit.h"
#include "http-server.h"
#include "kernel-features.h"
#include "preload-library.h"
#include "recording.h"
#include "text.h"
#include "version-text.h"
#include "version.h"
#include "watch-screen.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

enum { NAME_COLUMNS = 14 };

static void name_print(FILE *out, const char *name)
{
    fprintf(out, "%s%*s", name, (int)(NAME_COLUMNS - text_columns(text_of(name))), "");
}

static void row_print(FILE *out, const char *name, const char *value)
{
    name_print(out, name);
    fprintf(out, "%s\n", value);
}

static void libraries_print(FILE *out)
{
    const char *http = http_server_library();
    name_print(out, VERSION_LIBRARIES);
    fprintf(out, "glibc %s, jansson %s, %s, SQLite %s\n", gnu_get_libc_version(), jansson_version_str(),
            screen_library(), recording_library());
    name_print(out, "");
    if (http)
        fprintf(out, "libmicrohttpd %s\n", http);
    else
        fprintf(out, "%s\n", VERSION_NO_HTTP);
    char path[PATH_MAX];
    if (!guard_library(path))
        row_print(out, "", VERSION_NO_LIBRARY);
}

static void kernel_print(FILE *out)
{
    static const char *const names[FEATURES] = {
        [FEATURE_MEMFD] = FEATURE_NAME_MEMFD,
        [FEATURE_OFD_LOCKS] = FEATURE_NAME_OFD_LOCKS,
        [FEATURE_PROCMAP_QUERY] = FEATURE_NAME_PROCMAP_QUERY,
        [FEATURE_LEASES] = FEATURE_NAME_LEASES,
        [FEATURE_USER_NAMESPACES] = FEATURE_NAME_USER_NAMESPACES,
    };
    static const char *const words[] = {
        [DONT_KNOW] = FEATURE_UNKNOWN, [NO] = FEATURE_NO, [YES] = FEATURE_YES};
    struct utsname system;
    name_print(out, VERSION_KERNEL);
    if (uname(&system) == 0)
        fprintf(out, "%s %s, %s\n", system.sysname, system.release, system.machine);
    Root root;
    Tristate found[FEATURES] = {DONT_KNOW};
    if (root_open(NULL, &root) >= 0) {
        features_find(&root, found);
        root_close(&root);
    }
    for (KernelFeature feature = 0; feature < FEATURES; feature++) {
        name_print(out, "");
        fprintf(out, "%-3s  %s\n", _(words[found[feature]]), _(names[feature]));
    }
}

void version_print(FILE *out)
{
    fputs("shmguard " SHMGUARD_VERSION "\n", out);
    row_print(out, VERSION_COMMIT, COMMIT[0] ? COMMIT : VERSION_NOT_KNOWN);
    row_print(out, VERSION_COMPILER, COMPILER);
    libraries_print(out);
    kernel_print(out);
    row_print(out, VERSION_TORCH, VERSION_TORCH_TESTED);
}
