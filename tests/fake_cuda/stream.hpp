// SPDX-License-Identifier: Apache-2.0
#pragma once
// Streams of the stand-in driver: one queue and one thread each. Work runs in order and waits where the driver's rules
// require it.
#include <condition_variable>
#include <deque>
#include <functional>
#include <thread>

#include "tests/fake_cuda/state.hpp"

namespace fake {

enum class StreamKind : std::uint8_t { blocking, non_blocking, legacy };

/// A position in a stream. All work before it is done when `done` of the stream reaches it.
struct Mark {
  Stream* stream = nullptr;
  std::uint64_t ticket = 0;
};

using Work = std::function<Code()>;

struct Stream {
  Context* context = nullptr;
  StreamKind kind = StreamKind::blocking;
  std::mutex mutex;
  std::condition_variable changed;
  struct Item {
    std::vector<Mark> after;
    Work work;
  };
  std::deque<Item> queue;
  std::uint64_t given = 0;
  std::uint64_t done = 0;
  bool ended = false;
  bool capturing = false;
  std::vector<Work> captured;
};

struct Event {
  Context* context = nullptr;
  std::mutex mutex;
  Mark mark;
  bool destroyed = false;
};

Stream* make_stream(Context* context, StreamKind kind);
/// Drops work that has not started and waits for the rest, when a context is destroyed.
void end_stream(Stream* stream);
/// Makes the handle invalid. Submitted work still runs.
void retire_stream(Stream* stream);
/// Appends work to a stream. Blocking streams and the legacy stream also wait for each other.
Mark submit(Stream* stream, Work work, std::vector<Mark> after = {});
bool passed(const Mark& mark);
void wait_for(const Mark& mark);
Mark last_of(Stream* stream);
/// Waits for all streams of a context. Returns the error of the context.
Code synchronise(Context* context);
void wake_streams();

/// The stream of a handle in the current context: the legacy stream for null and 1. Null if it is unknown or ended.
Stream* stream_of(const void* handle, Context* current);

}  // namespace fake
