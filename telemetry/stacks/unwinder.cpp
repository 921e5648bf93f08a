// SPDX-License-Identifier: Apache-2.0
#include "telemetry/stacks/unwinder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>

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

}  // namespace

struct Unwinder::Callbacks {
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
  static constexpr Dwfl_Thread_Callbacks of_threads = {next_thread,   get_thread, read_word,
                                                       set_registers, nullptr,    nullptr};
};

Unwinder::Unwinder(int pid, std::size_t most_frames)
    : pid_(pid), most_frames_(most_frames), session_(dwfl_begin(&callbacks), &dwfl_end) {}

Unwinder::~Unwinder() {
  session_.reset();
  if (memory_ >= 0) close(memory_);
}

std::string Unwinder::open_process() {
  alive_ = true;
  return session_ ? attach(dwfl_linux_proc_report(session_.get(), pid_)) : dwfl_errmsg(-1);
}

std::string Unwinder::open_map(std::FILE* map) {
  return session_ ? attach(dwfl_linux_proc_maps_report(session_.get(), map)) : dwfl_errmsg(-1);
}

std::string Unwinder::attach(int reported) {
  if (reported != 0) return reported > 0 ? std::strerror(reported) : dwfl_errmsg(-1);
  if (dwfl_report_end(session_.get(), nullptr, nullptr) != 0) return dwfl_errmsg(-1);
  if (alive_)
    dwfl_getmodules(
        session_.get(),
        [](Dwfl_Module*, void** user_data, const char*, Dwarf_Addr, void* pid) {
          *user_data = pid;
          return int{DWARF_CB_OK};
        },
        &pid_, 0);
  return dwfl_attach_state(session_.get(), nullptr, pid_, &Callbacks::of_threads, this) ? "" : dwfl_errmsg(-1);
}

void Unwinder::unwind(const ThreadCopy& copy, ThreadStack& stack) {
  copy_ = &copy;
  stack_ = &stack;
  end_missing_ = false;
  const int ended = dwfl_getthread_frames(
      session_.get(), copy.tid,
      [](Dwfl_Frame* state, void* self) { return static_cast<Unwinder*>(self)->add_frame(state); }, this);
  const char* const why = ended < 0 ? dwfl_errmsg(-1) : nullptr;
  if (ended > 0)
    stack.cut = "more than " + std::to_string(most_frames_) + " frames";
  else if (end_missing_)
    stack.cut = "the stack is longer than the " + std::to_string(copy.stack.size() >> 10) + " KiB that were copied";
  else if (ended < 0)
    stack.cut = std::string("can't be unwound further: ") + (why ? why : "unknown error");
  if (stack.frames.empty()) stack.problem = std::exchange(stack.cut, "");
  if (stack.frames.empty() && stack.problem.empty()) stack.problem = "can't be unwound";
}

/// The stack is read from the copy only: in memory it has changed since. Other memory (the stack below an alternate
/// signal stack) is read from the process.
bool Unwinder::read(std::uint64_t address, Dwarf_Word& word) {
  const ThreadCopy& copy = *copy_;
  if (address >= copy.stack_begin && address - copy.stack_begin + sizeof word <= copy.stack.size()) {
    std::memcpy(&word, copy.stack.data() + (address - copy.stack_begin), sizeof word);
    return true;
  }
  if (copy.mapping.contains(address)) {
    if (address >= copy.stack_begin) end_missing_ = true;
    return false;
  }
  if (!alive_) return false;
  if (memory_ < 0) memory_ = open(("/proc/" + std::to_string(pid_) + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
  return memory_ >= 0 &&
         pread(memory_, &word, sizeof word, static_cast<off_t>(address)) == static_cast<ssize_t>(sizeof word);
}

int Unwinder::add_frame(Dwfl_Frame* state) {
  if (stack_->frames.size() >= most_frames_) return DWARF_CB_ABORT;
  Dwarf_Addr address = 0;
  bool exact = false;
  if (!dwfl_frame_pc(state, &address, &exact)) return DWARF_CB_OK;
  // A return address may be the first one after the function, or of the next line.
  if (!exact) --address;
  Dwfl_Module* const module = dwfl_addrmodule(session_.get(), address);
  GElf_Addr bias = 0;
  // Addresses between two modules are given to one of them.
  Dwarf_Addr begin = 0, end = 0;
  if (module) dwfl_module_info(module, nullptr, &begin, &end, nullptr, nullptr, nullptr, nullptr);
  if (!module || address < begin || address >= end || !dwfl_module_getelf(module, &bias)) {
    stack_->frames.push_back({address, no_index});
    return DWARF_CB_OK;
  }
  stack_->frames.push_back({address - bias, index_of(module, bias)});
  return DWARF_CB_OK;
}

std::uint32_t Unwinder::index_of(Dwfl_Module* module, GElf_Addr bias) {
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

}  // namespace bestride::inline telemetry
