/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that embeds Python, ends it and starts it again, and makes semaphores of multiprocessing's name
 * at every point: embed-python LIBPYTHON SCRIPT SCRIPT is run in the first interpreter.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *library;

static void *function(const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "no %s: %s\n", name, dlerror());
        exit(1);
    }
    return found;
}

static void semaphore_make(void)
{
    char name[40];
    snprintf(name, sizeof name, "/mp-embed-%d", (int)getpid());
    if (sem_open(name, O_CREAT | O_EXCL, 0600, 1U) == SEM_FAILED)
        exit(1);
    sem_unlink(name);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 64;
    semaphore_make();
    library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        return 1;
    void (*start)(int) = (void (*)(int))function("Py_InitializeEx");
    int (*end)(void) = (int (*)(void))function("Py_FinalizeEx");
    int (*run)(const char *) = (int (*)(const char *))function("PyRun_SimpleString");
    char script[4096];
    snprintf(script, sizeof script, "exec(open('%s').read())", argv[2]);
    semaphore_make(); /* before it is started */
    start(0);
    semaphore_make();
    if (run(script) != 0)
        return 2;
    semaphore_make(); /* the call that it asks for comes while the interpreter ends */
    if (end() != 0)
        return 3;
    semaphore_make(); /* after the end */
    start(0);
    semaphore_make();
    if (run("import multiprocessing\nlocks = [multiprocessing.Lock() for _ in range(10)]") != 0)
        return 4;
    semaphore_make();
    if (end() != 0)
        return 5;
    puts("ended well");
    return 0;
}
