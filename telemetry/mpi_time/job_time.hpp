// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the ranks of a job spent time in MPI: sums over the records of all ranks, as mpiP has them.
//
// Pure: no clock, no I/O, no names of places (these need the program's files). The counts of calls and bytes are those
// of the records. Times are estimates: a record times only some calls (`sampling`, and one of 16 nonblocking calls), so
// the time of a place is its timed time multiplied by calls / timed calls. A place none of whose calls was timed has
// `timed` 0 and no time. Alternative considered: to multiply by the record's `sampling`, which changes during a run.
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "telemetry/record/snapshot.hpp"

namespace bestride::inline telemetry {

/// Calls and their time.
struct CallSums {
  std::uint64_t calls = 0;
  std::uint64_t timed = 0;  ///< of them, timed at their end
  std::uint64_t bytes = 0;  ///< count times size of the type, as in CallRecord
  double seconds = 0;       ///< estimate for all calls

  void add(const CallSums& other) noexcept {
    calls += other.calls;
    timed += other.timed;
    bytes += other.bytes;
    seconds += other.seconds;
  }
};

struct RankTime {
  std::size_t snapshot = 0;  ///< index in the argument of measure_job()
  std::int32_t rank = -1;    ///< in MPI_COMM_WORLD
  double seconds = 0;        ///< from MPI_Init to its end, or to the time when the record was read
  CallSums mpi;              ///< all threads together, so `mpi.seconds` may exceed `seconds`
  std::uint64_t polls = 0;   ///< polling calls that found nothing, not in `mpi`
  bool incomplete = false;   ///< it did not return from MPI_Finalize

  /// MPI time by elapsed time; 0 if nothing elapsed.
  double share() const noexcept { return seconds > 0 ? mpi.seconds / seconds : 0; }
};

/// Calls of one MPI function from one place of the program.
struct SiteTime {
  std::uint16_t function = no_function;
  std::size_t snapshot = 0;  ///< a rank that has the place, and the place's index there
  std::uint32_t site = no_index;
  CallSums sums;
  double saved_seconds = 0;      ///< as SiteEffects, all ranks
  std::uint16_t served = 0;      ///< bits of Served
  double most_seconds = 0;       ///< longest timed call
  std::size_t ranks = 0;         ///< that made such calls
  std::int32_t least_rank = -1;  ///< of all ranks of JobTime, also those without such a call
  std::int32_t most_rank = -1;   ///< with the most time
  double least_total = 0;        ///< seconds of least_rank
  double most_total = 0;         ///< seconds of most_rank
  double variation = 0;          ///< standard deviation over mean of the ranks' seconds (COV); 0 if the mean is 0
  std::array<std::uint64_t, histogram_size> histogram{};  ///< as SiteRecord::histogram
};

struct FunctionTime {
  std::uint16_t function = no_function;
  CallSums sums;
};

/// What one rank sent to another in calls that named it.
struct PairTraffic {
  std::int32_t from = -1, to = -1;  ///< ranks of MPI_COMM_WORLD
  std::uint64_t messages = 0, bytes = 0;
};

/// Time in remembered blocking collective calls from a member's entry to the entry of the last member. Only calls that
/// all members made, remember and timed, whose members are on one host, and in which every member waits for all.
struct CollectiveWait {
  std::size_t instances = 0;  ///< collective calls
  double seconds = 0;         ///< of all members in them
  double waited = 0;          ///< of that, before the last member had entered
};

struct JobTime {
  std::int32_t size = 0;                ///< of MPI_COMM_WORLD
  std::vector<RankTime> ranks;          ///< ascending
  std::vector<SiteTime> sites;          ///< most time first, then most calls
  std::vector<FunctionTime> functions;  ///< as sites
  std::vector<PairTraffic> pairs;       ///< by (from, to)
  CallSums mpi;                         ///< all ranks
  double seconds = 0;                   ///< from the first MPI_Init to the last end
  CollectiveWait collective_wait;
  std::uint64_t untimed = 0;  ///< calls of places none of whose calls was timed
  std::uint64_t sites_dropped = 0, peers_dropped = 0, threads_dropped = 0;  ///< what did not fit in the records
  bool other_table = false;         ///< a record of another version: its functions have no names
  std::uint64_t foreign_peers = 0;  ///< peers that can't be named as ranks of MPI_COMM_WORLD

  double mean_share() const noexcept;      ///< mean of the ranks' shares; 0 without ranks
  const RankTime* least() const noexcept;  ///< share; null without ranks
  const RankTime* most() const noexcept;
};

/// `job`: the ranks of one MPI_COMM_WORLD; of several snapshots of a rank the first alive one counts, ranks before
/// MPI_Init do not. `observer_began`: the second (CLOCK_REALTIME) from which RankSnapshot::ended counts.
JobTime measure_job(std::span<const RankSnapshot> job, double observer_began);

/// The second (CLOCK_REALTIME) that corresponds to ticks of the record.
double realtime_of(const RankSnapshot& rank, std::uint64_t ticks) noexcept;

/// Converts ticks of all ranks of a host by one of its records. The records' own conversions differ by microseconds,
/// more than a message takes, but the tick counter is the same for all processes of a host.
class HostClocks {
 public:
  /// `job` must outlive this.
  explicit HostClocks(std::span<const RankSnapshot> job) {
    for (const RankSnapshot& rank : job) first_.try_emplace(rank.host, &rank);
  }
  /// The time of `ticks` of a rank's record as seconds since 1970; see realtime_of(). `rank`: of a host of the job.
  double realtime(const RankSnapshot& rank, std::uint64_t ticks) const {
    const auto found = first_.find(rank.host);
    return realtime_of(found == first_.end() ? rank : *found->second, ticks);
  }

 private:
  std::map<std::string, const RankSnapshot*> first_;
};

/// See CollectiveWait.
CollectiveWait measure_collective_wait(std::span<const RankSnapshot> job);

}  // namespace bestride::inline telemetry
