// SPDX-License-Identifier: Apache-2.0
// bestride_backend_open: the only symbol that the backend exports, and the table of the functions that it intercepts.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

#include "base/float_environment.hpp"
#include "base/launcher_rank.hpp"
#include "base/message.hpp"
#include "base/variables.hpp"
#include "interpose/calls/entry.hpp"
#include "interpose/calls/on_demand_entry.hpp"
#include "interpose/collectives/comm_collectives.hpp"
#include "interpose/device/on_demand_interception.hpp"
#include "interpose/lifetime/unwinder.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/services.hpp"
#include "interpose/objects/runtime.hpp"
#include "interpose/recording/recording.hpp"

namespace bestride::inline interpose {

namespace {

/// A list of the functions that the MPI library has.
class InterceptionList {
 public:
  template <class Function>
  void add(const char* name, Function* entry, Function** next, Function* library) {
    if (library) add(name, reinterpret_cast<void*>(entry), reinterpret_cast<void**>(next));
  }
  std::vector<bestride_interception> all;

 private:
  [[gnu::noinline]] void add(const char* name, void* entry, void** next) { all.push_back({name, entry, next}); }
};

// May throw std::bad_alloc.
std::vector<bestride_interception> from_start() {
  InterceptionList list;
#define BESTRIDE_FROM_START(name, ...)                                                                \
  BESTRIDE_BY_MPI_NAME_##name(list.add("MPI_" #name, &bestride_entry_##name, &next.name, real.name);) \
      BESTRIDE_BY_PMPI_NAME_##name(list.add("PMPI_" #name, &bestride_profiling_entry_##name, &real.name, real.name);)
#include "mpi_functions.inc"
  return std::move(list.all);
}

std::vector<bestride_interception> on_demand(OnDemandGroup group) {
  InterceptionList list;
#define BESTRIDE_ADD(name)                                                                                         \
  BESTRIDE_BY_MPI_NAME_##name(list.add("MPI_" #name, bestride_entries_##name.by_mpi_name, &next.name, real.name);) \
      BESTRIDE_BY_PMPI_NAME_##name(                                                                                \
          list.add("PMPI_" #name, bestride_entries_##name.by_pmpi_name, &real.name, real.name);)
  if (group == OnDemandGroup::collectives) {
#define BESTRIDE_ON_DEMAND(name, ...) BESTRIDE_ADD(name)
#include "mpi_functions.inc"
  } else {
#define BESTRIDE_REFUSE(name, ...) BESTRIDE_ADD(name)
#include "mpi_functions.inc"
  }
#undef BESTRIDE_ADD
  return std::move(list.all);
}

/// By this byte 'bestride try' knows that a job is not compared with itself. That of rank 0 suffices, because every
/// rank of a job calls MPI.
void leave_mark() noexcept {
  const char* const file = std::getenv("BESTRIDE_MARK");
  if (!file || !*file || launcher_rank() > 0) return;
  const int descriptor = ::open(file, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(descriptor, "1", 1);
  ::close(descriptor);
}

}  // namespace
}  // namespace bestride::inline interpose

extern "C" __attribute__((visibility("default"))) const bestride_backend* bestride_backend_open(
    const bestride_preload_services* services) {
  using namespace bestride;
  if (!services || services->version != BESTRIDE_SERVICES_VERSION) return nullptr;
  preload_services = services;
  const FloatEnvironment floats;
  prepare_unwinder();
  try {
    set_injected_failures(Settings::get().text("BESTRIDE_FORCE=fail"));
    if (!resolve_real_calls(services->library_symbol)) {
      warn_once("backend.symbols", "the MPI library lacks required functions; nothing is accelerated");
      return nullptr;
    }
    if (inject_failure(FailPoint::start)) throw std::bad_alloc();
    static std::vector<bestride_interception> all = from_start();
    set_on_demand_groups(&on_demand);
    CommEntry::set_state(collectives_state);
    new (&runtime_storage.runtime) Runtime;
    if (gpu_possible()) intercept_on_demand();
    install_recording();
    leave_mark();
    static const bestride_backend back = {BESTRIDE_SERVICES_VERSION, BESTRIDE_ABI_NAME, all.size(), all.data()};
    return &back;
  } catch (...) {
    warn_once("backend.memory", "no memory to start; nothing is accelerated");
    return nullptr;
  }
}
