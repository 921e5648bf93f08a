// SPDX-License-Identifier: Apache-2.0
// read_jobs() and read_job() of reader.hpp: the record files of the jobs of a user.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>

#include "telemetry/record/job_folder.hpp"
#include "telemetry/record/reader.hpp"

namespace bestride::inline telemetry {
namespace {

struct Listing {
  std::vector<std::string> names;
  int error = 0;
};

/// The names in a folder of this user, sorted, without those that begin with a dot. A symbolic link is not followed.
Listing list_folder(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return {{}, errno};
  struct stat status {};
  DIR* const listing =
      fstat(folder, &status) == 0 && status.st_uid == geteuid() ? fdopendir(folder) : (errno = EPERM, nullptr);
  if (!listing) {
    const int error = errno;
    close(folder);
    return {{}, error};
  }
  Listing result;
  while (const dirent* entry = readdir(listing))
    if (entry->d_name[0] != '.') result.names.emplace_back(entry->d_name);
  closedir(listing);
  std::sort(result.names.begin(), result.names.end());
  return result;
}

}  // namespace

std::map<std::string, std::int64_t> job_folders(const std::string& folder) {
  std::map<std::string, std::int64_t> changed;
  for (const std::string& name : list_folder(folder).names) {
    struct stat status {};
    if (stat((folder + "/" + name).c_str(), &status) == 0)
      changed[name] = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  }
  return changed;
}

JobSnapshot read_job(const std::string& folder, const std::string& name, const ReadOptions& options) {
  JobSnapshot job;
  job.name = name;
  for (const std::string& file : list_folder(folder + "/" + name).names) {
    if (!file.ends_with(record_suffix)) continue;
    auto rank = read_record(folder + "/" + name + "/" + file, options);
    if (rank)
      job.ranks.push_back(std::move(*rank));
    else if (access((folder + "/" + name + "/" + file).c_str(), F_OK) == 0)  // else the job has just ended
      job.problems.push_back(rank.error().text);
  }
  std::sort(job.ranks.begin(), job.ranks.end(), [](const RankSnapshot& a, const RankSnapshot& b) {
    return std::tuple(a.world_rank, a.pid) < std::tuple(b.world_rank, b.pid);
  });
  return job;
}

Result<std::vector<JobSnapshot>> read_jobs(const std::string& folder, const ReadOptions& options) {
  const Listing jobs = list_folder(folder);
  if (jobs.error == ENOENT) return std::vector<JobSnapshot>{};
  if (jobs.error != 0)
    return Error{"can't read '" + folder + "': " + std::strerror(jobs.error) +
                 "; it must be a folder that belongs to you"};
  std::vector<JobSnapshot> result;
  for (const std::string& name : jobs.names)
    if (JobSnapshot job = read_job(folder, name, options); !job.ranks.empty() || !job.problems.empty())
      result.push_back(std::move(job));
  return result;
}

}  // namespace bestride::inline telemetry
