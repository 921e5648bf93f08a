// SPDX-License-Identifier: Apache-2.0
#pragma once
// RequestTable: the pending work for a request (its entry: a Completion), keyed by the request handle that the
// application holds.
//
// The application always holds the library's own request; the table holds additional data for it. Two properties of MPI
// libraries determine the design. First, a handle value may be used again by any thread as soon as the library frees
// it. So an entry is removed *before* the real completion function is called, and put back if the request did not
// complete. Second, MPICH returns one shared handle, complete from the start, for several small sends. So insert()
// refuses a second entry for a handle, and the caller completes such an entry at once. Hash chains run through the
// entries, so only growing allocates, and growing may fail without harm. A template on the handle and the entry, so
// that it can be tested without MPI.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>

#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/handle_bits.hpp"

namespace bestride::inline interpose {

/// `Entry` has members: Handle request; Entry* chain; int index.
template <class Handle, class Entry>
class RequestTable {
 public:
  RequestTable() noexcept = default;
  ~RequestTable() {
    if (buckets_ != first_) std::free(buckets_);
  }
  RequestTable(const RequestTable&) = delete;
  RequestTable& operator=(const RequestTable&) = delete;

  /// True if no request has pending work: one relaxed load. An application can only complete a request that it was
  /// given, and whatever gave it to this thread also ordered the insertion before this load.
  bool empty() const noexcept { return attached_.load(std::memory_order_relaxed) == 0; }
  std::size_t size() const noexcept { return static_cast<std::size_t>(attached_.load(std::memory_order_relaxed)); }

  /// False if the handle has an entry already; then nothing is inserted.
  bool insert(Entry* entry) noexcept {
    const std::lock_guard lock(mutex_);
    if (find_locked(entry->request)) return false;
    link(entry);
    attached_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  /// Removes the entry of `request` and returns it; nullptr if there is none. It stays counted until settled().
  Entry* extract(Handle request) noexcept {
    const std::lock_guard lock(mutex_);
    Entry* entry = extract_locked(request);
    if (entry) entry->index = 0;
    return entry;
  }
  /// Removes the entries of requests[0..count) and returns them as a list linked by `chain`, in the order of the array,
  /// each with its `index`. Stops as soon as the table is empty: if few requests of a long array have entries, these
  /// are often all entries of the table.
  Entry* extract_all(const Handle* requests, int count) noexcept {
    const std::lock_guard lock(mutex_);
    Entry* first = nullptr;
    Entry** last = &first;
    for (int i = 0; i < count && linked_ > 0; ++i)
      if (Entry* entry = extract_locked(requests[i])) {
        entry->index = i;
        *last = entry;
        last = &entry->chain;
      }
    *last = nullptr;
    return first;
  }
  void put_back(Entry* entry) noexcept {
    const std::lock_guard lock(mutex_);
    link(entry);
  }
  /// An extracted entry will not be put back.
  void count_removed() noexcept { attached_.fetch_sub(1, std::memory_order_relaxed); }
  /// Keeps empty() false while work is pending that belongs to no handle of the application.
  void count_one() noexcept { attached_.fetch_add(1, std::memory_order_relaxed); }

  /// Calls function(entry) under the table's lock and removes the entry if function() returns true. Returns false if
  /// `request` has no entry.
  template <class Function>
  bool with(Handle request, Function&& function) noexcept {
    const std::lock_guard lock(mutex_);
    Entry* entry = find_locked(request);
    if (!entry) return false;
    if (function(entry)) extract_locked(request);
    return true;
  }
  /// Returns the entry without removing it; nullptr if there is none. The pointer is valid as long as MPI's rules keep
  /// other threads from completing the request.
  Entry* find(Handle request) noexcept {
    const std::lock_guard lock(mutex_);
    return find_locked(request);
  }

 private:
  Entry** bucket(Handle request) noexcept {
    return &buckets_[(bits_of(request) * 0x9E3779B97F4A7C15u) >> (64 - log_buckets_)];
  }
  Entry* find_locked(Handle request) noexcept {
    for (Entry* entry = *bucket(request); entry; entry = entry->chain)
      if (entry->request == request) return entry;
    return nullptr;
  }
  Entry* extract_locked(Handle request) noexcept {
    for (Entry** link = bucket(request); *link; link = &(*link)->chain)
      if ((*link)->request == request) {
        Entry* entry = *link;
        *link = entry->chain;
        entry->chain = nullptr;
        --linked_;
        return entry;
      }
    return nullptr;
  }
  void link(Entry* entry) noexcept {
    if (++linked_ > (std::size_t{2} << log_buckets_)) grow();
    Entry** link = bucket(entry->request);
    entry->chain = *link;
    *link = entry;
  }
  void grow() noexcept {
    const std::size_t old_count = std::size_t{1} << log_buckets_;
    if (inject_failure(FailPoint::table)) return;
    auto** wider = static_cast<Entry**>(std::calloc(old_count * 4, sizeof(Entry*)));
    if (!wider) return;  // without memory the chains get longer
    Entry** old = buckets_;
    buckets_ = wider;
    log_buckets_ += 2;
    for (std::size_t i = 0; i < old_count; ++i)
      for (Entry* entry = old[i]; entry;) {
        Entry* following = entry->chain;
        Entry** link = bucket(entry->request);
        entry->chain = *link;
        *link = entry;
        entry = following;
      }
    if (old != first_) std::free(old);
  }

  static constexpr int first_log = 8;
  std::mutex mutex_;
  std::atomic<std::int64_t> attached_{0};
  std::size_t linked_ = 0;
  int log_buckets_ = first_log;
  Entry* first_[std::size_t{1} << first_log] = {};
  Entry** buckets_ = first_;
};

}  // namespace bestride::inline interpose
