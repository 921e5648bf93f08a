// SPDX-License-Identifier: Apache-2.0
#pragma once
// Unwinds copied stacks with libdwfl: those of a live process, or the one that a crashed process has left.
#include <elfutils/libdwfl.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "telemetry/stacks/process_stacks.hpp"
#include "telemetry/stacks/thread_copies.hpp"

namespace bestride::inline telemetry {

/// Not thread-safe.
class Unwinder {
 public:
  Unwinder(int pid, std::size_t most_frames);
  ~Unwinder();
  Unwinder(const Unwinder&) = delete;
  Unwinder& operator=(const Unwinder&) = delete;

  /// Prepares for the stacks of a live process. Returns "", or why it can't be read. Called once.
  std::string open_process();
  /// Prepares for the stacks of a process that has ended. `map`: what /proc/PID/maps contained. Returns "", or why
  /// nothing can be read. Called once, in place of open_process(). Files that have been replaced since may give wrong
  /// frames; their build ids are those of the new ones.
  std::string open_map(std::FILE* map);

  /// Unwinds one stack: fills `frames`, `cut` and `problem` of `stack`.
  void unwind(const ThreadCopy& copy, ThreadStack& stack);
  /// The modules of all frames. Called last.
  std::vector<ModuleSnapshot> take_modules() { return std::move(modules_); }

 private:
  struct Callbacks;
  std::string attach(int reported);
  bool read(std::uint64_t address, Dwarf_Word& word);
  int add_frame(Dwfl_Frame* state);
  std::uint32_t index_of(Dwfl_Module* module, GElf_Addr bias);

  int pid_;
  std::size_t most_frames_;
  std::unique_ptr<Dwfl, decltype(&dwfl_end)> session_;
  bool alive_ = false;
  const ThreadCopy* copy_ = nullptr;
  ThreadStack* stack_ = nullptr;
  bool end_missing_ = false;
  int memory_ = -1;
  std::map<Dwfl_Module*, std::uint32_t> index_;
  std::vector<ModuleSnapshot> modules_;
};

}  // namespace bestride::inline telemetry
