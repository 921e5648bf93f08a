// SPDX-License-Identifier: Apache-2.0
#pragma once
// Opens the backend that matches the MPI library and lets the slots that the backend names lead into it. Any failure is
// reported once and leaves every slot on the MPI library: the job runs as if nothing had been preloaded.

namespace bestride::preload {

/// Called once, with an MPI library mapped. Honors BESTRIDE_DISABLE (1, on, yes, true).
void open_backend() noexcept;

}  // namespace bestride::preload
