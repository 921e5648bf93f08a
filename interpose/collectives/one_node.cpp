// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/one_node.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/message.hpp"
#include "collectives/one_node/vote.hpp"
#include "interpose/collectives/comm_parts.hpp"
#include "interpose/collectives/job.hpp"
#include "interpose/collectives/member.hpp"
#include "interpose/collectives/one_node_wait.hpp"
#include "interpose/collectives/operation.hpp"
#include "interpose/collectives/pending.hpp"
#include "interpose/device/mpi_errors.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/objects/predefined_types.hpp"
#include "interpose/objects/runtime.hpp"
#include "interpose/objects/window_count.hpp"

namespace bestride::inline interpose {
namespace {

/// nullptr: left to the MPI library.
OneNode* prepared(CommEntry& entry, std::int64_t bytes) noexcept {
  OneNode* const node = one_node_of_call(entry);
  return node && node->open(bytes) ? node : nullptr;
}

}  // namespace

void OneNode::ask() noexcept {
  part_->ask();
  wait_for_members([&] {
    return part_->step(full_, asking_.wanted(), [this](std::byte* data, const RoundsShape& shape) {
      return view_of<Rounds>(data, shape, memory_->member().rank);
    });
  });
  rounds_ = part_->view();
  settled_ = part_->settled(full_);
  if (settled_ && !rounds_) report_no_memory();
}

void report_no_record() noexcept {
  log_info_once("records",
                "many communicators or persistent collectives on one node; those of newer ones are left to the MPI "
                "library");
}

void report_no_memory() noexcept {
  warn_once_per_job("window",
                    "no shared memory between the ranks of a node; their collectives are left to the MPI library");
}

bool OneNode::agree(std::span<std::int64_t> values) noexcept {
  Vote vote(*rounds_, values);
  wait_on_one_node(*rounds_, [&] { return vote.step(); });
  return rounds_->outcome() != CallOutcome::left;
}

std::optional<int> OneNode::end_at_once(MPI_Comm comm) noexcept {
  if (window_count.load(std::memory_order_relaxed) > 0) let_others_progress();
  const CallOutcome outcome = rounds().outcome();
  if (outcome == CallOutcome::left) return std::nullopt;
  close();
  return outcome == CallOutcome::complete ? MPI_SUCCESS : raise_error(comm, error_of(outcome));
}

bool OneNode::run(Operation& operation) noexcept {
  operation.failed = false;
  try {
    if (inject_failure(FailPoint::operation) || !operation.fill()) throw std::bad_alloc();
    Task task = operation.begin(*rounds_);
    wait_on_one_node(*rounds_, [&] { return task.step(); });
    // After a collective of the MPI library, earlier messages of other members' one-sided operations have arrived. The
    // same must hold here (quirks::win_test_looks_before_progress).
    if (window_count.load(std::memory_order_relaxed) > 0) let_others_progress();
    operation.outcome = rounds_->outcome();
    operation.failed = task.failed() || operation.outcome != CallOutcome::complete;
  } catch (...) {
    warn_once("operation",
              "no memory to carry out a collective: the call returns an error, and other ranks may wait for this one");
    operation.failed = true;
  }
  if (!operation.failed) operation.finish();
  return !operation.failed;
}

OneNode* choose_one_node(CommEntry& entry, Collective what, std::int64_t bytes, std::int64_t element,
                         bool gaps) noexcept {
  const Job* const all = job();
  if (!all || !may_share_memory(entry)) return nullptr;
  const OneNodeChoice choice =
      choose_on_one_node(what, bytes, entry.size(), collectives_of(entry).shares_always, all->settings.one_node);
  if (choice == OneNodeChoice::library) return nullptr;
  OneNode* const node = prepared(entry, bytes);
  // A rank's part of a slot holds whole elements, so a longer element can't be reduced here.
  if (node && what == Collective::reduce_scatter && element > node->part_bytes()) return nullptr;
  if (!node || choice == OneNodeChoice::shared_memory) return node;
  AskingInterval& asking = collectives_of(entry).asking[static_cast<std::size_t>(what)];
  if (!collectives_of(entry).shares_always && !asking.asks()) return nullptr;
  std::int64_t any = gaps;
  if (!node->agree({&any, 1})) return nullptr;
  asking.answered(!any);
  return any ? node : nullptr;
}

OneNode* choose_one_node(CommEntry& entry, Collective what, std::int64_t bytes) noexcept {
  const Job* const all = job();
  if (!all || !may_share_memory(entry)) return nullptr;
  // Members that know only their own sizes can't choose by these where not all of them wait for all others.
  if (what != Collective::alltoall && !collectives_of(entry).shares_always && !all->settings.one_node.varying)
    return nullptr;
  return prepared(entry, bytes);
}

bool barrier_on_one_node(MPI_Comm comm, CommEntry* known) noexcept {
  if (!job()) return false;
  if (!known || !collectives_of(*known).agreed.load(std::memory_order_acquire)) {
    const CommMember member(comm, true);
    known = member ? runtime().comms.find(comm) : nullptr;
  }
  if (!known || !may_share_memory(*known) || leaves_barriers(*known)) return false;
  OneNode* const node = prepared(*known, 0);
  if (!node || !node->agree({})) return false;
  node->close();
  if (window_count.load(std::memory_order_relaxed) > 0) let_others_progress();
  return true;
}

void count_left_collective(CommEntry& entry) noexcept {
  if (OneNode* const node = one_node_of_call(entry)) node->leave();
  end_call_without_one_node(entry);
}

bool has_gaps(MPI_Datatype type) noexcept {
  if (predefined(type)) return false;
  TypeEntry* const entry = runtime().types.find(type);
  return !entry || entry->decoded_state() != TypeEntry::State::contiguous;
}

}  // namespace bestride::inline interpose
