// SPDX-License-Identifier: Apache-2.0
#pragma once
// Waiting for other ranks of a node that share memory with this one.
#include <algorithm>
#include <atomic>

#include "base/not_cancelled.hpp"
#include "interpose/collectives/job.hpp"
#include "interpose/mpi/yielding_progress.hpp"
#include "interpose/objects/window_count.hpp"

namespace bestride::inline interpose {

/// Lets the MPI library and pending collectives make progress: another member may wait for that.
void let_others_progress() noexcept;

/// How often a condition is checked before this rank sleeps: about 0.5 ms, or 3 us if another rank may need the
/// processor. A rank that yields (interpose/mpi/yielding_progress.hpp) never sleeps: between ranks that yield, waking
/// up takes five times as long.
inline constexpr int checks = 20'000, checks_if_crowded = 100, checks_before_yield = 20;
/// While a rank sleeps, nothing in its MPI library makes progress, and another member may wait for that. So it sleeps
/// for a short time first, and not at all while it has a window, because each one-sided operation of others may need
/// its library. It does not yield in that case, either: on a busy machine, others would get the processor for
/// milliseconds.
inline constexpr long first_sleep_ns = 100'000, longest_sleep_ns = 1'000'000;

inline void relax_processor() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Calls step() until it returns true. `shared`: what it waits for; Rounds or Edges.
template <class Shared, class Step>
void wait_on_one_node(Shared& shared, Step step) noexcept {
  const NotCancelled not_cancelled;
  const bool yields = yields_when_idle();
  const int most = yields ? checks_before_yield : job() && job()->crowded ? checks_if_crowded : checks;
  const bool has_window = window_count.load(std::memory_order_relaxed) > 0;
  const int period = has_window ? 16 : 512;
  for (long sleep_ns = first_sleep_ns;; sleep_ns = std::min(2 * sleep_ns, longest_sleep_ns)) {
    for (int check = 1; check <= most; ++check) {
      if (step()) return;
      if (check % period == 0) let_others_progress();
      relax_processor();
    }
    let_others_progress();
    if (has_window || yields) continue;
    const auto sleep = shared.prepare_sleep();
    const bool ended = step();
    if (ended || !shared.still(sleep))
      shared.cancel(sleep);
    else
      shared.start(sleep, sleep_ns);
    if (ended) return;
  }
}

}  // namespace bestride::inline interpose
