// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a process that crashes leaves beside its record, so that its stack can be unwound after it has ended: registers
// and stack of the thread, and the map of its memory. The layout is CrashHeader, the stack, /proc/thread-self/maps, and
// the text of the frames of an interpreter.
//
// Alternatives considered: core files, which users have to allow, which may be larger than the disk, and which batch
// systems put elsewhere; a tracer, which slows down every process; unwinding in the handler, whose allocations and
// locks are not safe there.
#include <signal.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>

#include "telemetry/record/registers.hpp"

namespace bestride::inline telemetry {

struct CrashHeader {
  std::uint64_t magic;  ///< crash_magic, written last: the file is whole
  std::int32_t pid, tid;
  std::uint64_t stack_begin;  ///< address of the first byte of the stack that is in the file
  std::uint64_t stack_bytes;
  std::uint64_t map_bytes;
  ThreadRegisters registers;
};
#if defined(__aarch64__)
inline constexpr std::uint64_t crash_magic = 0x31'34'36'41'48'53'52'43;  // "CRSHA641"
#else
inline constexpr std::uint64_t crash_magic = 0x31'36'38'58'48'53'52'43;  // "CRSHX861"
#endif
/// Copied of the stack, from the innermost frame on.
inline constexpr std::size_t crash_stack_bytes = 256 << 10;
inline constexpr std::size_t most_crash_map_bytes = 4 << 20;
inline constexpr std::size_t most_crash_text_bytes = 128 << 10;  ///< more is not read

/// Writes the file `path`, which must not exist; for a signal handler. When the file is whole, `write_text` may append
/// the text to it. False if it can't be written; what is there then is no whole file.
bool write_crash_file(const char* path, const ucontext_t& context, void (*write_text)(int file) = nullptr) noexcept;

}  // namespace bestride::inline telemetry
