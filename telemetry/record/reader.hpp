// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads record files while their ranks write them, or after these have ended.
//
// A record file is input from another process: it may be truncated, of another version, or damaged on purpose. It is
// copied with pread and never mapped, because access to a mapping of a file that shrinks is a SIGBUS. It is copied
// three times: a record is whole if its sequence number is the same in the first and the third copy; its content is
// taken from the second. One copy is not enough, because the kernel copies the words of a record in any order.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "telemetry/record/snapshot.hpp"

namespace bestride::inline telemetry {

struct ReadOptions {
  std::size_t finished_calls = 16;  ///< of each thread; at most main_ring_size. At most so many messages, too
};

/// Reads the record file at `path`: a regular file of this user, not a symbolic link. About 0.2 ms. Errors, each one
/// line with the remedy: can't be opened, is no record file, is of another version, is damaged.
Result<RankSnapshot> read_record(const std::string& path, const ReadOptions& options = {});

/// A quick check (about 2 us) whether a rank makes progress. `file`: an open record file.
struct CallCount {
  ProcessState state = ProcessState::starting;
  std::uint64_t calls = 0;  ///< begun by all threads
};
std::optional<CallCount> read_call_count(int file) noexcept;

struct JobSnapshot {
  std::string name;
  std::vector<RankSnapshot> ranks;    ///< by rank, then by pid
  std::vector<std::string> problems;  ///< of record files that can't be read, one line each
};

/// The jobs that have a folder in `folder`: names, each with the time at which a record was last added or removed
/// (nanoseconds of the file system's clock, which need not be that of this process). Empty if it can't be read.
std::map<std::string, std::int64_t> job_folders(const std::string& folder);
/// Reads one job of the folder. Empty if it has ended meanwhile.
JobSnapshot read_job(const std::string& folder, const std::string& name, const ReadOptions& options = {});

/// The jobs that have records in `folder` (records_folder()), by name. Empty if there is no such folder. Error: the
/// folder belongs to somebody else, or can't be read.
Result<std::vector<JobSnapshot>> read_jobs(const std::string& folder, const ReadOptions& options = {});

}  // namespace bestride::inline telemetry
