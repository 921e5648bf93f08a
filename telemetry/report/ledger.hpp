// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ledger: counts what the library did in this process, per (call, layout, strategy, reason), for the end-of-job report.
// Bounded: at most `capacity` lines; further entries are added to a line "(others)". Thread-safe; each post takes a
// lock, so callers post sums instead of single calls.
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace bestride::inline telemetry {

struct LedgerLine {
  std::string call;      ///< "MPI_Isend"
  std::string layout;    ///< Layout::text()
  std::string strategy;  ///< "pack"
  std::string reason;    ///< why the call was left to MPI, if it was: "contiguous", "model", "opaque", ...
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;         ///< measured inside the call that starts the message
  double saved_seconds = 0;   ///< the model's estimate relative to forward; of the engine, as measured in samples
  double engine_seconds = 0;  ///< in which the engine has packed and unpacked, as measured in samples
};

/// The results of cache look-ups by allgathers between nodes (docs/collectives.md).
struct CacheSums {
  std::uint64_t hits = 0;
  std::uint64_t hit_bytes = 0;  ///< bytes that were not sent over the network
  std::uint64_t deltas = 0;     ///< a difference from a cached result was sent
  std::uint64_t delta_saved_bytes = 0;
  std::uint64_t misses = 0;
  std::uint64_t paused = 0;  ///< no look-up, because similar earlier ones had failed
};

/// The members, in the order that all users of the list share.
inline constexpr std::uint64_t CacheSums::*cache_sums[] = {&CacheSums::hits,   &CacheSums::hit_bytes,
                                                           &CacheSums::deltas, &CacheSums::delta_saved_bytes,
                                                           &CacheSums::misses, &CacheSums::paused};

class Ledger {
 public:
  explicit Ledger(std::size_t capacity = 4096) : capacity_(capacity) {}
  /// Adds the numbers of `line` to the line with equal call, layout, strategy and reason.
  void post(const LedgerLine& line) noexcept;
  void post(const CacheSums& sums) noexcept;
  /// All lines, largest number of bytes first.
  std::vector<LedgerLine> lines() const;
  CacheSums cache() const noexcept;
  /// The ledger as one text blob, which merge() reads; used to send all ranks' lines to rank 0.
  std::string serialize() const;
  /// Adds the lines and sums of a blob. Returns false and adds nothing if the blob is malformed.
  bool merge(std::string_view blob) noexcept;

 private:
  mutable std::mutex mutex_;
  std::size_t capacity_;
  std::unordered_map<std::string, LedgerLine> lines_;
  CacheSums cache_;
};

/// The heading of the report.
struct ReportHeader {
  std::string mpi_library;
  std::string profile;  ///< path, "built-in" or "built-in, for any MPI library"
  int ranks = 0;
  double job_seconds = 0;
  bool gains_if_bound = false;  ///< contiguous messages would be faster if ranks were bound
};
/// The report as text for the user: at most 40 lines.
std::string report_text(const ReportHeader&, const std::vector<LedgerLine>&, const CacheSums& = {});
/// The complete report as JSON, including what report_text() omits (schema in docs/report.md).
std::string report_json(const ReportHeader&, const std::vector<LedgerLine>&, const CacheSums& = {});

}  // namespace bestride::inline telemetry
