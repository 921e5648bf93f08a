// SPDX-License-Identifier: Apache-2.0
#pragma once
// The pre-call hook: work that must be done before calls that have no entry here. The preload library calls it (member
// `watch` in interpose/preload/services.h).

namespace bestride::inline interpose {

/// From now on deferred sends are started before each such call. One call is enough; before it, the hook costs nothing.
void install_pre_call_hook() noexcept;

}  // namespace bestride::inline interpose
