// SPDX-License-Identifier: Apache-2.0
#pragma once
// The ways of a message between memory the GPU reaches and a contiguous buffer MPI can take (transfer.hpp has the table). Apart from
// the transfers themselves, because who predicts and prints them needs no driver.
#include <cstdint>
#include <string_view>

namespace bestride::cuda {

enum class TransferWay : std::uint8_t { oneshot, staged, pipelined, copy_engine, device };
inline constexpr int transfer_way_count = 5;
/// "copy-engine".
const char* name(TransferWay way) noexcept;
/// "copy-engine" -> TransferWay::copy_engine; unknown: false and *way unchanged.
bool parse(std::string_view text, TransferWay* way) noexcept;

}  // namespace bestride::cuda
