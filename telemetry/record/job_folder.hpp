// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the record files of a job are: /dev/shm/bestride-<uid>/<job>/<pid>.record or, outside the first pid namespace
// of the system, <pid>-<pid namespace>.record. Folders have mode 0700, files 0600.
//
// /dev/shm is memory, is there in every container that has a C library, and is emptied at a restart. A folder that
// belongs to somebody else, or that others may write to, or a symbolic link in its place, is not used. Alternative
// considered: memfd, which leaves nothing behind but can't be read after the process has ended.
#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace bestride::inline telemetry {

struct RecordFile;

inline constexpr const char record_root[] = "/dev/shm";
inline constexpr const char record_suffix[] = ".record";
inline constexpr const char crash_suffix[] = ".crash";
/// A file in the folder of a job whose agent was started.
inline constexpr const char agent_file[] = "agent";

/// "/dev/shm/bestride-1000"
std::string records_folder();
/// The name of this process's job on this host: "hydra-<pid of its proxy>", "slurm-<job>.<step>", else `launch`, what
/// the launcher calls the job, if it is not empty, else "pid-<pid>". Before MPI_Init.
std::string job_name(const std::string& launch);

/// The name of a process's record file. In two pid namespaces, processes may have the same pid: two containers that
/// share /dev/shm, with a process 1 in each. pid_namespace: 0 if not known.
std::string record_name(int pid, std::uint64_t pid_namespace);

/// Creates this process's record file, all bytes zero, and maps it. The mapping and one descriptor stay until the
/// process ends; the file stays until remove_record(), or until a later job or `bestride where --clean` finds that its
/// process has ended. *path: of the file. Errors: no /dev/shm, no space, a folder of somebody else.
Result<RecordFile*> create_record(const std::string& job, std::string* path) noexcept;
/// The file that a crashed process leaves beside its record (crash_file.hpp).
std::string crash_path(const std::string& record_path);
/// Removes a record file and the crash file beside it, and its job's folder if that is empty then. Errors are ignored.
void remove_record(const std::string& path) noexcept;
/// Removes the folders of jobs of this user whose processes have all ended at least `seconds` ago. At most 64 folders
/// are looked at.
void remove_stale_records(double seconds) noexcept;

}  // namespace bestride::inline telemetry
