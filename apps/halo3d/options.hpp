// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the user asked halo3d to do. Parsed by hand: the mini-app builds wherever an MPI compiler does and needs nothing else.
#include <array>
#include <optional>
#include <string>
#include <vector>

namespace halo3d {

/// An extent, position or direction per dimension in C order: [0] is z (slowest), [1] is y, [2] is x (contiguous).
using Triple = std::array<int, 3>;

enum class Method { isend_waitall, isend_waitany, sendrecv, persistent, neighbor_alltoallw };
enum class Spelling { subarray, vector, hindexed };
enum class Element { float32, float64 };
enum class Storage { separate, interleaved };
enum class Messages { joined, separate };

inline constexpr std::array all_methods = {Method::isend_waitall, Method::isend_waitany, Method::sendrecv, Method::persistent,
                                           Method::neighbor_alltoallw};
inline constexpr std::array all_spellings = {Spelling::subarray, Spelling::vector, Spelling::hindexed};

struct Options {
  Triple cells = {32, 32, 32};  ///< interior cells of one rank
  Triple grid = {0, 0, 0};      ///< ranks per dimension; 0 is chosen by MPI_Dims_create
  int radius = 1;
  int quantities = 1;
  int exchanged = 0;  ///< the first so many quantities are exchanged; 0: all
  int iterations = 20;
  int warmup = 2;
  Element element = Element::float64;
  Storage storage = Storage::separate;
  Messages messages = Messages::joined;
  Method method = Method::isend_waitall;
  Spelling spelling = Spelling::subarray;
  int neighbours = 26;
  bool periodic = true;
  bool device = false;  ///< arrays in GPU memory
  bool force = false;   ///< device pointers to an MPI that does not say it takes them
  int damage = 0;       ///< cells spoiled after every exchange, to see the check find them
  std::string json;     ///< empty: no JSON; "-": standard output
  bool sweep = false;
  bool help = false;

  int quantities_exchanged() const { return exchanged ? exchanged : quantities; }
};

/// Exactly one of the two is set: the options, or one line that says what is wrong with the arguments.
struct Parsed {
  std::optional<Options> options;
  std::string complaint;
};
Parsed parse(const std::vector<std::string>& arguments);

/// One line that says what is wrong with the combination, or nothing.
std::string complaint_about(const Options& options, int ranks);

std::string usage();

const char* name_of(Method);
const char* name_of(Spelling);
const char* name_of(Element);
const char* name_of(Storage);
const char* name_of(Messages);

}  // namespace halo3d
