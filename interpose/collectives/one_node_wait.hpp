// SPDX-License-Identifier: Apache-2.0
#pragma once
// Waiting for other ranks of a node that share memory with this one.
#include <sched.h>

#include <algorithm>
#include <atomic>

#include "base/not_cancelled.hpp"
#include "collectives/one_node/rank_processors.hpp"
#include "interpose/collectives/job.hpp"
#include "interpose/mpi/yielding_progress.hpp"
#include "interpose/objects/window_count.hpp"

namespace bestride::inline interpose {

/// Lets the MPI library and pending collectives make progress: another member may wait for that.
void let_others_progress() noexcept;

/// After so many checks, about 0.5 us, a rank looks whether it must give up its processor.
inline constexpr unsigned checks_before_sleep = 20;
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
///
/// A rank spins like one of MPICH, because a partner on another processor continues at once, also beside a busy
/// process, and waking up takes longer. It sleeps if the others may need its processor: if one of them was last on it,
/// or if there are more ranks than processors. A rank that yields (interpose/mpi/yielding_progress.hpp) never sleeps.
template <class Shared, class Step>
void wait_on_one_node(Shared& shared, Step step) noexcept {
  // A partner that is ready answers within the time that the rest of this function takes.
  for (unsigned check = 0; check < checks_before_sleep; ++check) {
    if (step()) return;
    relax_processor();
  }
  const NotCancelled not_cancelled;
  RankProcessors& processors = shared.processors();
  processors.set(sched_getcpu());
  const bool yields = yields_when_idle(), crowded = job() && job()->crowded;
  const bool has_window = window_count.load(std::memory_order_relaxed) > 0;
  const unsigned period = yields ? checks_before_sleep : has_window ? 16 : 512;
  long sleep_ns = first_sleep_ns;
  for (unsigned check = 1; !step(); ++check) {
    if (check % period == 0) let_others_progress();
    relax_processor();
    if (check % checks_before_sleep != 0 || has_window || yields) continue;
    processors.set(sched_getcpu());
    if (!crowded && !processors.shared()) continue;
    let_others_progress();
    const auto sleep = shared.prepare_sleep();
    const bool ended = step();
    if (ended || !shared.still(sleep))
      shared.cancel(sleep);
    else
      shared.start(sleep, sleep_ns);
    if (ended) return;
    sleep_ns = std::min(2 * sleep_ns, longest_sleep_ns);
  }
}

}  // namespace bestride::inline interpose
