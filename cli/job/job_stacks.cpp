// SPDX-License-Identifier: Apache-2.0
#include "cli/job/job_stacks.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>

#include "cli/job/python_stacks.hpp"
#include "cli/job/rank_list.hpp"
#include "telemetry/record/job_folder.hpp"
#include "telemetry/record/process_state.hpp"

namespace bestride::inline cli {
namespace {

/// Threads of one purpose get one name: "worker-12" -> "worker-*".
std::string thread_group(const ProcessStacks& process, const ThreadStack& thread) {
  if (thread.main) return "";
  if (thread.name.empty() || thread.name == process.threads.front().name) return "threads";
  const std::size_t end = thread.name.find_last_not_of("0123456789");
  if (end == std::string::npos || end + 1 == thread.name.size()) return thread.name;
  return thread.name.substr(0, end + 1) + "*";
}

/// "rank 3", "ranks 0-2,4", "2 processes" before MPI_Init has returned.
std::string owners_text(const std::vector<StackFailure>& failures) {
  std::vector<std::int32_t> ranks;
  ranks.reserve(failures.size());
  for (const StackFailure& failure : failures) ranks.push_back(failure.rank);
  std::sort(ranks.begin(), ranks.end());
  if (ranks.front() < 0) return ranks.size() == 1 ? "1 process" : std::to_string(ranks.size()) + " processes";
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks_text(ranks);
}

/// True if the thread is in a function of the program that the MPI library has called.
bool is_called_back(const RankStack& stack) {
  return !is_mpi_function(stack.frames.back().function) &&
         std::any_of(stack.frames.begin(), stack.frames.end(),
                     [](const NamedFrame& frame) { return is_mpi_function(frame.function); });
}

/// True if the interpreter is ending: then it has no Python frames but those of its exit handlers.
bool ends_interpreter(const std::vector<NamedFrame>& frames) {
  return std::any_of(frames.begin(), frames.end(),
                     [](const NamedFrame& frame) { return frame.function.find("Py_Finalize") != std::string::npos; });
}

/// If the initial thread has ended, another one that has made MPI calls takes its place.
void find_main(ProcessStacks& process, const RankSnapshot& rank) {
  const ThreadSnapshot* const in_place = main_thread(rank);
  if (!in_place || process.threads.empty() || process.threads.front().main) return;
  const auto at = std::find_if(process.threads.begin(), process.threads.end(),
                               [&](const ThreadStack& thread) { return thread.tid == in_place->tid; });
  if (at == process.threads.end()) return;
  at->main = true;
  std::rotate(process.threads.begin(), at, at + 1);
}

}  // namespace

bool has_left_stack(const RankSnapshot& rank) noexcept {
  return !rank.alive && rank.end && rank.end->kind != EndKind::exception;
}

HostStacks take_host_stacks(const std::vector<RankSnapshot>& ranks, bool all_frames) {
  HostStacks result;
  FrameNames names;
  for (const RankSnapshot& rank : ranks) {
    if (rank.remote || (!rank.alive && !has_left_stack(rank))) continue;
    if (rank.alive && !rank.visible) {
      result.failures.push_back({number_of(rank), rank.pid, 0, "it is in another pid namespace"});
      continue;
    }
    auto process = rank.alive ? take_stacks(rank.pid) : read_crash_stack(crash_path(rank.path), rank.pid);
    if (process && process->executable.empty()) process->executable = rank.executable;
    if (process && rank.alive) find_main(*process, rank);
    // It may have ended since it was looked at; an MPI error ends its process in a way that may leave nothing.
    if (!process && (rank.alive ? is_ending(rank.pid) : rank.end->kind == EndKind::mpi_error)) continue;
    if (!process) {
      result.failures.push_back({number_of(rank), rank.pid, 0, process.error().text});
      continue;
    }
    std::map<int, std::vector<NamedFrame>> python;
    std::string python_problem;
    if (rank.alive && runs_python(rank) && !all_frames) {
      if (auto known = python_frames(rank))
        python = std::move(*known);
      else
        python_problem = known.error().text;
    }
    result.longest_stop = std::max(result.longest_stop, static_cast<double>(process->longest_stop.count()) * 1e-9);
    for (const ThreadStack& thread : process->threads) {
      if (!thread.problem.empty()) {
        result.failures.push_back({number_of(rank), rank.pid, thread.tid, thread.problem});
        continue;
      }
      if (!thread.cut.empty()) result.cut.push_back({number_of(rank), rank.pid, thread.tid, thread.cut});
      std::vector<NamedFrame> frames = names.name(*process, thread);
      if (!all_frames && !thread.main && is_library_thread(frames)) continue;
      if (!all_frames) frames = without_library_frames(frames, process->executable);
      if (!all_frames && !rank.alive && is_library_thread(frames)) continue;  // main has returned
      if (!all_frames && !thread.interpreted.empty()) python[thread.tid] = interpreted_frames(thread.interpreted);
      if (const bool ends = rank.alive && ends_interpreter(frames);
          !all_frames && thread.main && (ends || (!rank.alive && !rank.system_exit.empty()))) {
        python.try_emplace(thread.tid, interpreted_frames(rank.system_exit));
        python_problem.clear();
      }
      if (const auto known = python.find(thread.tid); known != python.end())
        frames = with_python_frames(frames, known->second, process->executable);
      result.stacks.push_back(
          {number_of(rank), thread_group(*process, thread), !thread.cut.empty(), std::move(frames)});
    }
    if (!python_problem.empty()) result.problems.insert(python_problem);
  }
  result.problems.insert(names.problems().begin(), names.problems().end());
  return result;
}

void keep_ranks(HostStacks& stacks, const std::vector<RankSnapshot>& ranks) {
  const auto is_other = [&](const auto& each) {
    return std::none_of(ranks.begin(), ranks.end(),
                        [&](const RankSnapshot& rank) { return number_of(rank) == each.rank; });
  };
  std::erase_if(stacks.stacks, is_other);
  std::erase_if(stacks.failures, is_other);
  std::erase_if(stacks.cut, is_other);
}

JobStacks merge_host_stacks(const std::vector<HostStacks>& hosts) {
  JobStacks result;
  std::vector<RankStack> stacks;
  for (const HostStacks& host : hosts) {
    // Of a process that ends meanwhile, all frames may be those of libraries, which are left out.
    std::copy_if(host.stacks.begin(), host.stacks.end(), std::back_inserter(stacks),
                 [](const RankStack& stack) { return !stack.frames.empty(); });
    result.failures.insert(result.failures.end(), host.failures.begin(), host.failures.end());
    result.cut.insert(result.cut.end(), host.cut.begin(), host.cut.end());
    result.longest_stop = std::max(result.longest_stop, host.longest_stop);
    result.problems.insert(host.problems.begin(), host.problems.end());
  }
  result.tree = merge_stacks(stacks);
  std::set<std::int32_t> main_counts;  // ranks of which another thread than the main one can't be the one that crashed
  for (const StackFailure& failure : result.failures) main_counts.insert(failure.rank);
  for (const RankStack& stack : stacks) {
    if (!stack.thread.empty()) continue;
    main_counts.insert(stack.rank);
    if (is_called_back(stack)) result.called_back.push_back(stack.rank);
  }
  for (const RankStack& stack : stacks)
    if (stack.thread.empty() || !main_counts.contains(stack.rank))
      if (NamedFrame place = place_of(stack); !place.function.empty()) result.places[stack.rank] = std::move(place);
  return result;
}

std::vector<std::string> stack_lines(const JobStacks& stacks, std::size_t most_lines) {
  std::vector<std::string> lines;
  const auto label = [](const std::vector<std::int32_t>& ranks) {
    if (ranks.front() < 0) return std::string("before MPI_Init");
    return ranks_text(ranks, 4);
  };
  std::istringstream text(tree_text(stacks.tree, {most_lines, "", label}));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  for (const std::string& problem : stacks.problems)
    if (problem.find("py-spy") != std::string::npos) lines.push_back(problem);
  if (!stacks.failures.empty())
    lines.push_back("no stacks of " + owners_text(stacks.failures) + ": " + stacks.failures.front().problem);
  if (!stacks.cut.empty())
    lines.push_back("stacks of " + owners_text(stacks.cut) + " are incomplete: " + stacks.cut.front().problem);
  return lines;
}

}  // namespace bestride::inline cli
