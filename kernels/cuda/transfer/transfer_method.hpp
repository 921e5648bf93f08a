// SPDX-License-Identifier: Apache-2.0
#pragma once
// The transfer methods of a message between memory that the GPU can access and a contiguous buffer that MPI can take
// (table in transfer.hpp). Separate from the transfers, because code that predicts and prints methods needs no driver.
#include <cstdint>
#include <string_view>

namespace bestride::cuda {

enum class TransferMethod : std::uint8_t { oneshot, staged, pipelined, copy_engine, device };
inline constexpr int transfer_method_count = 5;
/// For example "copy-engine".
const char* name(TransferMethod method) noexcept;
/// "copy-engine" -> TransferMethod::copy_engine; if unknown, returns false and leaves *method unchanged.
bool parse(std::string_view text, TransferMethod* method) noexcept;

}  // namespace bestride::cuda
