// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/one_node.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "base/message.hpp"
#include "base/not_cancelled.hpp"
#include "collectives/one_node/vote.hpp"
#include "interpose/collectives/job.hpp"
#include "interpose/collectives/library_form.hpp"
#include "interpose/collectives/member.hpp"
#include "interpose/collectives/mpi_transport.hpp"
#include "interpose/collectives/operation.hpp"
#include "interpose/collectives/pending.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/mpi/yielding_progress.hpp"
#include "interpose/objects/predefined_types.hpp"
#include "interpose/objects/runtime.hpp"
#include "interpose/objects/window_count.hpp"

namespace bestride::inline interpose {
namespace {

/// Bytes of all windows of this process that belong to communicators on one node.
constinit std::atomic<std::int64_t> window_bytes{0};
/// Limit of window_bytes, as a multiple of the limit of one communicator.
constexpr int most_windows = 4;

constexpr int calls_before = 2;  ///< calls of a communicator before its memory is made

/// How often a condition is checked before this rank sleeps: about 0.5 ms, or 3 us if another rank may need the
/// processor. A rank that yields (interpose/mpi/yielding_progress.hpp) never sleeps: between ranks that yield, waking
/// up takes five times as long.
constexpr int checks = 20'000, checks_if_crowded = 100, checks_before_yield = 20;
/// While a rank sleeps, nothing in its MPI library makes progress, and another member may wait for that. So it sleeps
/// for a short time first, and not at all while it has a window, because each one-sided operation of others may need
/// its library. It does not yield in that case, either: on a busy machine, others would get the processor for
/// milliseconds.
constexpr long first_sleep_ns = 100'000, longest_sleep_ns = 1'000'000;

void relax_processor() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void let_others_progress() noexcept {
  int flag = 0;
  if (const Job* all = job())
    real.Iprobe(MPI_ANY_SOURCE, MpiTransport::no_messages_tag, all->private_comm, &flag, MPI_STATUS_IGNORE);
  progress_pending_collectives();
}

/// The maximum over the members, by the MPI library.
bool maximum(MPI_Comm comm, std::int64_t* value) noexcept {
  const std::int64_t own = *value;
  return real.Allreduce(&own, value, 1, MPI_INT64_T, MPI_MAX, comm) == MPI_SUCCESS;
}

/// nullptr: left to the MPI library.
OneNode* prepared(MPI_Comm comm, CommEntry& entry) noexcept {
  CommCollectives& collectives = entry.collectives;
  if (!collectives.one_node) {
    if (collectives.one_node_calls > calls_before) return nullptr;
    if (collectives.one_node_calls++ < calls_before) return nullptr;
    collectives.one_node = OneNode::make(comm, entry);
  }
  return collectives.one_node.get();
}

}  // namespace

OneNode::OneNode(Window window, const RoundsShape& shape, int rank)
    : window_(std::move(window)),
      bytes_(static_cast<std::int64_t>(shape.bytes())),
      rounds_(window_.data(), shape, rank) {
  window_bytes.fetch_add(bytes_, std::memory_order_relaxed);
}

OneNode::~OneNode() { window_bytes.fetch_sub(bytes_, std::memory_order_relaxed); }

std::shared_ptr<OneNode> OneNode::make(MPI_Comm comm, CommEntry& entry) noexcept {
  const Job* all = job();
  if (!all) return nullptr;
  const std::int64_t limit = all->settings.window_limit;
  const RoundsShape shape = RoundsShape::within(entry.size(), limit);
  const auto bytes = static_cast<std::int64_t>(shape.bytes());
  // The number of bytes in use may differ between members, so the largest counts.
  std::int64_t used = window_bytes.load(std::memory_order_relaxed);
  if (!maximum(comm, &used)) return nullptr;
  if (used + bytes > most_windows * std::max(limit, bytes)) {
    log_info_once("one_node",
                  "communicators on one node share %lld MiB; collectives of newer ones are left to the "
                  "MPI library (BESTRIDE_WINDOW_LIMIT)",
                  static_cast<long long>(used >> 20));
    return nullptr;
  }
  const bool leads = entry.rank() == 0;
  Window window;
  WindowKey key;
  if (leads) {
    if (!inject_failure(FailPoint::window)) window = Window::create(shape.bytes());
    key = window.key();
  }
  std::int64_t bad = real.Bcast(&key, sizeof key, MPI_BYTE, 0, comm) != MPI_SUCCESS;
  if (!leads) window = Window::open(key);
  bad |= window.data() == nullptr;
  std::shared_ptr<OneNode> made;
  if (!bad) try {
      made.reset(new OneNode(std::move(window), shape, entry.rank()));
    } catch (...) {
      bad = 1;
    }
  if (!maximum(comm, &bad) || bad) {
    warn_once_per_job("window",
                      "no shared memory between the ranks of a node; their collectives are left to the MPI "
                      "library");
    return nullptr;
  }
  if (leads) made->window_.close_descriptor();
  return made;
}

template <class Step>
void OneNode::wait(Step step) noexcept {
  const NotCancelled not_cancelled;
  const bool yields = yields_when_idle();
  const int most = yields ? checks_before_yield : job() && job()->crowded ? checks_if_crowded : checks;
  const bool has_window = window_count.load(std::memory_order_relaxed) > 0;
  const int period = has_window ? 16 : 512;
  for (long sleep_ns = first_sleep_ns;; sleep_ns = std::min(2 * sleep_ns, longest_sleep_ns)) {
    for (int check = 1; check <= most; ++check) {
      if (step()) return;
      if (check % period == 0) let_others_progress();
      relax_processor();
    }
    let_others_progress();
    if (has_window || yields) continue;
    const Rounds::Sleep sleep = rounds_.prepare_sleep();
    const bool ended = step();
    if (ended || !rounds_.still(sleep))
      rounds_.cancel(sleep);
    else
      rounds_.start(sleep, sleep_ns);
    if (ended) return;
  }
}

void OneNode::agree(std::span<std::int64_t> values) noexcept {
  Vote vote(rounds_, values);
  wait([&] { return vote.step(); });
}

bool OneNode::run(Operation& operation) noexcept {
  operation.failed = false;
  try {
    if (inject_failure(FailPoint::operation)) throw std::bad_alloc();
    Task task = operation.begin(rounds_);
    wait([&] { return task.step(); });
    // After a collective of the MPI library, earlier messages of other members' one-sided operations have arrived. The
    // same must hold here, because MPI_Win_test of MPICH 4.0.2 checks for them before it makes progress.
    if (window_count.load(std::memory_order_relaxed) > 0) let_others_progress();
    operation.failed = task.failed();
  } catch (...) {
    warn_once("operation",
              "no memory to carry out a collective: the call returns an error, and other ranks may wait for this one");
    operation.failed = true;
  }
  if (!operation.failed) operation.finish();
  return !operation.failed;
}

OneNode* choose_one_node(MPI_Comm comm, CommEntry& entry, Collective what, std::int64_t bytes, std::int64_t element,
                         bool gaps) noexcept {
  const Job* all = job();
  if (!all || !may_share_memory(entry) || in_library_collective) return nullptr;
  const OneNodeChoice choice = choose_on_one_node(what, bytes, entry.size(), entry.collectives.shares_always);
  if (choice == OneNodeChoice::library) return nullptr;
  // A part of a slot must have room for an element.
  if (what == Collective::reduce_scatter &&
      element > RoundsShape::within(entry.size(), all->settings.window_limit).part_bytes())
    return nullptr;
  OneNode* const node = prepared(comm, entry);
  if (!node || choice == OneNodeChoice::shared_memory) return node;
  AskingInterval& asking = entry.collectives.asking[static_cast<std::size_t>(what)];
  if (!entry.collectives.shares_always && !asking.asks()) return nullptr;
  std::int64_t any = gaps;
  node->agree({&any, 1});
  asking.answered(!any);
  return any ? node : nullptr;
}

OneNode* choose_one_node(MPI_Comm comm, CommEntry& entry, Collective what, std::int64_t* longest, bool gaps) noexcept {
  const Job* all = job();
  if (!all || !may_share_memory(entry) || in_library_collective) return nullptr;
  OneNode* const node = prepared(comm, entry);
  if (!node) return nullptr;
  AskingInterval& asking = entry.collectives.asking[static_cast<std::size_t>(what)];
  if (!entry.collectives.shares_always && !asking.asks()) return nullptr;
  std::int64_t values[2] = {*longest, gaps};
  node->agree(values);
  *longest = values[0];
  constexpr std::int64_t bound = std::int64_t{1} << 62;
  const std::int64_t bytes = std::min(values[0], bound / entry.size()) * entry.size();
  const OneNodeChoice choice = choose_on_one_node(what, bytes, entry.size(), entry.collectives.shares_always);
  const bool pays =
      choice == OneNodeChoice::shared_memory || (choice == OneNodeChoice::if_any_has_gaps && values[1] != 0);
  asking.answered(!pays);
  return pays ? node : nullptr;
}

bool barrier_on_one_node(MPI_Comm comm) noexcept {
  const Job* all = job();
  if (!all || !all->crowded || in_library_collective) return false;
  const CommMember member(comm, true);
  OneNode* const node = member && may_share_memory(*member) ? prepared(comm, *member) : nullptr;
  if (!node) return false;
  node->agree({});
  if (window_count.load(std::memory_order_relaxed) > 0) let_others_progress();
  return true;
}

bool has_gaps(MPI_Datatype type) noexcept {
  if (predefined(type)) return false;
  TypeEntry* const entry = runtime().types.find(type);
  return !entry || entry->decoded_state() != TypeEntry::State::contiguous;
}

}  // namespace bestride::inline interpose
