// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls that have no entry here, and before which something has to be done all the same: the front tells of them (front/services.h, watch).

namespace bestride {

/// From now on, what is posted is started before such a call, and collectives are carried on. Once is enough; until then nothing is paid for it.
void watch_unseen_calls() noexcept;

}  // namespace bestride
