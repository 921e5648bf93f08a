// SPDX-License-Identifier: Apache-2.0
// Packing with non-temporal stores. Strided pieces have kernels that assemble lines in registers
// (cpu/target/stream_strided.hpp). Other programs can be executed in parts that stay in the L1 cache, each then
// streamed to memory. This is for tests and measurements only: alternating between reads and streaming stores saturates
// the memory in neither phase (1.3x slower than ordinary stores).
#include <algorithm>

#include "kernels/program.hpp"
#include "kernels/stream_copy.hpp"

namespace bestride::inline kernels {
namespace {

constexpr std::int64_t stretch = 8192;  // at most a quarter of any L1 cache

const KernelTable& chosen_kernels() noexcept {
  static const KernelTable& table = kernels_for(chosen_isa());
  return table;
}

}  // namespace

void run_streaming(const Op& op, const KernelTable& table, Byte* packed, Byte* user, std::int64_t first,
                   std::int64_t last) noexcept {
  alignas(64) Byte buffer[stretch];
  // The first part ends at a line boundary of the destination, so that all later parts are full lines.
  std::int64_t size = stretch - static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(packed) & 63);
  while (first < last) {
    size = std::min(size, last - first);
    run_range<Direction::pack>(op, buffer, user, first, first + size);
    table.stream(packed, buffer, size);
    packed += size;
    first += size;
    size = stretch;
  }
  table.stream_fence();
}

void stream_copy(void* to, const void* from, std::size_t bytes) noexcept {
  chosen_kernels().stream(static_cast<Byte*>(to), static_cast<const Byte*>(from), static_cast<std::int64_t>(bytes));
}

void stream_fence() noexcept { chosen_kernels().stream_fence(); }

bool has_streaming_kernels(const Op& op) {
  switch (op.kind) {
    case Op::Kind::loop: return has_streaming_kernels(*op.body);
    case Op::Kind::sequence:
      return std::any_of(op.parts.begin(), op.parts.end(),
                         [](const Op::Part& part) { return has_streaming_kernels(*part.op); });
    case Op::Kind::piece: break;
  }
  return std::string_view(op.whole[Direction::pack].name).substr(0, 9) == "streaming";
}

}  // namespace bestride::inline kernels
