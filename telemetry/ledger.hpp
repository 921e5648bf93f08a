// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ledger: what the library did in this process, per (call, layout, strategy), for the end-of-job report.
// Bounded: at most `capacity` lines; what comes after is added to a line "(others)". Thread-safe; one lock per post, so callers
// post sums, not single calls.
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace bestride {

struct LedgerLine {
  std::string call;      ///< "MPI_Isend"
  std::string layout;    ///< Layout::text()
  std::string strategy;  ///< "pack"
  std::string reason;    ///< why, if it was left alone: "contiguous", "model", "opaque", ...
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;        ///< measured inside the call and its completion work
  double saved_seconds = 0;  ///< the model's claim against forward
};

/// What allgathers between nodes found among past results that the nodes keep (docs/collectives.md).
struct CacheSums {
  std::uint64_t hits = 0;
  std::uint64_t hit_bytes = 0;  ///< that crossed no wire
  std::uint64_t deltas = 0;     ///< only the difference from a kept result was sent
  std::uint64_t delta_saved_bytes = 0;
  std::uint64_t misses = 0;
  std::uint64_t paused = 0;  ///< not looked for: the like of it was not found before
};

/// Its members, in one order everywhere.
inline constexpr std::uint64_t CacheSums::*cache_sums[] = {&CacheSums::hits,   &CacheSums::hit_bytes, &CacheSums::deltas,
                                                           &CacheSums::delta_saved_bytes, &CacheSums::misses,    &CacheSums::paused};

class Ledger {
 public:
  explicit Ledger(std::size_t capacity = 4096) : capacity_(capacity) {}
  /// Adds the numbers of `line` to the line with equal call, layout, strategy and reason.
  void post(const LedgerLine& line) noexcept;
  void post(const CacheSums& sums) noexcept;
  /// All lines, largest bytes first.
  std::vector<LedgerLine> lines() const;
  CacheSums cache() const noexcept;
  /// One text blob that another process's merge() reads; used to bring all ranks' lines to rank 0.
  std::string serialise() const;
  /// Adds a blob's lines and sums. A malformed blob adds nothing and returns false.
  bool merge(std::string_view blob) noexcept;

 private:
  mutable std::mutex mutex_;
  std::size_t capacity_;
  std::unordered_map<std::string, LedgerLine> lines_;
  CacheSums cache_;
};

/// What the report says besides the lines.
struct ReportHeader {
  std::string mpi_library;
  std::string profile;  ///< path or "built-in"
  int ranks = 0;
  double job_seconds = 0;
};
/// At most 40 lines, for a person.
std::string report_text(const ReportHeader&, const std::vector<LedgerLine>&, const CacheSums& = {});
/// The same and everything left out there, as JSON (schema in docs/report.md).
std::string report_json(const ReportHeader&, const std::vector<LedgerLine>&, const CacheSums& = {});

}  // namespace bestride
