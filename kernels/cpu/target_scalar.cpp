// SPDX-License-Identifier: Apache-2.0
// The kernels for the baseline machine: plain C++, what every other target is compared with.
#define BESTRIDE_TARGET scalar
#include "kernels/cpu/target/common_table.hpp"

namespace bestride {

const KernelTable& scalar_kernels() {
  static constexpr KernelTable table = scalar::common_table();
  return table;
}

}  // namespace bestride
