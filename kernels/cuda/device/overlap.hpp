// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a layout overlaps itself, that is, contains a byte more than once. If so, an unpack must keep the order of
// the type map.
#include "datatype/layout.hpp"

namespace bestride::cuda {

/// False only if no byte of the layout is contained twice. Also true if this cannot be decided cheaply: shapes whose
/// parts interleave in a way that the rules do not cover, and that have too many blocks or too wide a range to check
/// each byte.
bool may_overlap(const Layout& layout);

}  // namespace bestride::cuda
