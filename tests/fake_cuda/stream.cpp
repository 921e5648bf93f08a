// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_cuda/stream.hpp"

#include <algorithm>
#include <chrono>
#include <set>

namespace fake {
namespace {

std::set<const void*>& all_streams() {
  static auto* const all = new std::set<const void*>;
  return *all;
}

void run(Stream* stream) {
  for (;;) {
    Stream::Item item;
    {
      std::unique_lock lock(stream->mutex);
      stream->changed.wait(lock, [&] { return stream->ended || (!stream->queue.empty() && !state().hold); });
      if (stream->ended) {
        stream->done = stream->given;
        stream->changed.notify_all();
        return;
      }
      item = std::move(stream->queue.front());
      stream->queue.pop_front();
    }
    for (const Mark& mark : item.after) wait_for(mark);
    if (const int delay = state().delay_us; delay > 0 && item.work)
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
    Context* context = stream->context;
    if (item.work && context->alive && context->spoilt == code::success) {
      const Code failed = item.work();
      if (failed != code::success) context->spoilt = failed;
    }
    const std::lock_guard lock(stream->mutex);
    ++stream->done;
    stream->changed.notify_all();
  }
}

}  // namespace

Stream* make_stream(Context* context, StreamKind kind) {
  auto* stream = kept(new Stream);
  stream->context = context;
  stream->kind = kind;
  {
    const std::lock_guard lock(state().mutex);
    context->streams.push_back(stream);
    all_streams().insert(stream);
  }
  std::thread(run, stream).detach();
  return stream;
}

void end_stream(Stream* stream) {
  {
    const std::lock_guard lock(state().mutex);
    std::erase(stream->context->streams, stream);
    all_streams().erase(stream);
  }
  std::unique_lock lock(stream->mutex);
  stream->ended = true;
  stream->queue.clear();
  stream->changed.notify_all();
  stream->changed.wait(lock, [&] { return stream->done == stream->given; });
}

void retire_stream(Stream* stream) {
  submit(stream, [stream] {
    const std::lock_guard lock(stream->mutex);
    stream->ended = true;
    return code::success;
  });
  const std::lock_guard lock(state().mutex);
  std::erase(stream->context->streams, stream);
  all_streams().erase(stream);
}

Mark submit(Stream* stream, Work work, std::vector<Mark> after) {
  {
    const std::lock_guard lock(state().mutex);
    Context* context = stream->context;
    if (stream->kind == StreamKind::legacy) {
      for (Stream* other : context->streams)
        if (other->kind == StreamKind::blocking) after.push_back(last_of(other));
    } else if (stream->kind == StreamKind::blocking) {
      after.push_back(last_of(context->legacy));
    }
  }
  const std::lock_guard lock(stream->mutex);
  if (stream->ended) return {stream, stream->given};
  stream->queue.push_back({std::move(after), std::move(work)});
  ++stream->given;
  stream->changed.notify_all();
  return {stream, stream->given};
}

bool passed(const Mark& mark) {
  if (!mark.stream) return true;
  const std::lock_guard lock(mark.stream->mutex);
  return mark.stream->done >= mark.ticket;
}

void wait_for(const Mark& mark) {
  if (!mark.stream) return;
  std::unique_lock lock(mark.stream->mutex);
  mark.stream->changed.wait(lock, [&] { return mark.stream->done >= mark.ticket; });
}

Mark last_of(Stream* stream) {
  const std::lock_guard lock(stream->mutex);
  return {stream, stream->given};
}

Code synchronise(Context* context) {
  std::vector<Stream*> streams;
  {
    const std::lock_guard lock(state().mutex);
    streams = context->streams;
  }
  for (Stream* stream : streams) wait_for(last_of(stream));
  return context->spoilt;
}

void wake_streams() {
  const std::lock_guard lock(state().mutex);
  for (const void* handle : all_streams()) {
    auto* stream = static_cast<Stream*>(const_cast<void*>(handle));
    const std::lock_guard inner(stream->mutex);
    stream->changed.notify_all();
  }
}

Stream* stream_of(const void* handle, Context* current) {
  const std::uintptr_t value = reinterpret_cast<std::uintptr_t>(handle);
  if (value <= 2) return current->legacy;  // null, legacy, per-thread
  const std::lock_guard lock(state().mutex);
  return all_streams().count(handle) ? static_cast<Stream*>(const_cast<void*>(handle)) : nullptr;
}

}  // namespace fake
