// SPDX-License-Identifier: Apache-2.0
#pragma once
// TypeKey: how a datatype was constructed, as a short sequence of numbers. Types with equal keys have the same layout,
// bounds, extent and basic types, so a result computed for one is valid for the other. It is read from the envelope and
// the contents, level by level: 150 ns for a vector of a predefined type; decoding takes 1 to 10 us.
#include <mpi.h>

#include <cstdint>
#include <optional>
#include <span>

#include "datatype/mpi_calls.hpp"

namespace bestride::inline datatype {

class TypeKey {
 public:
  static constexpr std::size_t most_words = 64;
  static constexpr int most_levels = 8;

  TypeKey() noexcept {}  // does not initialize the words
  /// nullopt: more than `most_words` arguments or `most_levels` nested constructors, or an MPI call that failed. Makes
  /// only local MPI calls, and frees every handle that it obtains. `*arguments`, if there is no key: how many arguments
  /// were found, at least 1.
  static std::optional<TypeKey> of(MPI_Datatype type, const DatatypeCalls& mpi,
                                   std::int64_t* arguments = nullptr) noexcept;

  std::span<const std::int64_t> words() const noexcept { return {words_, size_}; }
  std::uint64_t hash() const noexcept;

 private:
  struct Envelope;
  class Reader;
  bool add(std::int64_t word) noexcept {
    if (size_ == most_words) return false;
    words_[size_++] = word;
    return true;
  }

  std::size_t size_ = 0;
  std::int64_t words_[most_words];  ///< the first `size_` have values
};

}  // namespace bestride::inline datatype
