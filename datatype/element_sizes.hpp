// SPDX-License-Identifier: Apache-2.0
#pragma once
// ElementSizes: where basic elements begin in the packed bytes of a datatype.
//
// An MPI library may not be able to unpack a part of a basic element (MPICH 4.0.2 reports MPI_ERR_TRUNCATE), so the
// packed bytes of a message may be cut between elements only. The order of sizes is periodic: a type with one child has
// the period of its child, so only structs of unlike types have a longer one.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bestride::inline datatype {

class ElementSizes {
 public:
  /// No bytes.
  ElementSizes() = default;
  /// A basic type of `bytes` (>= 0) bytes.
  static ElementSizes basic(std::int64_t bytes);

  /// `bytes` more packed bytes, whose elements are those of `part`, from the beginning of its period on.
  void append(const ElementSizes& part, std::int64_t bytes);

  /// False: the period has too many parts to be kept.
  bool known() const noexcept { return known_; }
  /// The largest position up to `position` (>= 0) at which an element begins. Only if known.
  std::int64_t begin_before(std::int64_t position) const noexcept;

  bool operator==(const ElementSizes&) const = default;

 private:
  /// Elements of one size, one after the other.
  struct Run {
    std::int64_t end;  ///< in the period
    std::int64_t element;
    bool operator==(const Run&) const = default;
  };
  static constexpr std::size_t most_runs = 256;
  void append_run(std::int64_t bytes, std::int64_t element);
  std::int64_t period() const noexcept { return runs_.empty() ? 0 : runs_.back().end; }
  /// One size: any position is the beginning of a period.
  bool uniform() const noexcept { return runs_.size() == 1; }

  std::vector<Run> runs_;  ///< of one period
  bool known_ = true;
};

}  // namespace bestride::inline datatype
