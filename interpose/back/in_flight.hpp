// SPDX-License-Identifier: Apache-2.0
#pragma once
// InFlight: what is owed at the completion of a request, keyed by the request handle the application holds.
//
// The application always holds the library's own request; this table hangs beside it. Two facts of MPI libraries shape it.
// A handle value is used again as soon as the library frees it, by any thread: so an entry is taken out *before* the real
// completion function is called and put back if the request did not complete. And MPICH answers several small sends with one
// shared handle that is complete from the start: so insert() refuses a second entry on a handle, and the caller settles at
// once what it finds to be complete.
// Chains run through the entries themselves, so nothing but growing allocates, and growing may fail without harm.
// A template on the handle and the entry, so that it is tested without MPI.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "interpose/back/fail.hpp"

namespace bestride {

/// `Entry` has members: Handle request; Entry* chain; int index.
template <class Handle, class Entry>
class InFlight {
 public:
  InFlight() noexcept = default;
  ~InFlight() {
    if (buckets_ != first_) std::free(buckets_);
  }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  /// True while nothing is owed anywhere: one relaxed load. An application can only complete a request it was given, and what
  /// gave it to this thread also ordered the insertion before this load.
  bool empty() const noexcept { return owed_.load(std::memory_order_relaxed) == 0; }
  std::size_t size() const noexcept { return static_cast<std::size_t>(owed_.load(std::memory_order_relaxed)); }

  /// False, and nothing inserted, if an entry hangs on this handle already.
  bool insert(Entry* entry) noexcept {
    const std::lock_guard lock(mutex_);
    if (find_locked(entry->request)) return false;
    link(entry);
    owed_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  /// Takes the entry of `request` out; nullptr if there is none. It stays counted until put_back() or settled().
  Entry* extract(Handle request) noexcept {
    const std::lock_guard lock(mutex_);
    return extract_locked(request);
  }
  /// Takes out the entries of requests[0..count): a list by `chain`, in the order of the array, each with its `index`. Looks no
  /// further than until the table is empty: in a long array of which little is owed, what is owed tends to be all there is.
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
  /// An extracted entry is gone for good.
  void settled() noexcept { owed_.fetch_sub(1, std::memory_order_relaxed); }
  /// Keeps empty() false while something is owed that hangs on no handle of the application's.
  void count_one() noexcept { owed_.fetch_add(1, std::memory_order_relaxed); }

  /// Calls use(entry) under the table's lock; false if nothing hangs on `request`. If use() returns true the entry is taken out.
  template <class Use>
  bool with(Handle request, Use&& use) noexcept {
    const std::lock_guard lock(mutex_);
    Entry* entry = find_locked(request);
    if (!entry) return false;
    if (use(entry)) extract_locked(request);
    return true;
  }
  /// The entry stays in the table; the pointer holds as long as MPI's rules keep others from completing the request.
  Entry* find(Handle request) noexcept {
    const std::lock_guard lock(mutex_);
    return find_locked(request);
  }

 private:
  static std::uint64_t bits(Handle handle) noexcept {
    std::uint64_t value = 0;
    static_assert(sizeof handle <= sizeof value);
    std::memcpy(&value, &handle, sizeof handle);
    return value;
  }
  Entry** bucket(Handle request) noexcept {
    return &buckets_[(bits(request) * 0x9E3779B97F4A7C15u) >> (64 - log_buckets_)];
  }
  Entry* find_locked(Handle request) noexcept {
    for (Entry* entry = *bucket(request); entry; entry = entry->chain)
      if (entry->request == request) return entry;
    return nullptr;
  }
  Entry* extract_locked(Handle request) noexcept {
    for (Entry** place = bucket(request); *place; place = &(*place)->chain)
      if ((*place)->request == request) {
        Entry* entry = *place;
        *place = entry->chain;
        entry->chain = nullptr;
        --linked_;
        return entry;
      }
    return nullptr;
  }
  void link(Entry* entry) noexcept {
    if (++linked_ > (std::size_t{2} << log_buckets_)) grow();
    Entry** place = bucket(entry->request);
    entry->chain = *place;
    *place = entry;
  }
  void grow() noexcept {
    const std::size_t old_count = std::size_t{1} << log_buckets_;
    if (fail_here(FailPoint::table)) return;
    auto** wider = static_cast<Entry**>(std::calloc(old_count * 4, sizeof(Entry*)));
    if (!wider) return;  // longer chains, nothing worse
    Entry** old = buckets_;
    buckets_ = wider;
    log_buckets_ += 2;
    for (std::size_t i = 0; i < old_count; ++i)
      for (Entry* entry = old[i]; entry;) {
        Entry* following = entry->chain;
        Entry** place = bucket(entry->request);
        entry->chain = *place;
        *place = entry;
        entry = following;
      }
    if (old != first_) std::free(old);
  }

  static constexpr int first_log = 8;
  std::mutex mutex_;
  std::atomic<std::int64_t> owed_{0};
  std::size_t linked_ = 0;
  int log_buckets_ = first_log;
  Entry* first_[std::size_t{1} << first_log] = {};
  Entry** buckets_ = first_;
};

}  // namespace bestride
