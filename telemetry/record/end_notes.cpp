// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/end_notes.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "telemetry/record/recorder.hpp"

namespace bestride::inline telemetry {
namespace {

constexpr std::uint64_t claimed = ~std::uint64_t{0};

/// Null also in a child of the process.
RecordFile* own_record() noexcept {
  RecordFile* const file = Recorder::get().file();
  return file && file->header.pid == getpid() ? file : nullptr;
}

std::uint32_t own_slot() noexcept { return thread_recorder->record ? thread_recorder->slot : no_index; }

}  // namespace

void note_end(EndKind kind, int code, std::string_view text) noexcept {
  RecordFile* const file = own_record();
  if (!file) return;
  EndNote& note = file->ends[static_cast<unsigned>(kind)];
  std::uint64_t none = 0;
  // A note that its thread has left behind, by longjmp() for example, is written again.
  if (!note.calls.atomic().compare_exchange_strong(none, claimed) &&
      (none == claimed || note.thread.get() != own_slot()))
    return;
  note.calls.set(claimed);
  note.at.set(ticks());
  note.thread.set(own_slot());
  note.code.set(code);
  const std::size_t length = std::min(text.size(), sizeof note.text - 1);
  std::memcpy(note.text, text.data(), length);
  note.text[length] = '\0';
  note.calls.atomic().store(1 + thread_recorder->calls, std::memory_order_release);
}

void withdraw_end(EndKind kind) noexcept {
  RecordFile* const file = own_record();
  if (!file) return;
  EndNote& note = file->ends[static_cast<unsigned>(kind)];
  if (note.calls.get() != 0 && note.thread.get() == own_slot()) note.calls.set(0);
}

}  // namespace bestride::inline telemetry
