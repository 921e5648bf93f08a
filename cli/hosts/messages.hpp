// SPDX-License-Identifier: Apache-2.0
#pragma once
// The messages between the process that watches a job (the head) and its agents on other hosts.
//
// An agent sends hello, and then a pulse once a second: it is alive, and whether a rank there makes no progress. The
// head asks for snapshots (look) as often as it can use them. With many hosts it asks some agents to relay for others:
// these bundle the messages of several agents to the head, and pass its messages on to them. docs/watch.md has the
// sequence.
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
  relay_ready,  ///< other agents can connect to this one
  bundle,       ///< messages of several agents, from a relay
  // From the head, or from a relay.
  welcome,  ///< the answer to hello; a relay repeats it once a second, as long as it hears the head
  look,
  take_stacks,
  kill_ranks,    ///< SIGKILL to the ranks of this host: the job is aborted
  relay,         ///< listen for other agents
  redirect,      ///< connect to a relay
  repeat_hello,  ///< the answer to a message on a new connection: ZeroMQ makes a lost one again by itself
  end,           ///< the job has ended: remove the records and end
};

struct Hello {
  std::string version;  ///< of the command: the other side must have the same
  std::string host, job, launch;
  std::uint64_t agent = 0;  ///< a random number that no other agent of the job has
};

/// Content of relay_ready and redirect.
struct RelayAddress {
  std::string addresses, key;  ///< as Listener::addresses(), own_key()
};

struct Bundled {
  std::uint64_t agent = 0;  ///< the sender
  std::string bytes;        ///< a message, no bundle
};

struct Pulse {
  bool suspects = false;  ///< a rank makes no progress
  bool ended = false;     ///< a rank has ended since the last pulse
  std::uint32_t ranks = 0;
};

struct Look {
  std::uint32_t number = 0;          ///< is in the answer
  bool full = false;                 ///< else partial snapshots of the processes of which the agent has sent a full one
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
std::string message(const HostRanks& ranks);
std::string message(const HostStacks& stacks);
/// `kind`: relay_ready or redirect.
std::string message(MessageKind kind, const RelayAddress& address);
std::string message(const std::vector<Bundled>& bundle);

/// The kind of a message; empty if it is none. The read functions return an empty result if the message is damaged.
std::optional<MessageKind> kind_of(const std::string& bytes);
std::optional<Hello> read_hello(const std::string& bytes);
std::optional<Pulse> read_pulse(const std::string& bytes);
std::optional<Look> read_look(const std::string& bytes);
std::optional<HostRanks> read_ranks(const std::string& bytes);
std::optional<HostStacks> read_stacks(const std::string& bytes);
std::optional<RelayAddress> read_relay_address(const std::string& bytes);
std::optional<std::vector<Bundled>> read_bundle(const std::string& bytes);

}  // namespace bestride::inline cli
