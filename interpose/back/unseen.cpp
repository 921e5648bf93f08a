// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/unseen.hpp"

#include <atomic>

#include "interpose/back/gpu/posted.hpp"
#include "interpose/back/hierarchical/pending.hpp"
#include "interpose/back/services.hpp"

namespace bestride {

void watch_unseen_calls() noexcept {
  static constinit std::atomic<bool> watching{false};
  if (!watching.exchange(true))
    front_services->watch([] {
      start_posted_unless_busy();
      progress_pending_collectives();
    });
}

}  // namespace bestride
