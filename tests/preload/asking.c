/* SPDX-License-Identifier: Apache-2.0 */
/* asking ACTION...: a program that is not linked with MPI. Asks in every way which MPI functions exist, at the start
 * and after each action, and prints the answers. Actions, some with a path after a colon:
 *   local, global, lazy, deepbind   dlopen, with RTLD_NOW or RTLD_LAZY; calls the plugin's functions
 *   promote                         dlopen of a loaded library with RTLD_GLOBAL
 *   close                           dlclose of everything that was opened
 *   reopen                          dlopen and dlclose, many times: the stub must be found each time
 *   threads                         other threads ask while the library is opened and closed
 *   child                           asks in a child process, too */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "asking.h"

void asking_library_ask(const char* when);

static const char* const names[] = {"MPI_Type_commit", "PMPI_Comm_size", "MPI_Abi_get_version", "MPI_Comm_spawn",
                                    "PMPI_Win_wait"};
static void* opened[16];
static int opened_count;

static void ask_handle(const char* when, const char* how, void* handle) {
  int found[5];
  for (int i = 0; i < 5; ++i) found[i] = dlsym(handle, names[i]) != NULL;
  asking_print(when, "dlsym", how, found[0], found[1], found[2], found[3], found[4]);
}

/* The preload library shows no function that the process does not have. */
static void ask_preload_library(const char* when) {
  Dl_info info;
  void* const version = dlsym(RTLD_DEFAULT, "bestride_version");
  void* const own = version && dladdr(version, &info) ? dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY) : NULL;
  for (int i = 0; own && i < 5; ++i)
    if (dlsym(own, names[i]) && !dlsym(RTLD_DEFAULT, names[i]))
      printf("%s: %s in the preload library\n", when, names[i]);
}

static void ask(const char* when) {
  ask_handle(when, "RTLD_DEFAULT", RTLD_DEFAULT);
  ask_handle(when, "dlopen(NULL)", dlopen(NULL, RTLD_LAZY));
  ask_preload_library(when);
  ask_weak_references(when, "program");
  asking_library_ask(when);
  for (int i = 0; i < opened_count; ++i) {
    ask_handle(when, "handle", opened[i]);
    void (*plugin_ask)(const char*) = (void (*)(const char*))dlsym(opened[i], "plugin_ask");
    if (plugin_ask) plugin_ask(when);
  }
}

static int open_library(const char* path, int flags) {
  void* const handle = dlopen(path, flags);
  if (!handle) {
    printf("dlopen: %s\n", strstr(dlerror(), "undefined symbol"));
    return 1;
  }
  opened[opened_count++] = handle;
  void (*plugin_call)(void) = (void (*)(void))dlsym(handle, "plugin_call");
  if (plugin_call) plugin_call();
  return 0;
}

static int stop;
/* A function that no library has is never seen. */
static void* keep_asking(void* unused) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    if (dlsym(RTLD_DEFAULT, "MPI_Comm_spawn") || dlsym(RTLD_DEFAULT, "PMPI_Win_wait")) {
      puts("an absent function was seen");
      break;
    }
    dlsym(RTLD_DEFAULT, "MPI_Type_commit");
  }
  return unused;
}

static void ask_in_threads(const char* path) {
  pthread_t thread[3];
  for (int i = 0; i < 3; ++i) pthread_create(&thread[i], NULL, keep_asking, NULL);
  for (int i = 0; i < 300; ++i) {
    void* const handle = dlopen(path, RTLD_NOW | (i % 2 ? RTLD_GLOBAL : RTLD_LOCAL));
    void* const seen = dlsym(RTLD_DEFAULT, "MPI_Type_commit");
    if (!handle || (i % 2 && !seen)) puts("wrong while threads ask");
    dlclose(handle);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 3; ++i) pthread_join(thread[i], NULL);
}

/* The library is never called, so that nothing keeps it loaded. */
static void reopen(const char* path) {
  void* const version = dlsym(RTLD_DEFAULT, "bestride_version");
  Dl_info preload, found;
  for (int i = 0; i < 20; ++i) {
    void* const handle = dlopen(path, RTLD_NOW);
    if (version && (!dladdr(version, &preload) || !dladdr(dlsym(handle, "MPI_Type_commit"), &found) ||
                    preload.dli_fbase != found.dli_fbase))
      printf("not redirected at load %d\n", i);
    dlclose(handle);
  }
}

static void ask_in_child(void) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    ask("child");
    fflush(stdout);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

static void act(const char* action, const char* path) {
  const size_t length = (size_t)(path - 1 - action);
  if (strncmp(action, "local", length) == 0) open_library(path, RTLD_NOW | RTLD_LOCAL);
  if (strncmp(action, "lazy", length) == 0) open_library(path, RTLD_LAZY | RTLD_LOCAL);
  if (strncmp(action, "global", length) == 0) open_library(path, RTLD_NOW | RTLD_GLOBAL);
  if (strncmp(action, "deepbind", length) == 0) open_library(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (strncmp(action, "promote", length) == 0) open_library(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
  if (strncmp(action, "reopen", length) == 0) reopen(path);
  if (strncmp(action, "threads", length) == 0) ask_in_threads(path);
}

int main(int argc, char** argv) {
  ask("start");
  for (int i = 1; i < argc; ++i) {
    const char* const colon = strchr(argv[i], ':');
    if (colon) act(argv[i], colon + 1);
    if (strcmp(argv[i], "child") == 0) ask_in_child();
    if (strcmp(argv[i], "close") == 0)
      while (opened_count > 0) dlclose(opened[--opened_count]);
    char when[64];
    snprintf(when, sizeof when, "after %.*s", colon ? (int)(colon - argv[i]) : 32, argv[i]);
    ask(when);
  }
  return 0;
}
