// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recorder: the writer of this process's record file.
//
// A call costs two readings of the tick counter and some stores into memory that only this thread writes: no lock, no
// system call, no allocation. Each thread that makes MPI calls has a slot with a ring. The call in progress is written
// into the ring at its beginning, so one copy serves both a reader that asks what a rank does now and one that asks
// what it did before. If recording exceeds its cost limit, the process reads the counter for one of several calls only.
// Alternative considered: a record written at the end of a call besides a copy of the current one, which costs twice
// the stores.
#include <atomic>
#include <cstdint>
#include <string>

#include "telemetry/record/call_facts.hpp"
#include "telemetry/record/call_memo.hpp"
#include "telemetry/record/layout.hpp"
#include "telemetry/record/tick_clock.hpp"

namespace bestride::inline telemetry {

/// One thread's way into the record file. Used by its thread only.
struct ThreadRecorder {
  /// Why a call does not simply go on: bits of `gate`.
  enum Gate : std::uint32_t {
    inside = 1,        ///< in a recorded call: calls inside it are not recorded; or the thread is not recorded at all
    by_pmpi_name = 2,  ///< only between the two entries of a function
  };

  // What each call needs is in one cache line.
  alignas(64) std::uint32_t gate = 0;
  std::uint8_t slot = 0;
  bool timed = false;            ///< the counter was read when the call in progress began
  std::uint64_t mask = 0;        ///< ring size - 1
  std::uint64_t calls = 0;       ///< begun
  std::uint64_t next_timed = 0;  ///< `calls` before the next call that is timed
  std::uint64_t latest = 0;      ///< the last reading of the tick counter
  CallRecord* ring = nullptr;
  CallRecord* call = nullptr;  ///< the last one
  ThreadRecord* record = nullptr;
  unsigned char* wait_list = nullptr;  ///< in the record file
  std::size_t wait_list_bytes = 0;
  std::uint64_t sampling = 0;    ///< on average one of sampling + 1 calls is timed: 0, 1, 3, 7, ...
  std::uint64_t random = 1;      ///< state of draw()
  std::uint64_t checked = 0;     ///< ticks when the rate of calls was last checked; 0: not yet
  std::uint64_t checked_at = 0;  ///< `calls` then
  std::uint32_t checks = 0;      ///< of the rate, so far
  std::uint64_t polled_at = 0;   ///< `calls` at the last polling call that found nothing
  std::uint64_t noted_poll = 0;  ///< poll_key() of the last one that was noted
  std::uint32_t polls_left = 0;  ///< before they are noted

  /// The next call is to be timed.
  bool times_next() const noexcept { return calls >= next_timed; }
  /// Begins the record of a call; the gate is closed.
  [[gnu::always_inline]] void begin(const CallFacts& facts) noexcept {
    if (times_next()) [[unlikely]]
      begin_timed();
    begin_untimed(facts);
  }
  /// Begins the record of a call that is not to be timed; the gate is closed.
  [[gnu::always_inline]] void begin_untimed(const CallFacts& facts) noexcept {
    const std::uint64_t number = calls;
    CallRecord& next = ring[number & mask];
    next.sequence.set(2 * number + 1);
    std::atomic_thread_fence(std::memory_order_release);
    next.entered.set(latest);
    next.left.set(0);
    write_facts(next, facts);
    next.sequence.atomic().store(2 * number + 2, std::memory_order_release);
    call = &next;
    calls = number + 1;
    record->calls.atomic().store(number + 1, std::memory_order_release);
    gate = inside;
  }
  /// Ends it. `now`: ticks, or 1 if the end is not timed. Returns its duration in ticks, 0 if it is not timed.
  [[gnu::always_inline]] std::uint64_t end(std::uint64_t now) noexcept {
    call->left.set(now);
    gate = 0;
    if (now == 1) return 0;
    latest = now;
    record->last_left.set(now);
    return now - call->entered.get();
  }
  /// The next random number, whose high bits are good. Which calls are timed is random, since programs repeat sequences
  /// of calls: at equal distances one place could be timed always and another never.
  std::uint64_t draw() noexcept { return random = random * 6364136223846793005u + 1442695040888963407u; }
  /// The thread has left the call in progress without returning from it.
  void abandon() noexcept {
    timed = false;
    end(1);
  }
  /// Called before the wait list is written: the last call's end must be visible before it.
  void begin_wait_list() noexcept { std::atomic_thread_fence(std::memory_order_release); }
  /// The list has the handles for which the next call waits.
  void announce_wait_list(unsigned handles) noexcept { record->wait_list.set(wait_list_of(calls, handles)); }
  /// Polling calls without success, and without another call between them, before they are noted: in a program that
  /// has to wait only a little they cost no more.
  static constexpr std::uint32_t polls_before_notes = 16;
  /// A polling call found nothing. `key`: of what it asks for. True if that has to be noted (PollNotes).
  [[gnu::always_inline]] bool count_poll(std::uint16_t function, std::uint64_t key) noexcept {
    record->polls.add(1);
    record->poll_function.set(function);
    if (polled_at != calls) {
      polled_at = calls;
      polls_left = polls_before_notes;
      return false;
    }
    if (polls_left > 1) {
      --polls_left;
      return false;
    }
    return polls_left != 0 || key != noted_poll;
  }

 private:
  /// Reads the counter; now and then it also adapts how often that is done.
  [[gnu::noinline]] void begin_timed() noexcept;
};

/// A thread that is recorded.
struct RecordedThread : ThreadRecorder {
  CallMemo memos[CallMemo::count];
  /// Takes the place of the wait list for the handles of a call with more requests than the list holds.
  alignas(64) unsigned char long_list[main_wait_list_bytes];
};

/// Recorders of threads that are not recorded: not yet, or never. Their gate is always closed.
extern constinit ThreadRecorder unattached_thread, excluded_thread;

/// The calling thread's recorder; a RecordedThread if it is none of the above.
extern thread_local constinit ThreadRecorder* thread_recorder __attribute__((tls_model("initial-exec")));

class Recorder {
 public:
  /// The process's recorder. Recording is off until start().
  static Recorder& get() noexcept;

  /// Creates and maps the record file and fills in its header. nullptr, after one message, if that is not possible: a
  /// warning if the user has asked for records (`requested`), else at info level. `abi`, `handle_bytes`: of the MPI
  /// library; `launch`: see RecordHeader. Called once.
  RecordFile* open(const char* abi, std::size_t handle_bytes, const char* launch, bool requested) noexcept;
  /// Threads get slots in `file` from now on.
  void start(RecordFile& file) noexcept { file_.store(&file, std::memory_order_release); }
  /// The record file; nullptr if recording is off.
  RecordFile* file() const noexcept { return file_.load(std::memory_order_acquire); }
  const std::string& path() const noexcept { return path_; }

  void set_world(int rank, int size, bool concurrent) noexcept;
  void set_state(ProcessState state) noexcept;
  /// The process has called exit() with this code. Does nothing in a child of the process.
  void set_exited(int code) noexcept;
  /// Measures the tick counter over the time since open(), without waiting.
  void refine_clock() noexcept;
  /// Removes the file: MPI has ended normally. Threads go on writing into the mapping, which nobody reads.
  void remove() noexcept;

  /// Gives the calling thread a slot, if it has none; the slot is free again when the thread ends. Returns
  /// thread_recorder: of a thread that is not recorded if recording is off, the slots are used up or there is no
  /// memory.
  ThreadRecorder* attach_thread() noexcept;
  /// Disables recording in this process: a forked child, which shares its parent's mapping but is no rank.
  void stop_in_child() noexcept;

  /// The rate of calls is checked after so many.
  static constexpr std::uint64_t check_period = 256;
  /// Sets sampling so that the readings take at most 0.4 % of the thread's time.
  void check_rate(ThreadRecorder& thread) noexcept;
  /// Replaces what open() measures; for tests.
  void set_ticks_per_record(double ticks) noexcept { ticks_per_record_ = ticks; }

 private:
  void measure_cost(RecordHeader& header) noexcept;

  std::atomic<RecordFile*> file_{nullptr};
  std::string path_;
  double ticks_per_record_ = 0;
};

}  // namespace bestride::inline telemetry
