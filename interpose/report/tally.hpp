// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tally: sums call records per (call, layout, strategy, reason) until they go to the Ledger. Used only with
// BESTRIDE_REPORT=1.
//
// A table of sums under one lock, written to the Ledger when it is full and at the end. A line of the Ledger is text,
// and formatting it in each call would cost more than the call itself. For each call site, the record file gets how its
// calls were served and how much time this saved.
#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/float_environment.hpp"
#include "datatype/layout.hpp"
#include "interpose/mpi/functions.hpp"
#include "perfmodel/host/strategy.hpp"
#include "telemetry/record/layout.hpp"
#include "telemetry/report/ledger.hpp"

namespace bestride::inline interpose {

struct TalliedCall {
  const char* call = "";      ///< static text: compared by address
  const char* strategy = "";  ///< static text, too: the name of a Strategy, or of a transfer method for device memory
  const char* reason = "";    ///< static text: compared by address
  LayoutPtr layout;           ///< may be null
  std::int64_t bytes = 0;
  double seconds = 0;
  double saved_seconds = 0;
  double engine_seconds = 0;
};

class Tally {
 public:
  void add(const TalliedCall& tallied) noexcept;
  void add(const CacheSums& sums) noexcept { ledger_.post(sums); }
  /// The Ledger with everything recorded so far. Thread-safe.
  Ledger& ledger() noexcept;

 private:
  struct Sum {
    TalliedCall tallied;
    std::uint64_t calls = 0;
    std::uint16_t served = 0;  ///< a bit of Served
  };
  void add_to_site(std::uint16_t served, double saved_seconds) noexcept;
  void write_out() noexcept;

  std::mutex mutex_;
  std::vector<Sum> sums_;
  double saved_at_site_[max_sites] = {};  ///< the record holds a float, which would lose small increments
  Ledger ledger_;
};

/// Seconds since construction; zero if `on` is false, at no cost.
class Stopwatch {
 public:
  explicit Stopwatch(bool on) noexcept : on_(on) {
    if (on_) start_ = std::chrono::steady_clock::now();
  }
  double seconds() const noexcept {
    if (!on_) return 0;
    const FloatEnvironment floats;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  bool on_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace bestride::inline interpose
