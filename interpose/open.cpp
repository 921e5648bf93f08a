// SPDX-License-Identifier: Apache-2.0
// bestride_backend_open: the only symbol that the backend exports, and the table of the functions that it intercepts.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <vector>

#include "base/float_environment.hpp"
#include "base/launcher_rank.hpp"
#include "base/message.hpp"
#include "base/variables.hpp"
#include "interpose/calls/entry.hpp"
#include "interpose/device/lazy_interception.hpp"
#include "interpose/lifetime/unwinder.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/services.hpp"
#include "interpose/objects/runtime.hpp"
#include "interpose/recording/recording.hpp"

namespace bestride::inline interpose {

constinit const bestride_preload_services* preload_services = nullptr;

namespace {

/// The functions of intercepted.def that the MPI library has. May throw std::bad_alloc.
std::vector<bestride_interception> interceptions() {
  std::vector<bestride_interception> all;
  const auto intercept = [&all](const char* name, void* entry, void** next_slot, bool in_library) {
    if (in_library) all.push_back({name, entry, next_slot});
  };
#define BESTRIDE_INTERCEPT(name)                                                                                 \
  intercept("MPI_" #name, reinterpret_cast<void*>(&bestride_entry_##name), reinterpret_cast<void**>(&next.name), \
            real.name != nullptr);
#define BESTRIDE_INTERCEPT_BOTH(name)                                                 \
  BESTRIDE_INTERCEPT(name)                                                            \
  intercept("PMPI_" #name, reinterpret_cast<void*>(&bestride_profiling_entry_##name), \
            reinterpret_cast<void**>(&real.name), real.name != nullptr);
#include "interpose/mpi/intercepted.def"
  return all;
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
    set_injected_failures(Settings::get().text("BESTRIDE_TEST_FAIL"));
    if (!resolve_real_calls(services->library_symbol)) {
      warn_once("backend.symbols", "the MPI library lacks required functions; nothing is accelerated");
      return nullptr;
    }
    if (inject_failure(FailPoint::start)) throw std::bad_alloc();
    static std::vector<bestride_interception> all = interceptions();
    new (&runtime_storage.runtime) Runtime;
    if (gpu_possible()) intercept_lazily();
    install_recording();
    leave_mark();
    static const bestride_backend back = {BESTRIDE_SERVICES_VERSION, BESTRIDE_ABI_NAME, all.size(), all.data()};
    return &back;
  } catch (...) {
    warn_once("backend.memory", "no memory to start; nothing is accelerated");
    return nullptr;
  }
}
