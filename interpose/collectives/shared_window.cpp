// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/shared_window.hpp"

#include <algorithm>
#include <atomic>

#include "base/message.hpp"
#include "interpose/collectives/job.hpp"
#include "interpose/collectives/maximum.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {
namespace {

/// Bytes of all windows of this process that belong to communicators on one node.
constinit std::atomic<std::int64_t> window_bytes{0};
/// Limit of window_bytes, as a multiple of the limit of one communicator.
constexpr int most_windows = 4;

/// The maximum over the members.
bool find_maximum(MPI_Comm comm, std::int64_t* value) noexcept {
  const std::int64_t own = *value;
  return real.Allreduce(&own, value, 1, MPI_INT64_T, maximum(), comm) == MPI_SUCCESS;
}

}  // namespace

SharedWindow::SharedWindow(MPI_Comm comm, bool leads, std::int64_t bytes) noexcept {
  const Job* all = job();
  const std::int64_t limit = all ? all->settings.window_limit : 0;
  // The number of bytes in use may differ between members, so the largest counts.
  std::int64_t used = window_bytes.load(std::memory_order_relaxed);
  if (!find_maximum(comm, &used)) return;
  if (used + bytes > most_windows * std::max(limit, bytes)) {
    log_info_once("one_node",
                  "communicators on one node share %lld MiB; collectives of newer ones are left to the "
                  "MPI library (BESTRIDE_WINDOW_LIMIT)",
                  static_cast<long long>(used >> 20));
    return;
  }
  Window window;
  WindowKey key;
  if (leads) {
    if (!inject_failure(FailPoint::window)) window = Window::create(static_cast<std::size_t>(bytes));
    key = window.key();
  }
  const bool told = real.Bcast(&key, sizeof key, MPI_BYTE, 0, comm) == MPI_SUCCESS;
  if (!leads) window = Window::open(key);
  if (!all_share_memory(comm, told && window.data())) return;
  window.close_descriptor();
  window_ = std::move(window);
  counted_ = bytes;
  window_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

SharedWindow::~SharedWindow() { window_bytes.fetch_sub(counted_, std::memory_order_relaxed); }

bool all_share_memory(MPI_Comm comm, bool good) noexcept {
  std::int64_t bad = !good;
  if (find_maximum(comm, &bad) && !bad) return true;
  report_no_memory();
  return false;
}

void report_no_memory() noexcept {
  warn_once_per_job("window",
                    "no shared memory between the ranks of a node; their collectives are left to the MPI library");
}

}  // namespace bestride::inline interpose
