// SPDX-License-Identifier: Apache-2.0
#pragma once
// Record files for tests: what a rank would write, without MPI. The writer proper (recorder.hpp) needs a job.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "telemetry/record/functions.hpp"
#include "telemetry/record/layout.hpp"
#include "telemetry/record/process_state.hpp"
#include "telemetry/record/tick_clock.hpp"

namespace bestride::inline telemetry {

/// The number of an MPI function; ends the process if there is none of that name.
inline std::uint16_t function_number(const std::string& name) {
  const auto functions = recorded_functions();
  for (std::size_t i = 0; i < functions.size(); ++i)
    if (name == functions[i].name) return static_cast<std::uint16_t>(i);
  std::fprintf(stderr, "there is no function %s\n", name.c_str());
  std::abort();
}

template <std::size_t size>
void set_text(char (&field)[size], const std::string& text) {
  const std::size_t length = text.copy(field, size - 1);
  field[length] = '\0';
}

/// Fills the header as after MPI_Init, with MPI_COMM_WORLD as communicator 0 and one thread.
inline void begin_record(RecordFile& file, int pid, std::uint64_t process_start, int rank, int size) {
  RecordHeader& header = file.header;
  header.version = record_version;
  header.file_bytes = record_file_bytes;
  header.handle_bytes = 4;
  header.function_count = static_cast<std::uint32_t>(recorded_functions().size());
  header.function_hash = recorded_functions_hash();
  header.pid = pid;
  header.uid = geteuid();
  header.process_start = process_start;
  read_boot_id(header.boot_id);
  header.pid_namespace = own_pid_namespace();
  header.ticks_per_second.set(ticks_per_second());
  const ClockAnchor anchor = read_clocks();
  header.anchor_ticks = anchor.ticks;
  header.anchor_monotonic = anchor.monotonic;
  header.anchor_realtime = anchor.realtime;
  set_text(header.host, "node1");
  set_text(header.job, "sample");
  set_text(header.executable, "/usr/bin/solver");
  set_text(header.abi, "mpich");
  header.state.set(static_cast<std::uint32_t>(ProcessState::initialized));
  header.world_rank.set(rank);
  header.world_size.set(size);
  header.threads.set(1);
  header.sampling.set(1);
  file.threads[0].tid.set(static_cast<std::uint32_t>(pid));
  CommunicatorRecord& world = file.communicators[0];
  world.site.set(no_index);
  world.uid.set(1);
  world.size.set(size);
  world.rank.set(rank);
  world.first_member.set(0);
  world.stride.set(1);
  set_text(world.name, "MPI_COMM_WORLD");
  world.kind.set(static_cast<std::uint32_t>(CommunicatorKind::intra));
  std::uint64_t magic = 0;
  std::memcpy(&magic, record_magic, sizeof magic);
  header.magic.store(magic, std::memory_order_release);
}

/// Begins a call, in the order of stores that the layout asks for. The caller changes the fields of the result.
inline CallRecord& begin_call(RecordFile& file, unsigned slot, const std::string& function,
                              std::uint32_t communicator = 0) {
  ThreadRecord& thread = file.threads[slot];
  const std::uint64_t number = thread.calls.get();
  CallRecord& call = file.call(slot, number);
  call.sequence.set(2 * number + 1);
  std::atomic_thread_fence(std::memory_order_release);
  call.entered.set(ticks());
  call.left.set(0);
  call.function.set(function_number(function));
  call.operation.set(0);
  call.communicator.set(communicator);
  call.peer.set(no_rank);
  call.tag.set(no_tag);
  call.second_peer.set(no_rank);
  call.second_tag.set(no_tag);
  call.bytes.set(0);
  call.ordinal.set(0);
  call.site.set(no_index);
  call.sequence.atomic().store(2 * number + 2, std::memory_order_release);
  thread.calls.atomic().store(number + 1, std::memory_order_release);
  return call;
}

/// Begins the next collective call of a communicator.
inline CallRecord& begin_collective(RecordFile& file, const std::string& function, std::uint32_t communicator = 0) {
  CallRecord& call = begin_call(file, 0, function, communicator);
  file.communicators[communicator].collectives.add(1);
  call.ordinal.set(static_cast<std::uint32_t>(file.communicators[communicator].collectives.get()));
  return call;
}

inline void end_call(RecordFile& file, unsigned slot) {
  ThreadRecord& thread = file.threads[slot];
  const std::uint64_t now = ticks();
  file.call(slot, thread.calls.get() - 1).left.set(now);
  thread.last_left.set(now);
}

/// Memory of the size of a record file, all bytes zero, in place of a file.
struct SampleRecord {
  SampleRecord() : file(std::make_unique<RecordFile>()) {}
  RecordFile* operator->() const { return file.get(); }
  RecordFile& operator*() const { return *file; }
  /// The bytes of the file.
  std::string bytes() const {
    std::string result(record_file_bytes, '\0');
    std::memcpy(result.data(), static_cast<const void*>(file.get()), sizeof(RecordFile));
    return result;
  }
  std::unique_ptr<RecordFile> file;
};

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace bestride::inline telemetry
