// SPDX-License-Identifier: Apache-2.0
#pragma once
// An MPI program as data: a list of steps that all ranks execute in the same order.
//
// A step has a kind, a seed and a few knobs. Everything else (communicator, types, sizes, peers, modes) depends on the
// seed and on the objects that exist when the step is executed, and every rank computes the same values. Local choices
// of a rank depend on the seed and its rank. So a program stays correct if the shrinker removes steps or lowers knobs.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bestride::fuzz {

enum class Kind {
  comm_make,
  comm_use,
  comm_free,
  type_make,
  type_use,
  type_free,
  messages,
  exchange,
  collective,
  neighbor,
  persistent_make,
  persistent_start,
  persistent_free,
  partitioned,
  window,
  file,
  complete,
  cancel,
  errors,
  throwing,
  pack,
  recommit,
  big_receive,
  mismatched,  ///< erroneous; not drawn among the others
};
inline constexpr int kinds = static_cast<int>(Kind::mismatched) + 1;

const char* name_of(Kind kind);

struct Step {
  Kind kind = Kind::comm_use;
  std::uint64_t seed = 0;
  int size = 1;    ///< 0: up to 64 bytes per block, 1: 4 KiB, 2: 64 KiB, 3: 300 KiB
  int types = 3;   ///< 0: one predefined type, 1: the same derived type everywhere, 2: other spellings, 3: other
                   ///< addresses and freed early
  int spell = 0;   ///< set of Way (spelling.hpp): in which ways each rank may spell its arguments
  int pmpi = 1;    ///< 1: some calls use their PMPI_ name, or the address that dlsym finds
  int pend = 1;    ///< 0: nothing is left pending at the end of the step
  int thread = 0;  ///< 1, 2: adjacent steps with these numbers are executed concurrently by two threads
  int number = 0;  ///< position in the program as generated; does not change when others are removed
};

struct Program {
  int ranks = 2;
  bool threads = false;  ///< MPI_THREAD_MULTIPLE
  bool buffer = false;   ///< MPI_Buffer_attach at the start
  std::vector<Step> steps;

  std::string text() const;
  /// Parses one or more programs. Ends the process with a message if the text is invalid.
  static std::vector<Program> parse(std::string_view text);
};

/// Program `index` of the sequence that belongs to `seed` and this number of ranks.
Program generate(std::uint64_t seed, std::uint64_t index, int ranks, bool threads);
/// A program of one step, whose calls are erroneous.
Program generate_mismatched(std::uint64_t seed, std::uint64_t index, int ranks);

}  // namespace bestride::fuzz
