/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The interface between the preload library (libbestride.so, named by LD_PRELOAD) and a backend (libbestride-<abi>.so,
 * one per MPI ABI). Plain C, so that neither needs the other's C++ runtime. The version changes with any change in this
 * file. If the versions of the two libraries differ, the preload library reports it and leaves every slot on the MPI
 * library. */
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BESTRIDE_SERVICES_VERSION 3

struct bestride_interception;

/* Functions that the preload library provides to the backend. All pointers stay valid until the process ends. */
struct bestride_preload_services {
  unsigned version;
  /* The MPI library's own symbol (use PMPI_ names for Bestride's own calls); NULL if it has none. */
  void* (*library_symbol)(const char* name);
  /* The next definition of `name` after the preload library in the global scope, else the MPI library's: what the
     application would reach without the preload. NULL if there is none. */
  void* (*next_symbol)(const char* name);
  /* Path of the preload library. */
  const char* preload_path;
  /* Installs a pre-call hook. From now on a thread that calls a function which the backend has not intercepted, under
     its MPI_ or PMPI_ name, calls `before` first, unless the hook of the function is `never` in functions.tsv; then the
     call goes on to the MPI library. `before` may call MPI. Calls that it makes, and calls that the MPI library makes
     to itself, also trigger the hook. A call that another thread is making meanwhile may or may not trigger it. The
     hook can't be removed; only the first call of this function has an effect. Without a hook there is no cost. */
  void (*watch)(void (*before)(void));
  /* Intercepts more functions. May be called at any time from any thread; each function may be named once. The array is
     read before the call returns. A call that another thread is making meanwhile may still go to the MPI library. */
  void (*intercept)(const struct bestride_interception* interceptions, size_t count);
  /* Puts an entry in front of each function, whether or not it is intercepted now or later. *next continues the call:
     in the backend's entry if the function is intercepted, else where the slot leads, including the pre-call hook. Only
     while the backend is opened; each function may be named once. Functions that the table lacks are ignored. */
  void (*wrap)(const struct bestride_interception* wrappers, size_t count);
};

/* One function that the backend intercepts. Before the entry can be called, the preload library stores into *next what
   it would have jumped to without the backend; then it lets the slot of `name` point at `entry`. */
struct bestride_interception {
  const char* name;
  void* entry;
  void** next;
};

struct bestride_backend {
  unsigned version;
  const char* abi; /* "mpich", "openmpi", "mpi_abi" */
  size_t count;
  const struct bestride_interception* interceptions;
};

/* The only symbol that a backend exports. Called once, on the first MPI call, by the thread that makes it; the first
   calls of other threads wait. Returns NULL if the backend can't serve this MPI library; then nothing is
   intercepted. */
typedef const struct bestride_backend* (*bestride_backend_open_fn)(const struct bestride_preload_services*);
#define BESTRIDE_BACKEND_OPEN "bestride_backend_open"

#ifdef __cplusplus
}
#endif
