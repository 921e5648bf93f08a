// SPDX-License-Identifier: Apache-2.0
#pragma once
// State of the stand-in driver: configuration, injected failures, contexts. Objects are never freed, not even at exit,
// so that the use of a destroyed handle is detected.
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/cuda/driver/driver_abi.hpp"

namespace fake {

using bestride::cuda::Address;
using bestride::cuda::Code;
namespace code = bestride::cuda::code;

struct Stream;

struct Context {
  std::uint64_t id = 0;
  int device = 0;
  bool primary = false;
  std::atomic<bool> alive{true};
  std::atomic<Code> spoilt{code::success};  ///< error of failed asynchronous work, which every later call returns
  std::vector<Stream*> streams;             ///< under State::mutex
  Stream* legacy = nullptr;
};

struct Failure {
  std::string entry;
  int from = 1;
  bool on = false;  ///< all calls after `from`, too
  Code code = code::unknown;
};

struct State {
  std::recursive_mutex mutex;
  int devices = 2;
  int capability = 90;
  int version = 13000;
  std::string missing;
  std::atomic<bool> initialised{false};
  std::atomic<bool> shut_down{false};
  std::atomic<int> delay_us{0};
  std::atomic<bool> hold{false};
  std::atomic<std::uint64_t> next_id{1};
  std::vector<Failure> failures;
  std::map<std::string, int> calls;
  struct Primary {
    Context* context = nullptr;
    int retained = 0;
  };
  std::vector<Primary> primaries;
  std::atomic<int> live{0};
};
State& state();

/// Counts the call. Returns an injected error, or an error of the driver's state or of the current context.
Code entered(const char* entry);
/// Like entered(), but without the error of the current context, for calls on contexts.
Code entered_anyhow(const char* entry);
/// Like entered(), for asynchronous work of a kind: "kernel", "copy".
Code running(const char* kind);
/// Like entered(), but also returns an error if no live context is current.
Code entered_with_context(const char* entry, Context** current);

Context* current_context();
void push_context(Context* context);
Context* pop_context();
void replace_context(Context* context);

Context* make_context(int device, bool primary);
void destroy_context(Context* context);
/// Keeps a reference to an object that is never freed, so that leak checkers do not report it.
void keep(const void* object);
template <class T>
T* kept(T* object) {
  keep(object);
  return object;
}
/// The context of a handle, destroyed or not; null if the handle was never valid.
Context* known_context(const void* handle);

/// The code of a text such as "CUDA_ERROR_OUT_OF_MEMORY" or "2".
Code code_of(const std::string& text);
const char* name_of(Code code);

}  // namespace fake
