// SPDX-License-Identifier: Apache-2.0
#include "interpose/preload/open_backend.hpp"

#include <dlfcn.h>
#include <link.h>
#include <strings.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "base/launcher_rank.hpp"
#include "base/message.hpp"
#include "interpose/preload/library.hpp"
#include "interpose/preload/services.h"
#include "interpose/preload/slots.hpp"
#include "interpose/preload/watch.hpp"

namespace bestride::preload {
namespace {

char own_path[PATH_MAX];

bool disabled() noexcept {
  const char* text = std::getenv("BESTRIDE_DISABLE");
  if (!text) return false;
  for (const char* yes : {"1", "on", "yes", "true"})
    if (::strcasecmp(text, yes) == 0) return true;  // as parse_flag()
  return false;
}

// If libbestride.so is preloaded twice (for example from two installations), only the first copy in the search order
// accelerates calls. A second one would do the same work again.
bool another_copy_is_in_front() noexcept {
  void* first = dlsym(RTLD_DEFAULT, "bestride_slot_target");
  return first && !is_ours(first);
}

// The directory comes from the dynamic loader. It is absolute even if LD_PRELOAD held a relative path and the program
// has changed its working directory since.
bool find_own_path() noexcept {
  Dl_info info;
  link_map* map = nullptr;
  char directory[PATH_MAX];
  if (!dladdr1(reinterpret_cast<void*>(&open_backend), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) ||
      dlinfo(map, RTLD_DI_ORIGIN, directory) != 0)
    return false;
  const char* slash = std::strrchr(info.dli_fname, '/');
  const int length = std::snprintf(own_path, sizeof own_path, "%s/%s", directory, slash ? slash + 1 : info.dli_fname);
  return length > 0 && length < static_cast<int>(sizeof own_path);
}

bool backend_path(const char* abi, char (&path)[PATH_MAX]) noexcept {
  const int directory = static_cast<int>(std::strrchr(own_path, '/') - own_path);
  const int length = std::snprintf(path, sizeof path, "%.*s/libbestride-%s.so", directory, own_path, abi);
  return length > 0 && length < static_cast<int>(sizeof path);
}

// MPI_X and PMPI_X names are treated alike. Which of them carry the application's calls depends on the ABI (the Fortran
// bindings of Open MPI call PMPI_X), so the backend of that ABI names them. Calls that the MPI library makes to itself
// then pass through the same entries (README.md, "Invariants and limits").
void intercept_slots(const bestride_interception* interceptions, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) *interceptions[i].next = next_symbol(interceptions[i].name);
  unsigned slot = no_slot;
  for (std::size_t i = 0; i < count; ++i) {
    const bestride_interception& interception = interceptions[i];
    slot = slot_of(interception.name, slot);
    // Without a next definition there is nothing to intercept: the slot stays unresolved, and resolving it reports the
    // missing function.
    if (slot != no_slot && *interception.next) intercept_slot(slot, interception.entry);
  }
}

void wrap_slots(const bestride_interception* wrappers, std::size_t count) noexcept {
  unsigned slot = no_slot;
  for (std::size_t i = 0; i < count; ++i)
    if ((slot = slot_of(wrappers[i].name, slot)) != no_slot) wrap_slot(slot, wrappers[i].entry, wrappers[i].next);
}

void open_backend(const char* abi, const char* path) noexcept {
  if (std::strcmp(abi, "mpich") != 0 && access(path, F_OK) != 0) {
    if (launcher_rank() <= 0)
      log_info_once("preload.backend", "MPI libraries with the ABI %s are not supported yet: nothing is accelerated",
                    abi);
    return;
  }
  void* object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!object) {
    const char* why = dlerror();
    warn_once_per_job("preload.backend",
                      "the %s backend can't be opened (%s): nothing is accelerated; install it beside libbestride.so",
                      abi, why ? why : path);
    return;
  }
  const auto open = reinterpret_cast<bestride_backend_open_fn>(dlsym(object, BESTRIDE_BACKEND_OPEN));
  if (!open) {
    dlerror();
    warn_once_per_job(
        "preload.backend",
        "%s has no " BESTRIDE_BACKEND_OPEN ": nothing is accelerated; install the one built with libbestride.so", path);
    return;
  }
  static constexpr bestride_preload_services services = {BESTRIDE_SERVICES_VERSION,
                                                         [](const char* name) { return library_symbol(name); },
                                                         [](const char* name) { return next_symbol(name); },
                                                         own_path,
                                                         &watch,
                                                         &intercept_slots,
                                                         &wrap_slots};
  const bestride_backend* back = open(&services);
  if (!back) {
    warn_once_per_job("preload.backend", "the %s backend does not support %s: nothing is accelerated", abi,
                      mpi_library_path());
    return;
  }
  if (back->version != BESTRIDE_SERVICES_VERSION) {
    warn_once_per_job(
        "preload.backend",
        "%s has interface version %u, libbestride.so has %d: nothing is accelerated; install both from one build", path,
        back->version, BESTRIDE_SERVICES_VERSION);
    return;
  }
  intercept_slots(back->interceptions, back->count);
}

}  // namespace

void open_backend() noexcept {
  if (disabled() || another_copy_is_in_front()) return;
  const char* abi = mpi_library_abi();
  if (!abi) {
    warn_once_per_job("preload.abi", "%s has none of the known ABIs (mpich, openmpi, mpi_abi): nothing is accelerated",
                      mpi_library_path());
    return;
  }
  char path[PATH_MAX];
  if (!find_own_path() || !backend_path(abi, path)) {
    warn_once_per_job(
        "preload.path",
        "the directory of libbestride.so can't be determined: nothing is accelerated; preload it by a shorter path");
    return;
  }
  open_backend(abi, path);
}

}  // namespace bestride::preload
