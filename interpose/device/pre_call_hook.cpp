// SPDX-License-Identifier: Apache-2.0
#include "interpose/device/pre_call_hook.hpp"

#include <atomic>

#include "interpose/device/deferred_sends.hpp"
#include "interpose/mpi/services.hpp"

namespace bestride::inline interpose {

void install_pre_call_hook() noexcept {
  static constinit std::atomic<bool> watching{false};
  if (!watching.exchange(true)) preload_services->watch([] { start_deferred_sends_unless_busy(); });
}

}  // namespace bestride::inline interpose
