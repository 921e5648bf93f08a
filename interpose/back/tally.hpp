// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tally: what was done, summed per (call, layout, strategy, reason) until it goes to the Ledger. Used only with BESTRIDE_REPORT=1.
//
// A table of sums under one lock, written out to the Ledger when it is full and at the end: the Ledger's line is text, and
// making that text per call would cost more than the call.
#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include "datatype/layout.hpp"
#include "interpose/back/calls.hpp"
#include "perfmodel/strategy.hpp"
#include "telemetry/ledger.hpp"

namespace bestride {

struct Deed {
  const char* call = "";                ///< static text: compared by address
  const char* strategy = "";            ///< likewise: the name of a Strategy, or of a way for device memory
  const char* reason = "";  ///< static text: compared by address
  LayoutPtr layout;         ///< may be null
  std::int64_t bytes = 0;
  double seconds = 0;
  double saved_seconds = 0;
};

class Tally {
 public:
  void add(const Deed& deed) noexcept;
  void add(const CacheSums& sums) noexcept { ledger_.post(sums); }
  /// Everything so far. Thread-safe.
  Ledger& ledger() noexcept;

 private:
  struct Sum {
    Deed deed;
    std::uint64_t calls = 0;
  };
  void write_out() noexcept;

  std::mutex mutex_;
  std::vector<Sum> sums_;
  Ledger ledger_;
};

/// Seconds since construction; zero cost when `on` is false.
class Stopwatch {
 public:
  explicit Stopwatch(bool on) noexcept : on_(on) {
    if (on_) start_ = std::chrono::steady_clock::now();
  }
  double seconds() const noexcept {
    return on_ ? std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count() : 0;
  }

 private:
  bool on_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace bestride
