// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the MPI library takes device memory itself.

namespace bestride {

/// BESTRIDE_GPU_AWARE, and with `auto` what the library says (MPIX_GPU_query_support, MPIX_Query_cuda_support). To be asked between
/// MPI_Init and MPI_Finalize; found out at the first call.
bool gpu_aware() noexcept;

}  // namespace bestride
