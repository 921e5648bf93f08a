// SPDX-License-Identifier: Apache-2.0
// take_stacks(): unwinds the copied stacks with libdwfl.
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "telemetry/stacks/process_stacks.hpp"
#include "telemetry/stacks/thread_copies.hpp"

namespace bestride::inline telemetry {
namespace {

/// Opens the file of a module as the process sees it, which may be in another mount namespace. `user_data`: its pid.
int find_elf(Dwfl_Module* module, void** user_data, const char* name, Dwarf_Addr base, char** file_name, Elf** elf) {
  struct stat status {};
  if (name[0] == '/' && *user_data) {
    const std::string path = "/proc/" + std::to_string(*static_cast<const int*>(*user_data)) + "/root" + name;
    // O_NONBLOCK: a mapping may be of a device.
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
      *file_name = strdup(name);
      return file;
    }
    if (file >= 0) {
      close(file);
      return -1;
    }
  }
  return dwfl_linux_proc_find_elf(module, user_data, name, base, file_name, elf);  // the vDSO, deleted files
}

/// Separate debug files are not needed for unwinding.
int find_no_debug_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) {
  return -1;
}

const Dwfl_Callbacks callbacks = {find_elf, find_no_debug_file, nullptr, nullptr};

class Unwinder {
 public:
  Unwinder(int pid, const StackOptions& options)
      : pid_(pid), options_(options), session_(dwfl_begin(&callbacks), &dwfl_end) {}
  ~Unwinder() {
    session_.reset();
    if (memory_ >= 0) close(memory_);
  }
  Unwinder(const Unwinder&) = delete;
  Unwinder& operator=(const Unwinder&) = delete;

  /// "" or why the process can't be read.
  std::string open_modules() {
    if (!session_) return dwfl_errmsg(-1);
    if (const int error = dwfl_linux_proc_report(session_.get(), pid_); error != 0)
      return error > 0 ? std::strerror(error) : dwfl_errmsg(-1);
    if (dwfl_report_end(session_.get(), nullptr, nullptr) != 0) return dwfl_errmsg(-1);
    dwfl_getmodules(
        session_.get(),
        [](Dwfl_Module*, void** user_data, const char*, Dwarf_Addr, void* pid) {
          *user_data = pid;
          return int{DWARF_CB_OK};
        },
        &pid_, 0);
    return dwfl_attach_state(session_.get(), nullptr, pid_, &thread_callbacks, this) ? "" : dwfl_errmsg(-1);
  }

  /// Fills `frames`, `cut` and `problem`.
  void unwind(const ThreadCopy& copy, ThreadStack& stack) {
    copy_ = &copy;
    stack_ = &stack;
    end_missing_ = false;
    const int ended = dwfl_getthread_frames(
        session_.get(), copy.tid,
        [](Dwfl_Frame* state, void* self) { return static_cast<Unwinder*>(self)->add_frame(state); }, this);
    const char* const why = ended < 0 ? dwfl_errmsg(-1) : nullptr;
    if (ended > 0)
      stack.cut = "more than " + std::to_string(options_.most_frames) + " frames";
    else if (end_missing_)
      stack.cut = "the stack is longer than the " + std::to_string(copy.stack.size() >> 10) + " KiB that were copied";
    else if (ended < 0)
      stack.cut = std::string("can't be unwound further: ") + (why ? why : "unknown error");
    if (stack.frames.empty()) stack.problem = std::exchange(stack.cut, "");
    if (stack.frames.empty() && stack.problem.empty()) stack.problem = "can't be unwound";
  }

  std::vector<ModuleSnapshot> take_modules() { return std::move(modules_); }

 private:
  static Unwinder& of(void* argument) { return *static_cast<Unwinder*>(argument); }

  static pid_t next_thread(Dwfl*, void* self, void** thread) {
    if (*thread) return 0;
    *thread = self;
    return of(self).copy_->tid;
  }
  static bool get_thread(Dwfl*, pid_t tid, void* self, void** thread) {
    *thread = self;
    return tid == of(self).copy_->tid;
  }
  static bool set_registers(Dwfl_Thread* thread, void* self) {
    const ThreadRegisters& registers = of(self).copy_->registers;
    Dwarf_Word numbered[dwarf_registers];
    to_dwarf(registers, numbered);
    dwfl_thread_state_register_pc(thread, program_counter(registers));
    return dwfl_thread_state_registers(thread, 0, dwarf_registers, numbered);
  }
  static bool read_word(Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* self) {
    return of(self).read(address, *word);
  }
  static constexpr Dwfl_Thread_Callbacks thread_callbacks = {next_thread,   get_thread, read_word,
                                                             set_registers, nullptr,    nullptr};

  /// The stack is read from the copy only: in memory it has changed since. Other memory (the stack below an alternate
  /// signal stack) is read from the process.
  bool read(std::uint64_t address, Dwarf_Word& word) {
    const ThreadCopy& copy = *copy_;
    if (address >= copy.stack_begin && address - copy.stack_begin + sizeof word <= copy.stack.size()) {
      std::memcpy(&word, copy.stack.data() + (address - copy.stack_begin), sizeof word);
      return true;
    }
    if (copy.mapping.contains(address)) {
      if (address >= copy.stack_begin) end_missing_ = true;
      return false;
    }
    if (memory_ < 0) memory_ = open(("/proc/" + std::to_string(pid_) + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
    return memory_ >= 0 &&
           pread(memory_, &word, sizeof word, static_cast<off_t>(address)) == static_cast<ssize_t>(sizeof word);
  }

  int add_frame(Dwfl_Frame* state) {
    if (stack_->frames.size() >= options_.most_frames) return DWARF_CB_ABORT;
    Dwarf_Addr address = 0;
    bool exact = false;
    if (!dwfl_frame_pc(state, &address, &exact)) return DWARF_CB_OK;
    // A return address may be the first one after the function, or of the next line.
    if (!exact) --address;
    Dwfl_Module* const module = dwfl_addrmodule(session_.get(), address);
    GElf_Addr bias = 0;
    if (!module || !dwfl_module_getelf(module, &bias)) {
      stack_->frames.push_back({address, no_index});
      return DWARF_CB_OK;
    }
    stack_->frames.push_back({address - bias, index_of(module, bias)});
    return DWARF_CB_OK;
  }

  std::uint32_t index_of(Dwfl_Module* module, GElf_Addr bias) {
    const auto [known, is_new] = index_.try_emplace(module, static_cast<std::uint32_t>(modules_.size()));
    if (!is_new) return known->second;
    ModuleSnapshot& entry = modules_.emplace_back();
    entry.load_address = bias;
    const char* const name = dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
    if (name) entry.path = std::strncmp(name, "[vdso: ", 7) == 0 ? "[vdso]" : name;
    const unsigned char* bits = nullptr;
    GElf_Addr where = 0;
    if (const int length = dwfl_module_build_id(module, &bits, &where); length > 0)
      entry.build_id.assign(bits, bits + length);
    return known->second;
  }

  int pid_;
  const StackOptions& options_;
  std::unique_ptr<Dwfl, decltype(&dwfl_end)> session_;
  const ThreadCopy* copy_ = nullptr;
  ThreadStack* stack_ = nullptr;
  bool end_missing_ = false;
  int memory_ = -1;
  std::map<Dwfl_Module*, std::uint32_t> index_;
  std::vector<ModuleSnapshot> modules_;
};

std::string thread_name(int pid, int tid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/comm";
  char text[64];
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t length = file >= 0 ? read(file, text, sizeof text) : 0;
  if (file >= 0) close(file);
  return length > 1 ? std::string(text, static_cast<std::size_t>(length) - 1) : "";
}

std::string executable_of(int pid) {
  char path[4096];
  const ssize_t length = readlink(("/proc/" + std::to_string(pid) + "/exe").c_str(), path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "";
}

}  // namespace

bool stacks_available() noexcept { return true; }

Result<ProcessStacks> take_stacks(int pid, const StackOptions& options) {
  const Result<ProcessCopy> copies = copy_threads(pid, options);
  if (!copies) return copies.error();
  ProcessStacks result;
  result.pid = pid;
  result.executable = executable_of(pid);
  result.longest_stop = copies->longest_stop;
  result.all_stops = copies->all_stops;
  Unwinder unwinder(pid, options);
  if (const std::string why = unwinder.open_modules(); !why.empty())
    return Error{"the libraries of process " + std::to_string(pid) + " can't be read, it may have ended: " + why};
  for (const ThreadCopy& copy : copies->threads) {
    ThreadStack& stack = result.threads.emplace_back();
    stack.tid = copy.tid;
    stack.main = copy.tid == pid;
    stack.name = thread_name(pid, copy.tid);
    stack.problem = copy.problem;
    if (stack.problem.empty()) unwinder.unwind(copy, stack);
  }
  result.modules = unwinder.take_modules();
  return result;
}

}  // namespace bestride::inline telemetry
