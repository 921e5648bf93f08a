// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model of MPI for tests of the detector: ranks that execute lists of operations, and the snapshots that their
// records would give.
//
// Messages match in order by source and tag. A send of less than the eager limit is complete at once, a longer one when
// it is received. A collective call is complete when the ranks have entered from which its result depends. Members that
// make different collective calls never leave them. A rank that computes or is in MPI uses the CPU.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "telemetry/waits/call_kind.hpp"
#include "telemetry/waits/sample_job.hpp"

namespace bestride::inline telemetry {

struct Operation {
  enum class Kind : std::uint8_t {
    compute,        ///< for `seconds`
    collective,     ///< `function`, root `peer`
    send,           ///< `function` to `peer`
    receive,        ///< from `peer`
    exchange,       ///< sends to `peer`, receives from `source`
    start_send,     ///< to `peer`
    start_receive,  ///< from `peer`
    wait_all,
    die,   ///< the process ends
    stop,  ///< a signal stops it
    spin,  ///< computes for ever
    read,  ///< blocked in the kernel for ever
  };
  Kind kind = Kind::compute;
  std::string function{};
  std::int32_t peer = no_rank;  ///< rank in the communicator
  std::uint32_t communicator = 0;
  std::int32_t tag = 0;
  std::uint64_t bytes = 8;
  std::int32_t source = no_rank;
  double seconds = 0;
};

class ModeledJob {
 public:
  static constexpr std::uint64_t eager_limit = 64 << 10;
  static constexpr double tick = 0.05;
  static constexpr int calls_per_tick = 4;

  explicit ModeledJob(int size) : sample_(size), states_(static_cast<std::size_t>(size)), communicators_(1) {
    for (int rank = 0; rank < size; ++rank) communicators_[0].push_back(rank);
    for (RankSnapshot& rank : sample_.ranks) {
      rank.visible = true;
      rank.pid = 1000 + rank.world_rank;
      rank.ticks_per_second = 1e9;
      rank.threads[0].state = 'R';
      rank.threads[0].calls = 0;
      rank.use.cpu_seconds = 0;
    }
  }
  /// Some ranks create a communicator. Returns its index, which is the same on all of them.
  std::uint32_t add_communicator(std::vector<std::int32_t> members) {
    const auto index = static_cast<std::uint32_t>(communicators_.size());
    for (std::size_t i = 0; i < members.size(); ++i)
      snapshot(members[i])
          .communicators.push_back({index, 100 + index, 1, 0, static_cast<std::int32_t>(members.size()),
                                    static_cast<std::int32_t>(i), -1, 0, CommunicatorKind::intra,
                                    "part" + std::to_string(index)});
    communicators_.push_back(std::move(members));
    return index;
  }
  std::vector<std::vector<Operation>>& programs() { return programs_; }
  const std::vector<std::int32_t>& members(std::uint32_t communicator) const { return communicators_[communicator]; }

  /// Lets all ranks go on for one tick.
  void step() {
    now_ += tick;
    std::vector<int> made(states_.size());
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < states_.size(); ++rank)
        while (made[rank] < calls_per_tick && advance(static_cast<std::int32_t>(rank))) ++made[rank], progress = true;
    }
    for (std::size_t rank = 0; rank < states_.size(); ++rank)
      if (sample_.ranks[rank].alive && sample_.ranks[rank].threads[0].state == 'R')
        sample_.ranks[rank].use.cpu_seconds += tick;
  }
  double now() const { return now_; }
  /// Operations that all ranks have completed.
  std::size_t completed() const {
    std::size_t least = states_[0].next;
    for (const State& state : states_) least = std::min(least, state.next);
    return least;
  }
  const std::vector<RankSnapshot>& snapshots() {
    for (RankSnapshot& rank : sample_.ranks) rank.read_at = ticks();
    return sample_.ranks;
  }

 private:
  struct Message {
    std::int32_t from, to, tag;
    std::uint64_t bytes;
    bool taken = false;
    bool complete() const { return taken || bytes < eager_limit; }
  };
  struct Receive {
    std::int32_t from, tag;
    bool complete = false;
  };
  struct Request {
    std::uint64_t key;
    std::size_t index;  ///< in messages_, or in State::receives
    bool send;
  };
  struct State {
    std::size_t next = 0;  ///< operation
    bool begun = false;
    double until = 0;  ///< computing
    std::size_t sent = 0, received = 0;
    std::vector<Receive> receives;  ///< in the order in which they were posted
    std::vector<Request> requests;
  };
  struct Entry {
    std::string function;
    std::int32_t root;
  };

  RankSnapshot& snapshot(std::int32_t rank) { return sample_.ranks[static_cast<std::size_t>(rank)]; }
  State& state(std::int32_t rank) { return states_[static_cast<std::size_t>(rank)]; }
  std::uint64_t ticks() const { return static_cast<std::uint64_t>(now_ * 1e9); }

  /// Begins or completes the rank's next operation; false if it has to wait.
  bool advance(std::int32_t rank) {
    State& mine = state(rank);
    const std::vector<Operation>& program = programs_[static_cast<std::size_t>(rank)];
    if (mine.next == program.size() || !snapshot(rank).alive) return false;
    const Operation& operation = program[mine.next];
    if (!mine.begun) {
      mine.begun = true;
      begin(rank, operation);
    }
    if (!is_complete(rank, operation)) return false;
    end(rank, operation);
    mine.begun = false;
    ++mine.next;
    return true;
  }

  void begin(std::int32_t rank, const Operation& operation) {
    State& mine = state(rank);
    ThreadSnapshot& thread = snapshot(rank).threads[0];
    switch (operation.kind) {
      case Operation::Kind::compute: mine.until = now_ + operation.seconds; return;
      case Operation::Kind::die: snapshot(rank).alive = false; return;
      case Operation::Kind::stop: thread.state = 'T'; return;
      case Operation::Kind::spin: return;
      case Operation::Kind::read:
        thread.state = 'S';
        thread.channel = "anon_pipe_read";
        return;
      default: break;
    }
    CallSnapshot call;
    call.number = thread.calls++;
    call.entered = ticks();
    call.function = number_of(operation.function);
    call.communicator = operation.communicator;
    call.peer = operation.peer;
    call.tag = operation.kind == Operation::Kind::collective ? no_tag : operation.tag;
    call.bytes = operation.bytes;
    switch (operation.kind) {
      case Operation::Kind::collective: {
        CommunicatorSnapshot& communicator = communicator_of(rank, operation.communicator);
        call.ordinal = static_cast<std::uint32_t>(++communicator.collectives);
        call.bytes = 0;
        collectives_[{operation.communicator, call.ordinal}][rank] = {operation.function, operation.peer};
        break;
      }
      case Operation::Kind::send: mine.sent = send(rank, operation.peer, operation); break;
      case Operation::Kind::receive: mine.received = receive(rank, operation.peer, operation); break;
      case Operation::Kind::exchange:
        mine.sent = send(rank, operation.peer, operation);
        mine.received = receive(rank, operation.source, operation);
        call.second_peer = operation.source;
        call.second_tag = operation.tag;
        break;
      case Operation::Kind::start_send:
        add_request(rank, operation, send(rank, operation.peer, operation), true);
        break;
      case Operation::Kind::start_receive:
        add_request(rank, operation, receive(rank, operation.peer, operation), false);
        break;
      case Operation::Kind::wait_all:
        call.communicator = no_index;
        call.second_tag = static_cast<std::int32_t>(mine.requests.size());
        for (RequestSnapshot& request : snapshot(rank).requests) request.waiter = 1;
        break;
      default: break;
    }
    thread.in_mpi = true;
    thread.current = call;
  }

  bool is_complete(std::int32_t rank, const Operation& operation) {
    State& mine = state(rank);
    match(rank);
    switch (operation.kind) {
      case Operation::Kind::compute: return now_ >= mine.until;
      case Operation::Kind::die:
      case Operation::Kind::stop:
      case Operation::Kind::spin:
      case Operation::Kind::read: return false;
      case Operation::Kind::collective: return is_collective_complete(rank, operation);
      case Operation::Kind::send: return messages_[mine.sent].complete();
      case Operation::Kind::receive: return mine.receives[mine.received].complete;
      case Operation::Kind::exchange: return messages_[mine.sent].complete() && mine.receives[mine.received].complete;
      case Operation::Kind::start_send:
      case Operation::Kind::start_receive: return true;
      case Operation::Kind::wait_all:
        return std::all_of(mine.requests.begin(), mine.requests.end(), [&](const Request& request) {
          return request.send ? messages_[request.index].complete() : mine.receives[request.index].complete;
        });
    }
    return false;
  }

  void end(std::int32_t rank, const Operation& operation) {
    ThreadSnapshot& thread = snapshot(rank).threads[0];
    if (!thread.in_mpi) return;
    if (operation.kind == Operation::Kind::send || operation.kind == Operation::Kind::exchange)
      count_sent(rank, operation.peer);
    if (operation.kind == Operation::Kind::receive) count_received(rank, operation.peer);
    if (operation.kind == Operation::Kind::exchange) count_received(rank, operation.source);
    if (operation.kind == Operation::Kind::wait_all) {
      state(rank).requests.clear();
      snapshot(rank).requests.clear();
    }
    thread.in_mpi = false;
    thread.last_left = thread.current->left = ticks();
    thread.finished.push_back(*thread.current);
    if (thread.finished.size() > 32) thread.finished.erase(thread.finished.begin());
    thread.current.reset();
  }

  bool is_collective_complete(std::int32_t rank, const Operation& operation) {
    const auto ordinal = static_cast<std::uint32_t>(communicator_of(rank, operation.communicator).collectives);
    const auto& entries = collectives_[{operation.communicator, ordinal}];
    for (const auto& [member, entry] : entries)
      if (entry.function != operation.function || entry.root != operation.peer) return false;
    const std::vector<std::int32_t>& members = communicators_[operation.communicator];
    const auto has_entered = [&](std::int32_t member) { return entries.count(member) != 0; };
    const bool all = std::all_of(members.begin(), members.end(), has_entered);
    const bool is_root = operation.peer >= 0 && members[static_cast<std::size_t>(operation.peer)] == rank;
    switch (kind_of(number_of(operation.function), true)) {
      case CallKind::from_root: return is_root || has_entered(members[static_cast<std::size_t>(operation.peer)]);
      case CallKind::to_root: return !is_root || all;
      default: return all;
    }
  }

  std::size_t send(std::int32_t rank, std::int32_t peer, const Operation& operation) {
    messages_.push_back({rank, peer, operation.tag, operation.bytes});
    return messages_.size() - 1;
  }
  std::size_t receive(std::int32_t rank, std::int32_t peer, const Operation& operation) {
    state(rank).receives.push_back({peer, operation.tag});
    return state(rank).receives.size() - 1;
  }
  /// A blocking call counts when it is complete, another one when it begins. Returns the number of the message.
  std::uint32_t count_sent(std::int32_t rank, std::int32_t peer) {
    return static_cast<std::uint32_t>(++peer_of(rank, peer).sent_messages);
  }
  std::uint32_t count_received(std::int32_t rank, std::int32_t peer) {
    if (peer >= 0) return static_cast<std::uint32_t>(++peer_of(rank, peer).received_messages);
    ++snapshot(rank).other_receives;
    return 0;
  }
  /// Receives take the earliest message that matches, in the order in which they were posted.
  void match(std::int32_t rank) {
    for (Receive& receive : state(rank).receives) {
      if (receive.complete) continue;
      for (Message& message : messages_)
        if (!message.taken && message.to == rank && message.tag == receive.tag &&
            (receive.from == any_rank || receive.from == message.from)) {
          message.taken = receive.complete = true;
          break;
        }
    }
  }
  void add_request(std::int32_t rank, const Operation& operation, std::size_t index, bool send) {
    RequestSnapshot request;
    request.key = ++keys_;
    request.posted = ticks();
    request.bytes = operation.bytes;
    request.function = number_of(operation.function);
    request.communicator = operation.communicator;
    request.peer = operation.peer;
    request.tag = operation.tag;
    request.number = send ? count_sent(rank, operation.peer) : count_received(rank, operation.peer);
    snapshot(rank).requests.push_back(request);
    state(rank).requests.push_back({request.key, index, send});
  }
  CommunicatorSnapshot& communicator_of(std::int32_t rank, std::uint32_t index) {
    auto& all = snapshot(rank).communicators;
    return *std::find_if(all.begin(), all.end(), [index](const CommunicatorSnapshot& c) { return c.index == index; });
  }
  PeerSnapshot& peer_of(std::int32_t rank, std::int32_t peer) {
    auto& peers = snapshot(rank).peers;
    for (PeerSnapshot& known : peers)
      if (known.rank == static_cast<std::uint32_t>(peer)) return known;
    PeerSnapshot made;
    made.rank = static_cast<std::uint32_t>(peer);
    return peers.emplace_back(made);
  }

  SampleJob sample_;
  std::vector<State> states_;
  std::vector<std::vector<Operation>> programs_{states_.size()};
  std::vector<std::vector<std::int32_t>> communicators_;
  std::deque<Message> messages_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::map<std::int32_t, Entry>> collectives_;
  std::uint64_t keys_ = 0;
  double now_ = 100;
};

}  // namespace bestride::inline telemetry
