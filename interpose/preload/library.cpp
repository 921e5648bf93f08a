// SPDX-License-Identifier: Apache-2.0
#include "interpose/preload/library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <climits>
#include <cstddef>
#include <cstring>

#include "interpose/preload/late_library.hpp"

// From the linker: where this shared object begins and ends in memory.
extern "C" {
extern const char object_begin[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));
extern const char object_end[] __asm__("_end") __attribute__((visibility("hidden")));
}

namespace bestride::preload {
namespace {

std::atomic<void*> library_handle{nullptr};

const char* base_name(const char* path) noexcept {
  const char* slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

bool starts_with(const char* text, const char* prefix) noexcept {
  return std::strncmp(text, prefix, std::strlen(prefix)) == 0;
}

// The file names under which MPI libraries are installed (the MPICH family, Open MPI, the standard ABI), with any
// version number. Libraries with vendor-specific names (libmpi_gnu.so.12) are found by the symbols that they define.
bool has_mpi_name(const char* path) noexcept {
  const char* name = base_name(path);
  return starts_with(name, "libmpi.so") || starts_with(name, "libmpich.so") || starts_with(name, "libmpi_abi.so");
}

struct Nth {
  std::size_t left;
  char path[PATH_MAX];
};

int copy_nth(dl_phdr_info* object, std::size_t, void* data) noexcept {
  auto* wanted = static_cast<Nth*>(data);
  if (wanted->left-- > 0) return 0;
  wanted->path[0] = '\0';
  if (std::strlen(object->dlpi_name) < sizeof wanted->path) std::strcpy(wanted->path, object->dlpi_name);
  return 1;
}

// Path of the n-th mapped object. dl_iterate_phdr() holds one of the loader's locks, so nothing is opened inside the
// callback.
bool mapped_object(std::size_t n, Nth& object) noexcept {
  object.left = n;
  return dl_iterate_phdr(copy_nth, &object) == 1;
}

// A handle of the object that defines `init` (an address of PMPI_Init), if that object is an MPI library; else nullptr.
// The check is needed because dlsym() on a handle also finds definitions in its dependencies (those of the Fortran
// bindings or of a plugin), and because another copy of libbestride.so defines PMPI_Init, too.
void* definer(void* init) noexcept {
  Dl_info info;
  if (!init || is_ours(init) || !dladdr(init, &info) || !info.dli_fname) return nullptr;
  void* handle = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
  if (handle && dlsym(handle, "bestride_version")) {
    dlclose(handle);
    return nullptr;
  }
  return handle;
}

void* search_mapped(bool by_name) noexcept {
  Nth object;
  for (std::size_t n = 0; mapped_object(n, object); ++n) {
    if (!std::strchr(object.path, '/') || (by_name && !has_mpi_name(object.path))) continue;
    void* mapped = dlopen(object.path, RTLD_NOLOAD | RTLD_LAZY);
    if (!mapped) continue;
    void* found = definer(dlsym(mapped, "PMPI_Init"));
    dlclose(mapped);
    if (found) return found;
  }
  return nullptr;
}

}  // namespace

// dladdr() would search the symbols of an object for each of some thousand addresses: 3 ms at the start of a process.
bool is_ours(const void* address) noexcept { return address >= object_begin && address < object_end; }

void* mpi_library() noexcept {
  void* handle = library_handle.load(std::memory_order_acquire);
  if (handle) return handle;
  handle = open_late_library();
  if (!handle) handle = definer(dlsym(RTLD_NEXT, "PMPI_Init"));
  if (!handle) handle = search_mapped(true);
  if (!handle) handle = search_mapped(false);
  // Two threads may both get here. They find the same library, and its reference count keeps it mapped in either case.
  if (handle) library_handle.store(handle, std::memory_order_release);
  return handle;
}

const char* mpi_library_path() noexcept {
  void* handle = mpi_library();
  link_map* map = nullptr;
  return handle && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name ? map->l_name : "";
}

const char* mpi_library_abi() noexcept {
  if (library_symbol("ompi_mpi_comm_self")) return "openmpi";
  if (starts_with(base_name(mpi_library_path()), "libmpi_abi.so")) {
    int major = 0;
    int minor = 0;
    const auto get_version = reinterpret_cast<int (*)(int*, int*)>(library_symbol("PMPI_Abi_get_version"));
    if (get_version && get_version(&major, &minor) == 0 && major > 0) return "mpi_abi";
  }
  // mpi.h of the MPICH family defines MPI_COMM_DUP_FN as this symbol. Applications depend on it, so every member of the
  // family exports it.
  return library_symbol("MPIR_Dup_fn") ? "mpich" : nullptr;
}

void* library_symbol(const char* name) noexcept {
  if (void* const function = late_function(name)) return function;
  void* handle = mpi_library();
  void* symbol = handle ? dlsym(handle, name) : nullptr;
  return symbol && !is_ours(symbol) ? symbol : nullptr;
}

void* next_symbol(const char* name) noexcept {
  // The stubs of a redirected library stand in its own place: behind every tool.
  if (void* const function = late_function(name)) return function;
  void* symbol = dlsym(RTLD_NEXT, name);
  return symbol && !is_ours(symbol) ? symbol : library_symbol(name);
}

}  // namespace bestride::preload
