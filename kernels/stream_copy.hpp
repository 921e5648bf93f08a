// SPDX-License-Identifier: Apache-2.0
#pragma once
// stream_copy: a copy with stores that bypass the caches, for memory that another processor reads next.
#include <cstddef>

namespace bestride::inline kernels {

/// As memcpy. Any alignment, any size. The bytes are not ordered before later stores until stream_fence() is called.
void stream_copy(void* to, const void* from, std::size_t bytes) noexcept;
void stream_fence() noexcept;

}  // namespace bestride::inline kernels
