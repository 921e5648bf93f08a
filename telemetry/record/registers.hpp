// SPDX-License-Identifier: Apache-2.0
#pragma once
// The registers of a thread in the numbering of DWARF: x86-64 psABI, figure 3.36; DWARF for the Arm 64-bit
// architecture, section 4.1.
#include <sys/user.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>

namespace bestride::inline telemetry {

using ThreadRegisters = user_regs_struct;  ///< what PTRACE_GETREGSET gives for NT_PRSTATUS

#if defined(__x86_64__)

constexpr std::size_t dwarf_registers = 17;  ///< the last one is the program counter
constexpr std::uint64_t red_zone = 128;      ///< bytes below the stack pointer that a leaf function may use

inline std::uint64_t stack_pointer(const ThreadRegisters& from) noexcept { return from.rsp; }
inline std::uint64_t program_counter(const ThreadRegisters& from) noexcept { return from.rip; }
/// Moves the registers from the first instruction of a function back to the call. `on_stack`: what the stack pointer
/// points to.
inline void leave_function(ThreadRegisters& registers, std::uint64_t on_stack) noexcept {
  registers.rip = on_stack - 1;
  registers.rsp += sizeof on_stack;
}
template <class Word>
void to_dwarf(const ThreadRegisters& from, Word (&to)[dwarf_registers]) noexcept {
  const Word numbered[dwarf_registers] = {from.rax, from.rdx, from.rcx, from.rbx, from.rsi, from.rdi,
                                          from.rbp, from.rsp, from.r8,  from.r9,  from.r10, from.r11,
                                          from.r12, from.r13, from.r14, from.r15, from.rip};
  for (std::size_t i = 0; i < dwarf_registers; ++i) to[i] = numbered[i];
}

/// The registers of the context that a signal handler gets. `fs_base` and what is not in DWARF's numbering stay 0.
inline ThreadRegisters registers_of(const ucontext_t& context) noexcept {
  const greg_t* const from = context.uc_mcontext.gregs;
  const auto word = [from](int index) { return static_cast<unsigned long long>(from[index]); };
  ThreadRegisters to{};
  to.rax = word(REG_RAX), to.rdx = word(REG_RDX), to.rcx = word(REG_RCX), to.rbx = word(REG_RBX);
  to.rsi = word(REG_RSI), to.rdi = word(REG_RDI), to.rbp = word(REG_RBP), to.rsp = word(REG_RSP);
  to.r8 = word(REG_R8), to.r9 = word(REG_R9), to.r10 = word(REG_R10), to.r11 = word(REG_R11);
  to.r12 = word(REG_R12), to.r13 = word(REG_R13), to.r14 = word(REG_R14), to.r15 = word(REG_R15);
  to.rip = word(REG_RIP);
  return to;
}

#elif defined(__aarch64__)

constexpr std::size_t dwarf_registers = 32;  ///< x0 to x30 and sp
constexpr std::uint64_t red_zone = 0;

inline std::uint64_t stack_pointer(const ThreadRegisters& from) noexcept { return from.sp; }
inline std::uint64_t program_counter(const ThreadRegisters& from) noexcept { return from.pc; }
inline void leave_function(ThreadRegisters& registers, std::uint64_t) noexcept {
  registers.pc = registers.regs[30] - 1;
}
template <class Word>
void to_dwarf(const ThreadRegisters& from, Word (&to)[dwarf_registers]) noexcept {
  for (std::size_t i = 0; i < 31; ++i) to[i] = from.regs[i];
  to[31] = from.sp;
}
inline ThreadRegisters registers_of(const ucontext_t& context) noexcept {
  ThreadRegisters to{};
  for (std::size_t i = 0; i < 31; ++i) to.regs[i] = context.uc_mcontext.regs[i];
  to.sp = context.uc_mcontext.sp;
  to.pc = context.uc_mcontext.pc;
  return to;
}

#else
#error "registers of this processor are not described"
#endif

}  // namespace bestride::inline telemetry
