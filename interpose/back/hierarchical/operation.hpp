// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operation: one call of a collective that goes through the hierarchy, from its arguments to its end.
#include <atomic>

#include "collectives/hierarchy.hpp"
#include "collectives/strand.hpp"

namespace bestride {

/// Lives until it has ended; a persistent one is begun again and again.
class Operation {
 public:
  virtual ~Operation() = default;
  /// The work of one start. May throw std::bad_alloc.
  virtual Strand begin(Hierarchy& hierarchy) = 0;
  /// After the strand: what is left to do on this rank alone.
  virtual void finish() noexcept {}

  std::atomic<bool> ended{false};
  bool failed = false;  ///< once it has ended: it could not be carried to its end
};

}  // namespace bestride
