// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/profiling_names.hpp"  // after mpi.h

namespace collectives {
namespace {

/// Completes a request between timed calls. MPICH's blocking wait would take the core from ranks that are still in a
/// timed call, or delay their start.
void finish(MPI_Request request) {
  for (int done = 0; !done;) {
    PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done) sched_yield();
  }
}
/// Synchronizes the ranks. First waits until the bucket of a shaped link (80 KB in tests/testbed) is full again, so
/// that a short call does not depend on the previous one.
void meet() {
  usleep(20000);
  MPI_Request request;
  PMPI_Ibarrier(MPI_COMM_WORLD, &request);
  finish(request);
}
double largest(double own) {
  double most = 0;
  MPI_Request request;
  PMPI_Iallreduce(&own, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request);
  finish(request);
  return most;
}

/// xorshift64* (Vigna, ACM TOMS 42, 2016).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u | 1) {}
  std::uint64_t next() {
    state_ ^= state_ >> 12, state_ ^= state_ << 25, state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1du;
  }

 private:
  std::uint64_t state_;
};

/// This rank's contribution, which changes between rounds according to the options.
class Content {
 public:
  Content(const Options& options, std::size_t bytes, std::uint64_t seed)
      : options_(options), random_(seed), bytes_(bytes) {
    renew();
  }

  const void* data() const { return bytes_.data(); }
  void next() {
    if (options_.change == 1)
      renew();
    else if (options_.change > 0)
      change();
  }

 private:
  void renew() {
    for (std::size_t at = 0; at + 4 <= bytes_.size(); at += 4) {
      // 24 bits, so that sums over any reasonable number of ranks do not overflow.
      const auto value = std::int32_t(random_.next() >> 40);
      const float real = float(value) * 0x1p-23f - 1;
      std::memcpy(&bytes_[at], options_.element == Element::int32 ? static_cast<const void*>(&value) : &real, 4);
    }
  }
  /// Flips some of the low seven bits of random 16-bit words, so that sums stay in range.
  void change() {
    const auto limit = std::uint64_t(options_.change * 0x1p32);
    for (std::size_t at = 0; at < bytes_.size(); at += 2) {
      const std::uint64_t drawn = random_.next();
      if (drawn >> 32 < limit) bytes_[at] ^= static_cast<unsigned char>(1 + drawn % 127);
    }
  }

  const Options& options_;
  Random random_;
  std::vector<unsigned char> bytes_;
};

using Result = std::vector<unsigned char>;

long long different_bytes(const Result& one, const Result& other) {
  if (one.empty() || std::memcmp(one.data(), other.data(), one.size()) == 0) return 0;
  long long different = 0;
  for (std::size_t i = 0; i < one.size(); ++i) different += one[i] != other[i];
  return different;
}

/// Contributions are at most 1, so sums in different orders differ by less than ranks^2 half units in the last place of
/// 1.
long long different_sums(const Result& one, const Result& other, int ranks) {
  const float tolerance = float(ranks) * float(ranks) * 0x1p-24f;
  long long different = 0;
  for (std::size_t at = 0; at < one.size(); at += 4) {
    float a = 0, b = 0;
    std::memcpy(&a, &one[at], 4), std::memcpy(&b, &other[at], 4);
    different += !(std::abs(a - b) <= tolerance);
  }
  return different;
}

/// The orders in six rounds. Each variant follows each of the others equally often, also between rounds, because a
/// variant affects the next one (ranks that lost their core to a spinning rank).
constexpr int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}};

class Case {
 public:
  Case(const Options& options, const Operation& operation, Form form)
      : options_(options),
        operation_(operation),
        form_(form),
        content_(options, operation.contribution(),
                 1 + 3 * static_cast<std::uint64_t>(world_rank()) + static_cast<std::uint64_t>(form)) {
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    for (const Variant variant : all_variants)
      if (wanted(variant)) results_[int(variant)].resize(operation.result());
    if (form == Form::persistent && wanted(Variant::ours))
      request_ = operation.make_persistent(mpi_names, content_.data(), results_[0].data());
  }
  ~Case() {
    if (request_ != MPI_REQUEST_NULL) MPI_Request_free(&request_);
  }
  Case(const Case&) = delete;

  Measurement run() {
    for (int round = 0; round < options_.warmup + options_.rounds; ++round) {
      const bool measured = round >= options_.warmup;
      for (const int next : orders[round % 6]) {
        const Variant variant = all_variants[next];
        if (!wanted(variant)) continue;
        const double seconds = once(variant);
        if (measured) measurement_.seconds[int(variant)].push_back(seconds);
      }
      if (!options_.only) compare();
      content_.next();
    }
    if (!options_.only) {
      long long counts[3] = {measurement_.compared, measurement_.wrong, measurement_.disputed};
      PMPI_Allreduce(MPI_IN_PLACE, counts, 3, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
      measurement_.compared = counts[0], measurement_.wrong = counts[1], measurement_.disputed = counts[2];
    }
    return std::move(measurement_);
  }

 private:
  static int world_rank() {
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
  }
  bool wanted(Variant variant) const { return !options_.only || *options_.only == variant; }

  double once(Variant variant) {
    Result& result = results_[int(variant)];
    // Bytes that the operation does not write must be detected.
    std::fill(result.begin(), result.end(), static_cast<unsigned char>(0xee));
    if (operation_.kind() == Kind::bcast && world_rank() == 0)
      std::memcpy(result.data(), content_.data(), result.size());
    if (!options_.only) meet();
    const double start = PMPI_Wtime();
    const void* const give = content_.data();
    if (variant == Variant::library)
      operation_.call(pmpi_names, give, result.data());
    else if (variant == Variant::library_nonblocking)
      operation_.call_nonblocking(pmpi_names, give, result.data());
    else if (form_ == Form::blocking)
      operation_.call(mpi_names, give, result.data());
    else if (form_ == Form::nonblocking)
      operation_.call_nonblocking(mpi_names, give, result.data());
    else
      operation_.run_persistent(mpi_names, &request_);
    const double seconds = PMPI_Wtime() - start;
    return options_.only ? seconds : largest(seconds);
  }

  void compare() {
    const bool floating = reduces(operation_.kind()) && options_.element == Element::float32;
    const auto different = [&](Variant one, Variant other) {
      const Result &a = results_[int(one)], &b = results_[int(other)];
      return floating ? different_sums(a, b, ranks_) : different_bytes(a, b);
    };
    measurement_.compared += static_cast<long long>(operation_.result() / (floating ? 4 : 1));
    measurement_.wrong +=
        std::min(different(Variant::ours, Variant::library), different(Variant::ours, Variant::library_nonblocking));
    measurement_.disputed += different(Variant::library, Variant::library_nonblocking);
  }

  const Options& options_;
  const Operation& operation_;
  Form form_;
  int ranks_ = 0;
  Content content_;
  Result results_[3];
  MPI_Request request_ = MPI_REQUEST_NULL;
  Measurement measurement_;
};

}  // namespace

Measurement measure(const Options& options, const Operation& operation, Form form) {
  return Case(options, operation, form).run();
}

}  // namespace collectives
