// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command-line options of the benchmark.
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace collectives {

enum class Kind {
  allgather,
  allgatherv,
  bcast,
  reduce_scatter_block,
  reduce_scatter,
  allreduce,
  reduce,
  gather,
  scatter,
  alltoall
};
enum class Form { blocking, nonblocking, persistent };
enum class Element { int32, float32 };
/// The MPI_ names in the form of the case; the PMPI_ names, blocking; the PMPI_ names, nonblocking with a loop that
/// yields.
enum class Variant { ours, library, library_nonblocking };

inline constexpr Variant all_variants[] = {Variant::ours, Variant::library, Variant::library_nonblocking};

struct Options {
  std::vector<Kind> kinds;  ///< all by default
  std::vector<std::size_t> bytes = {64 << 10, 4 << 20};
  std::vector<Form> forms = {Form::blocking};
  Element element = Element::int32;
  int warmup = 1;  ///< rounds that are not measured
  int rounds = 5;
  std::optional<Variant>
      only;           ///< runs only this variant, without comparisons and barriers, so that bytes can be counted
  double change = 1;  ///< fraction of 16-bit words that are new from round to round; 0: always the same content
  bool help = false;
};

struct Parsed {
  std::optional<Options> options;
  std::string error;
};
Parsed parse(const std::vector<std::string>& arguments);

std::string usage();

const char* name_of(Kind);
const char* name_of(Form);
const char* name_of(Element);
const char* name_of(Variant);

/// Whether values are combined, so that the order matters for floating point.
bool reduces(Kind);

}  // namespace collectives
