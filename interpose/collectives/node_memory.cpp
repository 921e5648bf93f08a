// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/node_memory.hpp"

#include <cstring>

#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {
namespace {

constexpr int key_tag = 1;  ///< in MPI_Init, before the application's messages

/// Records of a rank, by the number of ranks of its node.
std::size_t records_of(std::size_t ranks) noexcept { return std::clamp<std::size_t>(4096 / ranks, 64, 256); }

}  // namespace

bool NodeMemory::join(const Topology& world) noexcept {
  int rank = 0;
  if (real.Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS) return false;
  const auto here = world.ranks_on(world.node_of(rank));
  const int local = world.local_rank_of(rank);
  const std::size_t records = records_of(here.size());
  first_ = local * static_cast<int>(records);
  local_rank_ = local;
  records_ = static_cast<int>(here.size() * records);
  constexpr std::size_t line = 64;
  stride_ = (sizeof(CommRecord) + 2 * here.size() * sizeof(Announcement) + line - 1) / line * line;
  bool ready = true;
  try {
    own_.resize(records);
    free_.reserve(records);
    departing_.reserve(records);
    for (int i = static_cast<int>(records); i > 0; --i) free_.push_back(i - 1);
  } catch (...) {
    ready = false;
  }
  WindowKey key;
  if (local == 0) {
    if (!inject_failure(FailPoint::offers)) window_ = Window::create(here.size() * records * stride_);
    key = window_.key();
    for (std::size_t i = 1; i < here.size(); ++i)
      ready &= real.Send(&key, sizeof key, MPI_BYTE, here[i], key_tag, MPI_COMM_WORLD) == MPI_SUCCESS;
  } else {
    ready &= real.Recv(&key, sizeof key, MPI_BYTE, here[0], key_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    window_ = Window::open(key);
  }
  return ready && window_.data();
}

bool NodeMemory::left_by_all(int own) noexcept {
  return at(first_ + own).departed.load(std::memory_order_acquire) == own_[static_cast<std::size_t>(own)].ranks;
}

void NodeMemory::collect() noexcept {
  for (std::size_t i = 0; i < departing_.size();) {
    const int own = departing_[i];
    if (!left_by_all(own)) {
      ++i;
      continue;
    }
    Own& one = own_[static_cast<std::size_t>(own)];
    for (; one.count > 0; --one.count) pool_.put_back(one.parts[one.count - 1]);
    free_.push_back(own);
    departing_[i] = departing_.back();
    departing_.pop_back();
  }
}

int NodeMemory::take() noexcept {
  if (spare_.load(std::memory_order_relaxed) >= 0)
    if (const int kept = spare_.exchange(-1, std::memory_order_acquire); kept >= 0) return kept;
  const std::lock_guard lock(mutex_);
  // Early, so that few records are in use, which stay in the cache.
  constexpr std::size_t many = 16;
  if (free_.empty() || departing_.size() >= many) collect();
  if (free_.empty()) return -1;
  const int own = free_.back();
  free_.pop_back();
  Own& one = own_[static_cast<std::size_t>(own)];
  if (!one.zero) std::memset(static_cast<void*>(record(first_ + own)), 0, stride_);
  one.zero = true;
  return first_ + own;
}

void NodeMemory::put_back_unused(int index) noexcept {
  int none = -1;
  if (spare_.compare_exchange_strong(none, index, std::memory_order_release, std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  free_.push_back(index - first_);
}

void NodeMemory::put_back(int index, int ranks) noexcept {
  const std::lock_guard lock(mutex_);
  const int own = index - first_;
  Own& one = own_[static_cast<std::size_t>(own)];
  one.zero = false;
  one.ranks = ranks;
  if (one.count == 0 && left_by_all(own))
    free_.push_back(own);
  else
    departing_.push_back(own);
}

Part NodeMemory::give(int index, std::int64_t bytes, PartPool::From from, std::int64_t limit) noexcept {
  const std::lock_guard lock(mutex_);
  if (inject_failure(FailPoint::window)) return {};
  collect();
  Own& one = own_[static_cast<std::size_t>(index - first_)];
  if (one.count == one.parts.size()) return {};
  const Part part = pool_.take(bytes, from, limit);
  if (part.data) one.parts[one.count++] = part;
  return part;
}

bool NodeMemory::pay(std::int64_t calls) noexcept {
  std::int64_t there = left_calls_.load(std::memory_order_relaxed);
  while (there >= calls)
    if (left_calls_.compare_exchange_weak(there, there - calls, std::memory_order_relaxed)) return true;
  return false;
}

std::byte* NodeMemory::find(const WindowKey& key) noexcept {
  const std::lock_guard lock(mutex_);
  return others_.find(key);
}

bool NodeMemory::has_used(std::int64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  collect();
  const Part part = pool_.take(bytes, PartPool::From::used, 0);
  if (!part.data) return false;
  pool_.put_back(part);
  return true;
}

}  // namespace bestride::inline interpose
