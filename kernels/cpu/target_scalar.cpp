// SPDX-License-Identifier: Apache-2.0
// The kernels for the baseline machine: plain C++, the reference for all other targets.
#define BESTRIDE_TARGET scalar
#include "kernels/cpu/target/common_table.hpp"

namespace bestride::inline kernels {

const KernelTable& scalar_kernels() {
  static constexpr KernelTable table = scalar::common_table();
  return table;
}

}  // namespace bestride::inline kernels
