// SPDX-License-Identifier: Apache-2.0
#include "telemetry/detector/rank_facts.hpp"

#include <algorithm>

#include "telemetry/record/process_wait.hpp"
#include "telemetry/waits/call_kind.hpp"
#include "telemetry/waits/message_numbers.hpp"

namespace bestride::inline telemetry {

bool is_member(const Ranks& ranks, std::int32_t rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

std::uint64_t calls_of(const RankSnapshot& rank) {
  std::uint64_t calls = 0;
  for (const ThreadSnapshot& thread : rank.threads) calls += thread.calls;
  return calls;
}

double seconds_since_call(const RankSnapshot& rank, double most) {
  double least = most;
  for (const ThreadSnapshot& thread : rank.threads)
    if (const double seconds = rank.seconds_since(thread.current ? thread.current->entered : thread.last_left);
        seconds > 0)
      least = std::min(least, seconds);
  return least;
}

bool is_moving(const RankSnapshot& rank) {
  return std::any_of(rank.threads.begin(), rank.threads.end(), [](const ThreadSnapshot& t) { return t.moving; });
}

bool is_held(const RankSnapshot& rank) {
  const ThreadSnapshot* const thread = main_thread(rank);
  return rank.alive && thread && (thread->state == 'T' || thread->state == 't');
}

/// False of one that polls only requests that are not active.
static bool polls_something(const RankSnapshot& rank, const ThreadSnapshot& thread) {
  const auto is_polled = [&](const RequestSnapshot& request) { return request.poller == thread.slot + 1; };
  return !thread.probes.empty() || kind_of(thread.poll_function, false) == CallKind::exposure ||
         std::any_of(rank.requests.begin(), rank.requests.end(), is_polled);
}

bool is_in_call(const RankSnapshot& rank) {
  return std::any_of(rank.threads.begin(), rank.threads.end(), [&](const ThreadSnapshot& t) {
    return t.in_mpi || (t.polling && t.polled_known && polls_something(rank, t));
  });
}

bool sleeps_beside_calls(const RankSnapshot& rank) {
  bool sleeps = false;
  for (const ThreadSnapshot& thread : rank.threads) {
    if (thread.in_mpi || thread.polling || is_idle_slot(rank, thread)) continue;
    if (thread.state != 'S' || !is_lock(thread.channel)) return false;
    sleeps = true;
  }
  return sleeps && is_in_call(rank);
}

bool is_in(const RankSnapshot& rank, const char* function) {
  return std::any_of(rank.threads.begin(), rank.threads.end(), [function](const ThreadSnapshot& t) {
    return t.current && function_name(t.current->function) == function;
  });
}

bool has_aborted(const RankSnapshot& rank) {
  const auto is_abort = [](const CallSnapshot& call) { return function_name(call.function) == "MPI_Abort"; };
  return std::any_of(rank.threads.begin(), rank.threads.end(), [&](const ThreadSnapshot& t) {
    return (t.current && is_abort(*t.current)) || std::any_of(t.finished.begin(), t.finished.end(), is_abort);
  });
}

bool is_killed_after_good_end(const RankSnapshot& rank, std::span<const RankSnapshot> ranks) {
  constexpr int sigkill = 9;
  return !rank.alive && rank.state >= ProcessState::finalizing && rank.wait_status == sigkill &&
         std::any_of(ranks.begin(), ranks.end(), [&](const RankSnapshot& each) {
           return !each.alive && each.state == ProcessState::finalized && each.wait_status == 0 &&
                  each.ended <= rank.ended;
         });
}

bool sleeps_by_itself(const std::string& channel) { return channel.find("nanosleep") != std::string::npos; }
bool is_output(const std::string& channel) {
  return channel.find("write") != std::string::npos || channel.find("sync") != std::string::npos ||
         channel.find("send") != std::string::npos;
}
bool is_of_program(const std::string& channel) { return waits_for_this_host(channel) && !is_lock(channel); }
bool is_lock(const std::string& channel) { return channel.find("futex") != std::string::npos; }

}  // namespace bestride::inline telemetry
