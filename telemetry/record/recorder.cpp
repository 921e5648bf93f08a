// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/recorder.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "base/float_environment.hpp"
#include "base/launcher_rank.hpp"
#include "base/message.hpp"
#include "telemetry/record/functions.hpp"
#include "telemetry/record/job_folder.hpp"
#include "telemetry/record/process_state.hpp"

namespace bestride::inline telemetry {

constinit ThreadRecorder unattached_thread{.gate = ThreadRecorder::inside};
constinit ThreadRecorder excluded_thread{.gate = ThreadRecorder::inside};
thread_local constinit ThreadRecorder* thread_recorder __attribute__((tls_model("initial-exec"))) = &unattached_thread;

namespace {

/// Records of ended jobs are removed when a job begins this long after.
constexpr double stale_seconds = 600;

std::mutex& slot_mutex() noexcept {
  static std::mutex mutex;
  return mutex;
}

/// A pthread key is used rather than a C++ thread-local destructor, which would prevent this object from being unloaded
/// and would run before the application's own destructors.
pthread_key_t thread_key;
const bool thread_key_made = pthread_key_create(&thread_key, [](void* recorder) {
                               auto* const thread = static_cast<RecordedThread*>(recorder);
                               thread_recorder = &excluded_thread;
                               // The slot's next thread writes what this one has written.
                               if (const std::lock_guard lock(slot_mutex()); thread->record) thread->record->tid.set(0);
                               delete thread;
                             }) == 0;

void copy(char* to, std::size_t size, const char* from) noexcept { std::snprintf(to, size, "%s", from); }

}  // namespace

Recorder& Recorder::get() noexcept {
  // Never destroyed: MPI may be called from destructors of other libraries.
  alignas(Recorder) static unsigned char storage[sizeof(Recorder)];
  static Recorder* const recorder = new (storage) Recorder;
  return *recorder;
}

RecordFile* Recorder::open(const char* abi, std::size_t handle_bytes, const char* launch, bool requested) noexcept {
  std::string job;
  try {
    job = job_name(launch);
  } catch (...) {
    return nullptr;
  }
  remove_stale_records(stale_seconds);
  const Result<RecordFile*> created = create_record(job, &path_);
  if (!created) {
    // Mostly the cause is the same for all ranks of a host; then the first of them says so.
    const bool said = requested && launcher_local_rank() <= 0;
    (said ? warn_once : log_info_once)("record", "calls are not recorded: %s", created.error().text.c_str());
    return nullptr;
  }
  RecordFile& file = **created;
  RecordHeader& header = file.header;
  header.version = record_version;
  header.file_bytes = record_file_bytes;
  header.function_count = static_cast<std::uint32_t>(recorded_functions().size());
  header.function_hash = recorded_functions_hash();
  header.pid = getpid();
  header.uid = getuid();
  header.process_start = own_start_time();
  read_boot_id(header.boot_id);
  header.pid_namespace = own_pid_namespace();
  header.ticks_per_second.set(ticks_per_second());
  const ClockAnchor clocks = read_clocks();
  header.anchor_ticks = clocks.ticks;
  header.anchor_monotonic = clocks.monotonic;
  header.anchor_realtime = clocks.realtime;
  gethostname(header.host, sizeof header.host - 1);
  copy(header.job, sizeof header.job, job.c_str());
  if (const ssize_t length = readlink("/proc/thread-self/exe", header.executable, sizeof header.executable - 1);
      length < 0)
    header.executable[0] = '\0';
  copy(header.abi, sizeof header.abi, abi);
  if (const char* const watcher = std::getenv("BESTRIDE_WATCHER")) copy(header.watcher, sizeof header.watcher, watcher);
  copy(header.launch, sizeof header.launch, launch);
  header.launch_rank = launcher_rank();
  header.launch_size = launcher_size();
  header.handle_bytes = static_cast<std::uint32_t>(handle_bytes);
  header.world_rank.set(-1);
  header.sampling.set(1);
  std::uint64_t magic;
  std::memcpy(&magic, record_magic, sizeof magic);
  header.magic.store(magic, std::memory_order_release);
  pthread_atfork(nullptr, nullptr, [] { Recorder::get().stop_in_child(); });
  measure_cost(header);
  return &file;
}

void Recorder::set_world(int rank, int size, bool concurrent) noexcept {
  if (RecordFile* const known = file()) {
    known->header.concurrent.set(concurrent ? 1 : 0);
    known->header.world_rank.set(rank);
    known->header.world_size.set(size);
  }
}

void Recorder::refine_clock() noexcept {
  RecordFile* const known = file();
  const ClockAnchor now = read_clocks();
  if (!known || now.monotonic - known->header.anchor_monotonic < 5'000'000) return;
  known->header.ticks_per_second.set(
      ticks_per_second({known->header.anchor_ticks, known->header.anchor_monotonic, 0}, now));
}

void Recorder::set_state(ProcessState state) noexcept {
  if (RecordFile* const known = file()) known->header.state.set(static_cast<std::uint32_t>(state));
}

void Recorder::set_exited(int code) noexcept {
  RecordFile* const known = file();
  if (known && known->header.pid == getpid()) known->header.exited.set(1 + (static_cast<unsigned>(code) & 0xff));
}

void Recorder::remove() noexcept {
  if (file()) remove_record(path_);
}

ThreadRecorder* Recorder::attach_thread() noexcept {
  RecordFile* const known = file();
  if (!known || thread_recorder != &unattached_thread) return thread_recorder;  // recording may begin later
  auto* const thread = thread_key_made ? new (std::nothrow) RecordedThread : nullptr;
  if (!thread || pthread_setspecific(thread_key, thread) != 0) {
    delete thread;
    known->header.threads_dropped.add(1);
    return thread_recorder = &excluded_thread;
  }
  const std::lock_guard lock(slot_mutex());
  unsigned slot = 0;
  while (slot < max_threads && known->threads[slot].tid.get() != 0) ++slot;
  if (slot == max_threads) {
    pthread_setspecific(thread_key, nullptr);
    delete thread;
    known->header.threads_dropped.add(1);
    return thread_recorder = &excluded_thread;
  }
  thread->slot = static_cast<std::uint8_t>(slot);
  thread->mask = (slot == 0 ? main_ring_size : ring_size) - 1;
  thread->ring = &known->call(slot, 0);
  thread->record = &known->threads[slot];
  thread->calls = thread->record->calls.get();  // numbers go on where the slot's last thread stopped
  thread->latest = ticks();
  thread->wait_list = known->wait_list(slot);
  thread->wait_list_bytes = RecordFile::bytes_of_wait_list(slot);
  // The slot's last thread may have ended in a call.
  if (CallRecord& last = known->call(slot, thread->calls - 1); thread->calls != 0 && last.left.get() == 0)
    last.left.set(1);
  thread->record->tid.set(static_cast<std::uint32_t>(syscall(SYS_gettid)));
  if (slot >= known->header.threads.get()) known->header.threads.set(slot + 1);
  return thread_recorder = thread;
}

void Recorder::stop_in_child() noexcept {
  file_.store(nullptr, std::memory_order_release);
  thread_recorder = &excluded_thread;
}

void ThreadRecorder::begin_timed() noexcept {
  latest = ticks();
  timed = true;
  next_timed = calls + 1 + ((draw() >> 32) * (2 * sampling + 1) >> 32);
  if (calls - checked_at >= Recorder::check_period || checked == 0) Recorder::get().check_rate(*this);
}

void Recorder::check_rate(ThreadRecorder& thread) noexcept {
  constexpr double most = 0.004;
  constexpr std::uint64_t most_sampling = 63;
  const std::uint64_t now = ticks();
  const std::uint64_t calls = thread.calls - std::exchange(thread.checked_at, thread.calls);
  const std::uint64_t before = std::exchange(thread.checked, now);
  if (before == 0) return;
  const FloatEnvironment floats;
  const double share = static_cast<double>(calls) * ticks_per_record_ / static_cast<double>(now - before + 1);
  const auto limit = [&](double part) { return share > part * most * static_cast<double>(thread.sampling + 1); };
  // Upwards at once, because a program may make its calls within a millisecond; downwards slowly.
  while (limit(1) && thread.sampling < most_sampling) thread.sampling = 2 * thread.sampling + 1;
  if (++thread.checks % 16 == 0 && !limit(0.25)) thread.sampling /= 2;
  if (RecordFile* const known = file()) known->header.sampling.set(static_cast<std::uint32_t>(thread.sampling + 1));
}

void Recorder::measure_cost(RecordHeader& header) noexcept {
  constexpr unsigned records = 64;
  const FloatEnvironment floats;
  auto* const thread = new (std::nothrow) ThreadRecorder;
  auto* const ring = new (std::nothrow) CallRecord[records];
  ThreadRecord record;
  std::memset(static_cast<void*>(&record), 0, sizeof record);
  if (thread && ring) {
    thread->mask = records - 1;
    thread->ring = ring;
    thread->record = &record;
    double least = 1e9;
    for (int round = 0; round < 4; ++round) {
      const std::uint64_t before = ticks();
      for (unsigned i = 0; i < records; ++i) {
        thread->begin({});
        thread->end(ticks());
      }
      const double spent = static_cast<double>(ticks() - before) / records;
      least = spent < least ? spent : least;
    }
    ticks_per_record_ = least;
    header.ticks_per_record.set(least);
  }
  delete[] ring;
  delete thread;
}

}  // namespace bestride::inline telemetry
