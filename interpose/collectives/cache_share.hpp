// SPDX-License-Identifier: Apache-2.0
#pragma once
// CacheShare: the part of a node's cache of past allgathers that this process gives to one queue.
//
// Each process has an equal share of its node's cache, and gives each new queue half of the rest. So there is always
// room for the next queue, and all queues of a node together stay within the user's limit, whichever ranks of the node
// take part in them.
#include <atomic>
#include <cstdint>
#include <utility>

#include "interpose/collectives/job.hpp"

namespace bestride::inline interpose {

class CacheShare {
 public:
  CacheShare() = default;
  explicit CacheShare(std::int64_t bytes) noexcept : bytes_(bytes) {
    given.fetch_add(bytes, std::memory_order_relaxed);
  }
  CacheShare(CacheShare&& other) noexcept : bytes_(std::exchange(other.bytes_, 0)) {}
  CacheShare& operator=(CacheShare&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~CacheShare() { given.fetch_sub(bytes_, std::memory_order_relaxed); }

  /// Bytes for the next queue.
  static std::int64_t next(const Job& job) noexcept {
    return (job.settings.cache_bytes / job.topology.max_ranks_per_node() - given.load(std::memory_order_relaxed)) / 2;
  }

 private:
  static inline constinit std::atomic<std::int64_t> given{0};
  std::int64_t bytes_ = 0;
};

}  // namespace bestride::inline interpose
