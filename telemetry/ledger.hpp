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

class Ledger {
 public:
  explicit Ledger(std::size_t capacity = 4096) : capacity_(capacity) {}
  /// Adds the numbers of `line` to the line with equal call, layout, strategy and reason.
  void post(const LedgerLine& line) noexcept;
  /// All lines, largest bytes first.
  std::vector<LedgerLine> lines() const;
  /// One text blob that another process's merge() reads; used to bring all ranks' lines to rank 0.
  std::string serialise() const;
  /// Adds a blob's lines. A malformed blob adds nothing and returns false.
  bool merge(std::string_view blob) noexcept;

 private:
  mutable std::mutex mutex_;
  std::size_t capacity_;
  std::unordered_map<std::string, LedgerLine> lines_;
};

/// What the report says besides the lines.
struct ReportHeader {
  std::string mpi_library;
  std::string profile;  ///< path or "built-in"
  int ranks = 0;
  double job_seconds = 0;
};
/// At most 40 lines, for a person.
std::string report_text(const ReportHeader&, const std::vector<LedgerLine>&);
/// The same and everything left out there, as JSON (schema in docs/report.md).
std::string report_json(const ReportHeader&, const std::vector<LedgerLine>&);

}  // namespace bestride
