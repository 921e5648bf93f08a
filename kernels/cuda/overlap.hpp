// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a layout names a byte twice: then an unpack has to keep the order of the type map.
#include "datatype/layout.hpp"

namespace bestride::cuda {

/// False only if no byte of the layout is named twice. True also for what can't be told cheaply: shapes whose parts interleave in
/// a way the rules below don't see, and that have too many blocks or too wide a range to look at each.
bool may_overlap(const Layout& layout);

}  // namespace bestride::cuda
