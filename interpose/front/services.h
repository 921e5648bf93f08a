/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The contract between the front (libbestride.so, what LD_PRELOAD names) and a back (libbestride-<abi>.so, one per MPI ABI).
 * Plain C, so that neither needs the other's C++ runtime. The version changes with any change here; a front that meets a
 * back of another version says so and leaves every slot on the MPI library. */
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BESTRIDE_SERVICES_VERSION 2

struct bestride_engagement;

/* What the front gives the back. All pointers stay valid until the process ends. */
struct bestride_front_services {
  unsigned version;
  /* The MPI library's own symbol (use PMPI_ names for own traffic), NULL if it has none. */
  void* (*library_symbol)(const char* name);
  /* Next definition of `name` after the front in the global scope, else the library's: what the application would reach
     without us. NULL if there is none. */
  void* (*next_symbol)(const char* name);
  /* Path of the front's own object. */
  const char* front_path;
  /* From now on `before` is called by the thread that calls a function which the back has not engaged and functions.tsv does not call
     local, under its MPI_ or PMPI_ name, before the call goes on to the library. It may call MPI. Its calls, and those the library makes
     of itself, come by here again. A call under way in another thread meanwhile may or may not be seen. Cannot be undone; only the first
     one counts. Until then nothing is paid for it. */
  void (*watch)(void (*before)(void));
  /* Engages more entry points, at any time and from any thread; each once. The array is read
     before it returns. A call under way in another thread meanwhile may still go to
     the library. */
  void (*lead)(const struct bestride_engagement* engagements, size_t count);
};

/* One entry point the back engages. The front stores what it would have jumped to without us in *next before the entry can
   be called, and then lets the slot of `name` point at `entry`. */
struct bestride_engagement {
  const char* name;
  void* entry;
  void** next;
};

struct bestride_back {
  unsigned version;
  const char* abi; /* "mpich", "openmpi", "mpi_abi" */
  size_t count;
  const struct bestride_engagement* engagements;
};

/* The one symbol a back exports. Called once, on the first MPI call, by the thread that makes it; other threads' first calls
   wait. Returns NULL if the back can't serve this library; then nothing is engaged. */
typedef const struct bestride_back* (*bestride_back_open_fn)(const struct bestride_front_services*);
#define BESTRIDE_BACK_OPEN "bestride_back_open"

#ifdef __cplusplus
}
#endif
