// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_cuda/state.hpp"

#include <cstdlib>
#include <set>
#include <sstream>
#include <string_view>

#include "tests/fake_cuda/control.h"
#include "tests/fake_cuda/memory.hpp"
#include "tests/fake_cuda/stream.hpp"

namespace fake {
namespace {

struct Named {
  Code code;
  const char* name;
};
constexpr Named names[] = {{0, "CUDA_SUCCESS"},
                           {1, "CUDA_ERROR_INVALID_VALUE"},
                           {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                           {3, "CUDA_ERROR_NOT_INITIALIZED"},
                           {4, "CUDA_ERROR_DEINITIALIZED"},
                           {100, "CUDA_ERROR_NO_DEVICE"},
                           {101, "CUDA_ERROR_INVALID_DEVICE"},
                           {200, "CUDA_ERROR_INVALID_IMAGE"},
                           {201, "CUDA_ERROR_INVALID_CONTEXT"},
                           {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
                           {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
                           {400, "CUDA_ERROR_INVALID_HANDLE"},
                           {500, "CUDA_ERROR_NOT_FOUND"},
                           {600, "CUDA_ERROR_NOT_READY"},
                           {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                           {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
                           {716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
                           {719, "CUDA_ERROR_LAUNCH_FAILED"},
                           {801, "CUDA_ERROR_NOT_SUPPORTED"},
                           {999, "CUDA_ERROR_UNKNOWN"}};

int number(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::atoi(text) : otherwise;
}

std::vector<Failure> parse(const std::string& specification) {
  std::vector<Failure> all;
  std::istringstream parts(specification);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t a = part.find(':'), b = part.find(':', a + 1);
    if (a == std::string::npos || b == std::string::npos) continue;
    all.push_back(
        {part.substr(0, a), std::atoi(part.c_str() + a + 1), part[b - 1] == '+', code_of(part.substr(b + 1))});
  }
  return all;
}

thread_local std::vector<Context*> stack;

std::set<const void*>& all_contexts() {
  static auto* const all = new std::set<const void*>;
  return *all;
}

Code forced(std::string_view entry) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  auto counted = s.calls.find(entry);
  if (counted == s.calls.end()) counted = s.calls.emplace(entry, 0).first;
  const int call = ++counted->second;
  for (const Failure& failure : s.failures)
    if (failure.entry == entry && (call == failure.from || (failure.on && call > failure.from))) return failure.code;
  return code::success;
}

}  // namespace

State& state() {
  static State* const all = [] {
    auto* s = new State;
    s->devices = number("FAKE_CUDA_DEVICES", 2);
    s->capability = number("FAKE_CUDA_CAPABILITY", 90);
    s->version = number("FAKE_CUDA_VERSION", 13000);
    s->delay_us = number("FAKE_CUDA_DELAY_US", 0);
    if (const char* missing = std::getenv("FAKE_CUDA_MISSING")) s->missing = missing;
    if (const char* failures = std::getenv("FAKE_CUDA_FAIL")) s->failures = parse(failures);
    s->primaries.resize(static_cast<std::size_t>(s->devices));
    return s;
  }();
  return *all;
}

Code code_of(const std::string& text) {
  for (const Named& one : names)
    if (text == one.name) return one.code;
  return std::atoi(text.c_str());
}

const char* name_of(Code code) {
  for (const Named& one : names)
    if (code == one.code) return one.name;
  return nullptr;
}

Code entered_anyhow(const char* entry) {
  State& s = state();
  if (const Code failed = forced(entry)) return failed;
  if (s.shut_down) return code::deinitialized;
  return s.initialized ? code::success : code::not_initialized;
}

Code entered(const char* entry) {
  if (const Code failed = entered_anyhow(entry)) return failed;
  Context* context = current_context();
  return context ? context->spoilt.load() : code::success;
}

Code running(const char* kind) { return forced(kind); }

Code entered_with_context(const char* entry, Context** current) {
  if (const Code failed = entered(entry)) return failed;
  *current = current_context();
  if (!*current) return code::invalid_context;
  return (*current)->alive ? code::success : code::context_is_destroyed;
}

Context* current_context() { return stack.empty() ? nullptr : stack.back(); }
void push_context(Context* context) { stack.push_back(context); }
Context* pop_context() {
  if (stack.empty()) return nullptr;
  Context* top = stack.back();
  stack.pop_back();
  return top;
}
void replace_context(Context* context) {
  if (!stack.empty()) stack.pop_back();
  if (context) stack.push_back(context);
}

Context* make_context(int device, bool primary) {
  State& s = state();
  auto* context = new Context;
  context->id = s.next_id++;
  context->device = device;
  context->primary = primary;
  const std::lock_guard lock(s.mutex);
  all_contexts().insert(context);
  context->legacy = make_stream(context, StreamKind::legacy);
  return context;
}

void destroy_context(Context* context) {
  if (!context->alive.exchange(false)) return;
  std::vector<Stream*> streams;
  {
    const std::lock_guard lock(state().mutex);
    streams = context->streams;
  }
  for (Stream* stream : streams) end_stream(stream);
  free_all_of(context);
}

void keep(const void* object) {
  static auto* const all = new std::vector<const void*>;
  const std::lock_guard lock(state().mutex);
  all->push_back(object);
}

Context* known_context(const void* handle) {
  const std::lock_guard lock(state().mutex);
  return all_contexts().count(handle) ? static_cast<Context*>(const_cast<void*>(handle)) : nullptr;
}

}  // namespace fake

extern "C" {
#pragma GCC visibility push(default)
void fake_cuda_fail(const char* specification) {
  fake::State& s = fake::state();
  const std::lock_guard lock(s.mutex);
  s.failures = fake::parse(specification);
  s.calls.clear();
}
int fake_cuda_calls(const char* entry) {
  fake::State& s = fake::state();
  const std::lock_guard lock(s.mutex);
  return s.calls[entry];
}
void fake_cuda_delay(int microseconds) { fake::state().delay_us = microseconds; }
void fake_cuda_hold(int on) {
  fake::state().hold = on != 0;
  fake::wake_streams();
}
void fake_cuda_shut_down(int on) { fake::state().shut_down = on != 0; }
int fake_cuda_live(void) { return fake::state().live; }
void fake_cuda_pretend(int version, const char* missing) {
  fake::State& s = fake::state();
  const std::lock_guard lock(s.mutex);
  s.version = version;
  s.missing = missing;
}
void fake_cuda_capability(int capability) { fake::state().capability = capability; }
#pragma GCC visibility pop
}
