// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the record of a rank contains, read by the rank itself as another process would.
#include <unistd.h>

#include <string>
#include <vector>

#include "telemetry/record/functions.hpp"
#include "telemetry/record/job_folder.hpp"
#include "telemetry/record/reader.hpp"
#include "tests/support/harness.hpp"

namespace bestride::test {

inline int peer() { return 1 - world_rank(); }

/// This process's record as it is now.
inline RankSnapshot own_record() {
  const Result<std::vector<JobSnapshot>> jobs = read_jobs(records_folder(), {.finished_calls = 100});
  if (jobs)
    for (const JobSnapshot& job : *jobs)
      for (const RankSnapshot& rank : job.ranks)
        if (rank.pid == getpid()) return rank;
  fail_check(__FILE__, __LINE__, "there is no record of this process");
  return {};
}

inline const ThreadSnapshot& first_thread(const RankSnapshot& record) {
  static const ThreadSnapshot none;
  for (const ThreadSnapshot& thread : record.threads)
    if (thread.slot == 0) return thread;
  fail_check(__FILE__, __LINE__, "the main thread has no slot");
  return none;
}

inline std::string name_of(std::uint16_t function) {
  return function < recorded_functions().size() ? recorded_functions()[function].name : "none";
}

/// The last call that has returned.
inline CallSnapshot last_call(const RankSnapshot& record) {
  const ThreadSnapshot& thread = first_thread(record);
  if (!thread.finished.empty()) return thread.finished.back();
  fail_check(__FILE__, __LINE__, "no call is recorded");
  return {};
}

inline const CommunicatorSnapshot* communicator(const RankSnapshot& record, std::uint32_t index) {
  for (const CommunicatorSnapshot& each : record.communicators)
    if (each.index == index) return &each;
  return nullptr;
}

/// The same value on both ranks.
template <class Value>
bool agreed(Value value) {
  Value all[2];
  MPI_Allgather(&value, sizeof value, MPI_BYTE, all, sizeof value, MPI_BYTE, MPI_COMM_WORLD);
  return all[0] == all[1];
}

}  // namespace bestride::test
