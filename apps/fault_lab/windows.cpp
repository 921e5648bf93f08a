// SPDX-License-Identifier: Apache-2.0
#include "phases.hpp"

namespace fault_lab {
namespace {

enum WindowMessage { in_epoch, between_fences, under_lock };

/// A window of one word on each rank, and groups of one rank each.
class Window {
 public:
  explicit Window(const Job& job) {
    MPI_Win_create(&word_, sizeof word_, sizeof word_, MPI_INFO_NULL, job.first, &window_);
    MPI_Win_set_name(window_, "halo window");
    MPI_Comm_group(job.first, &all_);
  }
  ~Window() {
    MPI_Group_free(&all_);
    MPI_Win_free(&window_);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  MPI_Win get() const { return window_; }
  std::uint64_t word() const { return word_; }
  void put(const std::uint64_t& word, int target) const {
    MPI_Put(&word, 1, MPI_UINT64_T, target, 0, 1, MPI_UINT64_T, window_);
  }
  void post(int origin) const { with_group(origin, MPI_Win_post); }
  void start(int target) const { with_group(target, MPI_Win_start); }

 private:
  void with_group(int rank, int (*call)(MPI_Group, int, MPI_Win)) const {
    MPI_Group one;
    MPI_Group_incl(all_, 1, &rank, &one);
    call(one, 0, window_);
    MPI_Group_free(&one);
  }

  std::uint64_t word_ = 0;
  MPI_Win window_ = MPI_WIN_NULL;
  MPI_Group all_ = MPI_GROUP_NULL;
};

/// Each rank puts a word into the window of the next one.
void epochs(Job& job, const Window& window) {
  const int next = (job.rank + 1) % job.ranks, previous = (job.rank + job.ranks - 1) % job.ranks;
  const std::uint64_t sent = job.word(job.rank, in_epoch, 0);
  const bool start_first = job.now(Kind::start_before_post), posts = !job.trigger(Kind::missing_post);
  if (start_first) job.trigger(Kind::start_before_post);
  if (posts && !start_first) window.post(previous);
  const int target = job.trigger(Kind::wrong_group) ? (next + 1) % job.ranks : next;
  window.start(target);
  if (start_first) window.post(previous);
  window.put(sent, target);
  if (!job.trigger(Kind::missing_complete)) MPI_Win_complete(window.get());
  if (job.trigger(Kind::late_target)) job.computation.run(job.options.pause_seconds);
  if (posts) MPI_Win_wait(window.get());
  MPI_Barrier(job.first);
  job.check("an epoch", 0, window.word(), job.word(previous, in_epoch, 0));
  MPI_Barrier(job.first);
}

void fences(Job& job, const Window& window) {
  const int next = (job.rank + 1) % job.ranks, previous = (job.rank + job.ranks - 1) % job.ranks;
  const std::uint64_t sent = job.word(job.rank, between_fences, 0);
  MPI_Win_fence(MPI_MODE_NOPRECEDE, window.get());
  window.put(sent, next);
  if (job.trigger(Kind::missing_fence)) return;
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window.get());
  job.check("a fence epoch", 0, window.word(), job.word(previous, between_fences, 0));
}

/// All ranks write the window of rank 0, one after the other.
void locks(Job& job, const Window& window) {
  const std::uint64_t sent = job.word(0, under_lock, 0);
  const bool held = job.trigger(Kind::lock_held);
  if (job.now(Kind::lock_held)) {
    // The rank of the fault is the first to lock.
    if (held) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.get());
    MPI_Barrier(job.second);
    if (held) MPI_Barrier(job.first);
  }
  if (!held && job.plan.variant % 2 && job.now(Kind::lock_held)) {
    MPI_Win_lock_all(0, window.get());
    window.put(sent, 0);
    MPI_Win_unlock_all(window.get());
  } else {
    if (!held) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.get());
    if (job.trigger(Kind::late_lock_holder)) job.computation.run(job.options.pause_seconds);
    window.put(sent, 0);
    MPI_Win_unlock(0, window.get());
  }
  MPI_Barrier(job.first);
  if (job.rank == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.get());
    job.check("a word under a lock", 0, window.word(), sent);
    MPI_Win_unlock(0, window.get());
  }
}

}  // namespace

void windows(Job& job) {
  const Window window(job);
  epochs(job, window);
  fences(job, window);
  MPI_Barrier(job.first);
  locks(job, window);
}

}  // namespace fault_lab
