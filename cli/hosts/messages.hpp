// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the process that watches a job (the head) and its agents on other hosts tell each other.
//
// An agent says hello, and then once a second that it lives and whether a rank there makes no progress (a pulse). The
// head asks for snapshots (look) as often as it can use them, so its work does not grow with the number of hosts beyond
// one small message per host and second. docs/watch.md has the sequence.
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/job/job_stacks.hpp"
#include "telemetry/record/snapshot_code.hpp"

namespace bestride::inline cli {

enum class MessageKind : std::uint8_t {
  // From an agent.
  hello = 1,
  pulse,
  ranks,
  stacks,
  // From the head.
  welcome,
  look,
  take_stacks,
  kill_ranks,  ///< SIGKILL to the ranks of this host: the job is aborted
  end,         ///< the job has ended: remove the records and end
};

struct Hello {
  std::string version;  ///< of the command: the other side must have the same
  std::string host, job, launch;
};

struct Pulse {
  bool suspects = false;  ///< a rank makes no progress
  bool ended = false;     ///< a rank has ended since the last pulse
  std::uint32_t ranks = 0;
};

struct Look {
  std::uint32_t number = 0;  ///< is in the answer
  SnapshotDetail detail = SnapshotDetail::state;
  std::uint32_t finished_calls = 0;  ///< of each thread
};

struct HostRanks {
  std::uint32_t look = 0;
  double now = 0;  ///< of the agent's clock, in which RankSnapshot::ended is
  std::vector<RankSnapshot> ranks;
};

/// A message without content.
std::string message(MessageKind kind);
std::string message(const Hello& hello);
std::string message(const Pulse& pulse);
std::string message(const Look& look);
std::string message(const HostRanks& ranks, SnapshotDetail detail);
std::string message(const HostStacks& stacks);

/// The kind of a message; empty if it is none. The others have an empty result if the message is damaged.
std::optional<MessageKind> kind_of(const std::string& bytes);
std::optional<Hello> read_hello(const std::string& bytes);
std::optional<Pulse> read_pulse(const std::string& bytes);
std::optional<Look> read_look(const std::string& bytes);
/// `before`: the snapshots of this host that are known; see read_snapshot().
std::optional<HostRanks> read_ranks(const std::string& bytes, const std::vector<RankSnapshot>& before);
std::optional<HostStacks> read_stacks(const std::string& bytes);

}  // namespace bestride::inline cli
