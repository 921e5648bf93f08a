// SPDX-License-Identifier: Apache-2.0
// The kernels for x86-64 with AVX2. Compiled with separate flags: no std:: code may be included here.
#define BESTRIDE_TARGET avx2
#include "kernels/cpu/target/common_table.hpp"
#include "kernels/cpu/target/gather.hpp"
#include "kernels/cpu/target/permute_avx2.hpp"

namespace bestride::inline kernels {

namespace avx2 {
namespace {

constexpr KernelTable make_table() {
  KernelTable table = common_table();
  table.gather[0] = {"gather4", gather_pack<4>, nullptr};
  table.gather[1] = {"gather8", gather_pack<8>, nullptr};
  table.gather[2] = {"gather16", gather16_pack, nullptr};
  table.permute[0] = {"gather4.permute", permute_pack<4>, nullptr};
  table.permute[1] = {"gather8.permute", permute_pack<8>, nullptr};
  table.permute[2] = {"gather16.permute", permute_pack<16>, nullptr};
  return table;
}

}  // namespace
}  // namespace avx2

const KernelTable& avx2_kernels() {
  static constexpr KernelTable table = avx2::make_table();
  return table;
}

}  // namespace bestride::inline kernels
