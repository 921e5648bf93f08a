// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/absent_ranks.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "base/launcher_rank.hpp"
#include "telemetry/record/printable.hpp"
#include "telemetry/record/process_state.hpp"

namespace bestride::inline telemetry {
namespace {

std::string environment_of(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The value of a variable; null: there is none. `environment`: "NAME=value" with '\0' after each.
const char* variable_in(const std::string& environment, const std::string& name) {
  const char* const end = environment.c_str() + environment.size();
  for (const char* each = environment.c_str(); each < end; each += std::strlen(each) + 1)
    if (std::strncmp(each, name.c_str(), name.size()) == 0 && each[name.size()] == '=') return each + name.size() + 1;
  return nullptr;
}
int number_in(const std::string& environment, const char* name) {
  return launcher_number(variable_in(environment, name));
}

/// As launcher_rank().
int launcher_rank_in(const std::string& environment) {
  for (const char* name : launcher_rank_variables)
    if (const int number = number_in(environment, name); number >= 0) return number;
  return -1;
}
/// The number of ranks on the host of the process; -1: not known. Hydra, Open MPI, and Slurm if the step has one node.
int local_size_in(const std::string& environment) {
  for (const char* name : {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"})
    if (const int number = number_in(environment, name); number >= 0) return number;
  return number_in(environment, "SLURM_STEP_NUM_NODES") == 1 ? number_in(environment, "SLURM_STEP_NUM_TASKS") : -1;
}
bool names_watcher(const std::string& environment, const std::string& watcher) {
  const char* const named = variable_in(environment, "BESTRIDE_WATCHER");
  return named && watcher == named;
}

std::vector<int> all_processes() {
  std::vector<int> pids;
  DIR* const entries = opendir("/proc");
  if (!entries) return pids;
  while (const dirent* const entry = readdir(entries))
    if (const int pid = std::atoi(entry->d_name); pid > 0) pids.push_back(pid);
  closedir(entries);
  return pids;
}

/// The process that has started the one of a rank, and perhaps scripts around it: the next one above it that has no
/// rank; 0 if there is none.
int launcher_of(int pid) {
  for (int above = process_status(pid).parent; above > 1; above = process_status(above).parent)
    if (launcher_rank_in(environment_of(above)) < 0) return above;
  return 0;
}

RankSnapshot snapshot_of(int pid, std::int32_t number, const RankSnapshot& other) {
  RankSnapshot rank;
  rank.unrecorded = true;
  rank.job = other.job;
  rank.host = other.host;
  rank.watcher = other.watcher;
  rank.launch = other.launch;
  rank.pid_namespace = other.pid_namespace;
  rank.launch_rank = number;
  rank.launch_size = other.launch_size;
  rank.pid = pid;
  const ProcessStatus status = process_status(pid);
  rank.alive = rank.visible = status.exists && status.state != 'Z';
  rank.process_start = status.start_time;
  rank.use = process_use(pid);
  char path[4096];
  const ssize_t length = readlink(("/proc/" + std::to_string(pid) + "/exe").c_str(), path, sizeof path);
  if (length > 0) rank.executable = printable(std::string(path, static_cast<std::size_t>(length)));
  ThreadSnapshot& thread = rank.threads.emplace_back();
  thread.tid = pid;
  thread.state = status.state;
  if (thread.state == 'D' || thread.state == 'S') thread.channel = printable(waiting_channel(pid, pid));
  return rank;
}

}  // namespace

AbsentRanks find_absent_ranks(const std::vector<RankSnapshot>& ranks) {
  AbsentRanks absent;
  std::vector<std::int32_t> present;
  const RankSnapshot* visible = nullptr;
  for (const RankSnapshot& each : ranks) {
    if (each.world_rank >= 0 || each.state != ProcessState::starting || each.launch_rank < 0 || each.watcher.empty())
      return absent;
    present.push_back(each.launch_rank);
    if (each.visible) visible = &each;
  }
  if (!visible || static_cast<std::size_t>(visible->launch_size) <= present.size()) return absent;
  const int launcher = launcher_of(visible->pid);
  bool starts_others = launcher == 0;  // which may be ranks whose program is not loaded yet
  std::map<std::int32_t, int> pids;    // of each rank; of a script and what it runs the latter
  for (const int pid : all_processes()) {
    const std::string environment = environment_of(pid);
    const int number = launcher_rank_in(environment);
    const ProcessStatus status = process_status(pid);
    if (!status.exists || status.state == 'Z') continue;
    if (number >= 0 && names_watcher(environment, visible->watcher)) {
      const auto [at, is_new] = pids.try_emplace(number, pid);
      if (!is_new && status.parent == at->second) at->second = pid;
    } else if (number < 0 && status.parent == launcher) {
      starts_others = true;
    }
  }
  const bool all_here = local_size_in(environment_of(visible->pid)) == visible->launch_size;
  for (std::int32_t number = 0; number < visible->launch_size; ++number) {
    if (std::find(present.begin(), present.end(), number) != present.end()) continue;
    if (const auto at = pids.find(number); at != pids.end())
      absent.processes.push_back(snapshot_of(at->second, number, *visible));
    else if (all_here && !starts_others)
      absent.ended.push_back(number);
  }
  return absent;
}

}  // namespace bestride::inline telemetry
