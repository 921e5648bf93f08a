// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command-line options of halo3d. Parsed by hand, so that the mini-app needs nothing but an MPI compiler.
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

inline constexpr std::array all_methods = {Method::isend_waitall, Method::isend_waitany, Method::sendrecv,
                                           Method::persistent, Method::neighbor_alltoallw};
inline constexpr std::array all_spellings = {Spelling::subarray, Spelling::vector, Spelling::hindexed};

struct Options {
  Triple cells = {32, 32, 32};  ///< interior cells of one rank
  Triple grid = {0, 0, 0};      ///< ranks per dimension; 0: chosen by MPI_Dims_create
  int radius = 1;
  int quantities = 1;
  int exchanged = 0;  ///< the number of quantities to exchange, starting with the first; 0: all
  int iterations = 20;
  int warmup = 2;
  Element element = Element::float64;
  Storage storage = Storage::separate;
  Messages messages = Messages::joined;
  Method method = Method::isend_waitall;
  Spelling spelling = Spelling::subarray;
  int neighbors = 26;
  bool periodic = true;
  bool device = false;  ///< arrays in GPU memory
  bool force = false;   ///< give device pointers to an MPI library that does not report support for them
  int damage = 0;       ///< cells overwritten with wrong values after every exchange, to test the check
  std::string json;     ///< empty: no JSON; "-": standard output
  bool sweep = false;
  bool help = false;

  int quantities_exchanged() const { return exchanged ? exchanged : quantities; }
};

/// Exactly one of the two is set: the options, or a one-line error message.
struct Parsed {
  std::optional<Options> options;
  std::string error;
};
Parsed parse(const std::vector<std::string>& arguments);

/// A one-line error message if the options cannot be combined, or an empty string.
std::string validate(const Options& options, int ranks);

std::string usage();

const char* name_of(Method);
const char* name_of(Spelling);
const char* name_of(Element);
const char* name_of(Storage);
const char* name_of(Messages);

}  // namespace halo3d
