// SPDX-License-Identifier: Apache-2.0
#pragma once
// Opens the back that fits the MPI library and lets the slots it names lead into it. Whatever goes wrong is said once and
// leaves every slot on the MPI library: the job runs as if nothing had been preloaded.

namespace bestride::front {

/// Called once, with an MPI library mapped. Honours BESTRIDE_DISABLE (1, on, yes, true).
void engage_back() noexcept;

}  // namespace bestride::front
