// SPDX-License-Identifier: Apache-2.0
#pragma once
// MessageLog: the last large messages of a rank, with their times, in the record file.
//
// The delay of a message after the later of its two posts needs the times of both ranks, so both have to remember the
// same messages. They choose by a hash of the message's number among those of the pair, which both count. A rank whose
// ring would hold less than 4 s halves its share; the shares are nested, so the messages chosen by the rank with the
// smaller share are also chosen by the other rank. Messages of equal number to several peers, as in a halo exchange,
// are chosen together. Alternative considered: sums per peer, which a late sender or receiver dominates.
#include <atomic>
#include <cstdint>

#include "base/float_environment.hpp"
#include "telemetry/record/layout.hpp"

namespace bestride::inline telemetry {

/// How a message ended.
struct MessageEnd {
  std::uint64_t waited = 0;     ///< ticks when the call that completed it began; 0: it was polled
  std::uint64_t completed = 0;  ///< ticks when it returned; 0: not read yet
  std::uint32_t together = 1;   ///< as MessageRecord
};

/// What is known of it before.
struct PostedMessage {
  std::uint16_t peer = 0;  ///< as MessageRecord
  std::int32_t tag = 0;
  std::uint32_t number = 0;  ///< from 1
  std::uint64_t bytes = 0;
  std::uint64_t posted = 0;  ///< ticks
};

/// All functions: any thread.
class MessageLog {
 public:
  explicit MessageLog(RecordFile& file) noexcept : file_(file) {}

  /// The message with this number (from 1) is to be remembered.
  bool chooses(std::uint32_t number) const noexcept { return hash(number) <= share_.load(std::memory_order_relaxed); }

  /// A thread that is suspended here while others write max_messages messages may leave a mixture of two.
  void add(const PostedMessage& message, const MessageEnd& end) noexcept {
    const std::uint64_t n = file_.header.messages.atomic().fetch_add(1, std::memory_order_relaxed);
    MessageRecord& record = file_.messages[n % max_messages];
    record.sequence.set(static_cast<std::uint16_t>(message_sequence(n) - 1));
    std::atomic_thread_fence(std::memory_order_release);
    const std::uint64_t posted = message.posted >> message_tick_shift;
    record.posted.set(posted);
    record.waited.set(after(posted, end.waited != 0 ? end.waited : end.completed));
    record.completed.set(after(posted, end.completed));
    record.bytes.set(cut(message.bytes));
    record.number.set(message.number);
    record.peer.set(message.peer);
    record.together.set(static_cast<std::uint16_t>(end.together < 0xffff ? end.together : 0xffff));
    record.tag.set(folded_tag(message.tag));
    record.sequence.atomic().store(message_sequence(n), std::memory_order_release);
    if (n % max_messages == 0) adapt(end.completed);
  }

  static constexpr std::uint32_t hash(std::uint32_t number) noexcept { return number * 0x9E3779B1u; }

 private:
  static constexpr double least_seconds = 4, most_seconds = 16;  ///< that the ring holds
  static constexpr std::uint32_t least_share = 0xffffffff >> 20;

  static std::uint32_t cut(std::uint64_t value) noexcept {
    return static_cast<std::uint32_t>(value < 0xffffffff ? value : 0xffffffff);
  }
  static std::uint32_t after(std::uint64_t posted, std::uint64_t ticks) noexcept {
    const std::uint64_t then = ticks >> message_tick_shift;
    return then > posted ? cut(then - posted) : 0;
  }
  /// Called each time the ring is full.
  void adapt(std::uint64_t now) noexcept {
    const std::uint64_t before = filled_.exchange(now, std::memory_order_relaxed);
    if (before == 0 || now <= before) return;
    const FloatEnvironment floats;
    const double seconds = static_cast<double>(now - before) / file_.header.ticks_per_second.get();
    const std::uint32_t share = share_.load(std::memory_order_relaxed);
    if (seconds < least_seconds && share > least_share)
      share_.store(share >> 1, std::memory_order_relaxed);
    else if (seconds > most_seconds && share < 0xffffffff)
      share_.store(share << 1 | 1, std::memory_order_relaxed);
  }

  RecordFile& file_;
  std::atomic<std::uint32_t> share_{0xffffffff};
  std::atomic<std::uint64_t> filled_{0};  ///< ticks when the ring was last full
};

}  // namespace bestride::inline telemetry
