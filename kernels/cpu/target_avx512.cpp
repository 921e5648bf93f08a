// SPDX-License-Identifier: Apache-2.0
// The kernels for x86-64 with AVX-512 F, BW, DQ, VL, VBMI and VBMI2 (Ice Lake, Zen 4 and later). Compiled with separate
// flags: no std:: code may be included here.
#define BESTRIDE_TARGET avx512
#include "kernels/cpu/target/common_table.hpp"
#include "kernels/cpu/target/gather.hpp"
#include "kernels/cpu/target/permute_avx512.hpp"
#include "kernels/cpu/target/record_avx512.hpp"
#include "kernels/cpu/target/stream_strided.hpp"
#include "kernels/cpu/target/transpose_avx512.hpp"

namespace bestride::inline kernels {

namespace avx512 {
namespace {

constexpr KernelTable make_table() {
  KernelTable table = common_table();
  table.gather[0] = {"gather4", gather_pack<4>, nullptr};
  table.gather[1] = {"gather8", gather_pack<8>, nullptr};
  table.gather[2] = {"gather16", gather16_pack, nullptr};
  table.permute[0] = permute_kernels<4>("gather4.permute");
  table.permute[1] = permute_kernels<8>("gather8.permute");
  table.permute[2] = permute_kernels<16>("gather16.permute");
  table.record = {"record", record_pack, record_unpack};
  table.transpose[2] = transpose_square_kernels<4>("transpose4");
  table.transpose[3] = transpose_square_kernels<8>("transpose8");
  table.transpose[4] = transpose_square_kernels<16>("transpose16");
  table.transpose[5] = transpose_square_kernels<32>("transpose32");
  table.stream_word[0] = {"streaming4", stream_strided<4>, nullptr};
  table.stream_word[1] = {"streaming8", stream_strided<8>, nullptr};
  table.stream_word[2] = {"streaming16", stream_strided<16>, nullptr};
  table.stream_word[3] = {"streaming32", stream_strided<32>, nullptr};
  table.stream_wide = {"streaming.wide", stream_wide, nullptr};
  return table;
}

}  // namespace
}  // namespace avx512

const KernelTable& avx512_kernels() {
  static constexpr KernelTable table = avx512::make_table();
  return table;
}

}  // namespace bestride::inline kernels
