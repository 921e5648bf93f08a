// SPDX-License-Identifier: Apache-2.0
#pragma once
// PollNotes: writes what a polling thread asks for into its record and into those of the requests.
//
// A program may poll several things in turn, so all polling calls since the last other call are noted, not only the
// last one. The mark of a request has the number of that call, so a mark of an earlier time needs no removal.
// Alternative considered: a list of handles, as for calls that wait, which holds only the last polling call.
#include <cstdint>

#include "telemetry/record/recorder.hpp"

namespace bestride::inline telemetry {

/// Writes the notes of one polling call for which ThreadRecorder::count_poll() was true. Used by its thread only.
class PollNotes {
 public:
  /// `key`: that of count_poll().
  PollNotes(ThreadRecorder& thread, std::uint64_t key) noexcept
      : thread_(*thread.record), mark_(poll_mark(static_cast<std::uint32_t>(thread.calls), thread.slot)) {
    if (thread.polls_left != 0) {
      thread.polls_left = 0;
      thread_.noted.set(0);
      thread_.noted_since.set(thread_.polls.get());
      thread_.noted_at.set(static_cast<std::uint32_t>(thread.calls));
    } else {
      add(polled_several);
    }
    thread.noted_poll = key;
  }
  /// Notes a request; null: it is not known.
  void request(RequestRecord* request) noexcept {
    if (!request)
      others();
    else if (request->waiter.get() != mark_)
      request->waiter.set(mark_);
  }
  void probe(std::uint32_t function, std::uint32_t communicator, std::int32_t peer, std::int32_t tag) noexcept {
    const std::uint32_t noted = thread_.noted.get(), count = noted & polled_probes;
    for (std::uint32_t i = 0; i < count; ++i) {
      const ProbeRecord& known = thread_.probes[i];
      if (known.communicator.get() == communicator && known.peer.get() == peer && known.tag.get() == tag) return;
    }
    if (count == max_probes) return others();
    ProbeRecord& probe = thread_.probes[count];
    probe.function.set(function);
    probe.communicator.set(communicator);
    probe.peer.set(peer);
    probe.tag.set(tag);
    thread_.noted.set(noted + 1);
  }
  /// Notes that the call asks for something that can't be noted itself.
  void others() noexcept { add(polled_others); }

 private:
  void add(std::uint32_t flag) noexcept {
    if (const std::uint32_t noted = thread_.noted.get(); (noted & flag) == 0) thread_.noted.set(noted | flag);
  }

  ThreadRecord& thread_;
  const std::uint16_t mark_;
};

}  // namespace bestride::inline telemetry
