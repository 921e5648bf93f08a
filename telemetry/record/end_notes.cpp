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

void write_end_text(EndNote& note, EndKind kind, std::string_view text) noexcept {
  constexpr std::size_t room = sizeof note.text - 1, most_of_last = room / 2;
  while (text.ends_with('\n')) text.remove_suffix(1);
  const std::size_t last_at = text.rfind('\n') + 1;  // 0 if it is the only line
  if (kind != EndKind::mpi_error || text.size() <= room || last_at == 0) {
    const std::size_t length = std::min(text.size(), room);
    std::memcpy(note.text, text.data(), length);
    note.text[length] = '\0';
    return;
  }
  const std::string_view last = text.substr(last_at, most_of_last);
  std::string_view first = text.substr(0, std::min(room - last.size() - 1, last_at - 1));
  if (const std::size_t end = first.rfind('\n'); end != first.npos && first.size() < last_at - 1)
    first = first.substr(0, end);
  std::memcpy(note.text, first.data(), first.size());
  note.text[first.size()] = '\n';
  std::memcpy(note.text + first.size() + 1, last.data(), last.size());
  note.text[first.size() + 1 + last.size()] = '\0';
}

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
  write_end_text(note, kind, text);
  note.calls.atomic().store(1 + thread_recorder->calls, std::memory_order_release);
}

void withdraw_end(EndKind kind) noexcept {
  RecordFile* const file = own_record();
  if (!file) return;
  EndNote& note = file->ends[static_cast<unsigned>(kind)];
  if (note.calls.get() != 0 && note.thread.get() == own_slot()) note.calls.set(0);
}

}  // namespace bestride::inline telemetry
