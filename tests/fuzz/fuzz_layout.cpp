// SPDX-License-Identifier: Apache-2.0
// Random datatypes through decode, layouts and packers, against the type map, the expression evaluated without MPI, and
// the MPI library's own pack. One process, without the preload library.
//
//   fuzz_layout [--seeds N] [--first S]            N types from seed S on
//   fuzz_layout --first S --type 'vector(3,1,2,int)'   this type with the further choices of seed S
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "datatype/respell.hpp"
#include "tests/fuzz/checks.hpp"
#include "tests/support/random_type.hpp"
#include "tests/support/shrink.hpp"

using namespace bestride;
using namespace bestride::test;

namespace {

char running[4096];

void say_what_crashed(int signal_number) {
  [[maybe_unused]] auto written = write(STDERR_FILENO, running, std::strlen(running));
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

/// All checks on one type. The seed determines the other choices: count, alignment, kernels, cuts.
Complaint check(const TypeExpression& type, std::uint64_t seed) {
  Random random(~seed);
  const auto facts = facts_of(type);
  const auto map = type_map(type);
  if (!facts || !map) return std::nullopt;
  static constexpr std::int64_t counts[] = {1, 1, 1, 1, 2, 3, 5, 0, 17};
  const std::int64_t count = facts->size > 65536 ? 1 : random.pick(counts);
  CommittedType handle(type, random.chance(30) ? Constructors::large : Constructors::plain);
  auto decoded = decode(handle, counted_calls());
  if (!decoded) return "not decoded";
  Subject subject{type,   count,
                  handle, std::move(*decoded),
                  *facts, runs_of(*map, count, facts->extent),
                  false,  !has_empty_part(type) && !has_backward_part(type)};
  subject.named_twice = overlaps(subject.runs);
  if (auto complaint = check_decoded(subject)) return complaint;
  if (auto complaint = check_key(subject)) return complaint;
  if (auto complaint = check_second_spelling(subject, random)) return complaint;
  if (auto complaint = check_pack(subject, random)) return complaint;
  if (auto complaint = check_unpack(subject, random)) return complaint;
  if (auto complaint = check_ranges(subject, random)) return complaint;
  return check_respelled(subject, random);
}

Complaint check_and_count(const TypeExpression& type, std::uint64_t seed) {
  const std::size_t layouts = interned_layouts();
  const long handles = handles_held();
  if (auto complaint = check(type, seed)) return complaint;
  if (interned_layouts() != layouts) return "a layout was left behind";
  // The check frees a respelled type by PMPI_Type_free, but respell() frees its intermediate types.
  if (handles_held() > handles) return "a datatype handle was left behind";
  return std::nullopt;
}

bool fuzz_one(const TypeExpression& type, std::uint64_t seed) {
  std::snprintf(running, sizeof running, "\ncrashed: fuzz_layout --first %llu --type '%s'\n",
                static_cast<unsigned long long>(seed), type.text().c_str());
  const auto complaint = check_and_count(type, seed);
  if (!complaint) return true;
  const TypeExpression small =
      shrink(type, [&](const TypeExpression& candidate) { return check_and_count(candidate, seed).has_value(); });
  const auto why = check_and_count(small, seed);
  std::printf("FAILED: fuzz_layout --first %llu --type '%s': %s\n", static_cast<unsigned long long>(seed),
              small.text().c_str(), (why ? *why : *complaint).substr(0, 600).c_str());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t first = 1, seeds = 100000;
  const char* text = nullptr;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seeds") == 0) seeds = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--first") == 0) first = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--type") == 0) text = argv[i + 1];
  }
  MPI_Init(&argc, &argv);
  for (const int one : {SIGSEGV, SIGFPE, SIGBUS, SIGILL, SIGABRT}) signal(one, say_what_crashed);
  const auto start = std::chrono::steady_clock::now();
  int failed = 0;
  std::uint64_t done = 0;
  if (text != nullptr) {
    failed = fuzz_one(type_from(text), first) ? 0 : 1;
    done = 1;
  }
  for (std::uint64_t seed = first; text == nullptr && seed < first + seeds && failed < 10; ++seed, ++done) {
    Random random(seed);
    failed += fuzz_one(random_type(random, random_limits(random)), seed) ? 0 : 1;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf(
      "%llu types, %d failed, %.1f s (%ld constructed as an earlier one; the library's own MPI_Pack stopped short %ld "
      "times)\n",
      static_cast<unsigned long long>(done), failed, seconds, keys_seen_again(), library_packed_short());
  MPI_Finalize();
  return failed == 0 && done > 0 ? 0 : 1;
}
