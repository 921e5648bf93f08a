// SPDX-License-Identifier: Apache-2.0
#pragma once
// MpiReport: where a job spent time in MPI, with all names as text, as it is kept in a file and printed.
//
// The members have the names of the JSON members; docs/mpi-time.md describes them. Times are seconds.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/job/call_site.hpp"
#include "cli/job/job_view.hpp"
#include "telemetry/mpi_time/job_time.hpp"

namespace bestride::inline cli {

struct MpiReport {
  struct Rank {
    std::int32_t rank = -1;
    std::string host;
    int pid = 0;
    double seconds = 0, mpi_seconds = 0;
    std::uint64_t calls = 0, timed = 0, bytes = 0, polls = 0;
    std::uint32_t sampling = 1;  ///< at the end, one of so many calls was timed
    bool incomplete = false;
    double share() const noexcept { return seconds > 0 ? mpi_seconds / seconds : 0; }
  };
  struct Site {
    std::string function, place;  ///< place: "" if it is not known
    std::uint64_t calls = 0, timed = 0, bytes = 0;
    double seconds = 0, most_seconds = 0;
    std::uint64_t ranks = 0;
    std::int32_t least_rank = -1, most_rank = -1;
    double least_total = 0, most_total = 0, variation = 0;
    std::vector<std::uint64_t> histogram;
    std::vector<std::string> served;  ///< how: "pack", "respell", "device", "one node", "hierarchical", "MPI"
    double saved_seconds = 0;         ///< the model's estimate
  };
  struct Function {
    std::string function;
    std::uint64_t calls = 0, timed = 0, bytes = 0;
    double seconds = 0;
  };
  struct Communicator {
    std::string name, kind;
    std::int32_t size = 0;
    std::uint64_t members_seen = 0, collectives = 0;
  };
  struct Finding {
    std::string kind, text, advice;          ///< kind: the class of a verdict
    double since = 0, found = 0, ended = 0;  ///< after the start of the launcher; ended 0: it did not end by itself
    std::vector<std::int32_t> culprits;
    std::vector<std::string> evidence;
  };
  struct CollectiveWaits {
    std::uint64_t calls = 0;
    double seconds = 0, waited = 0;
  };

  std::string bestride, job, executable, abi;
  double started = 0;           ///< of the launcher, since 1970
  int launcher_exit_code = -1;  ///< -1: it has not ended
  std::int32_t size = 0;
  double seconds = 0;
  Function total;  ///< all functions; its `function` is ""
  CollectiveWaits collective_wait;
  std::vector<Rank> ranks;
  std::vector<Site> sites;  ///< most time first
  std::vector<Function> functions;
  std::vector<std::array<std::uint64_t, 4>> pairs;  ///< from, to, messages, bytes
  std::vector<Communicator> communicators;
  std::vector<Finding> findings;
  std::vector<std::string> notes;  ///< what is missing or uncertain, one line each

  double mean_share() const noexcept;  ///< of the ranks; 0 without ranks
};

/// The report of a job, without findings and exit code. `started`: when the launcher started, seconds since 1970.
MpiReport make_mpi_report(const JobView& view, double started, CallSites& places);

/// The report as text of at most 40 lines.
std::string mpi_report_text(const MpiReport& report);

/// What changed from `a` to `b`, biggest change of time first; at most 40 lines.
std::string mpi_report_comparison(const MpiReport& a, const MpiReport& b);

inline constexpr const char* mpi_report_format = "bestride-mpi-report";
inline constexpr int mpi_report_version = 1;

/// A JSON object on one line, without a newline at its end. Bytes that are not UTF-8 are replaced.
std::string mpi_report_json(const MpiReport& report);
/// Error: another version, or a damaged file; one line without the file's name: cause and remedy.
Result<MpiReport> parse_mpi_report(const std::string& text);

}  // namespace bestride::inline cli
