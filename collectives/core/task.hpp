// SPDX-License-Identifier: Apache-2.0
#pragma once
// Task: a coroutine that makes progress in steps and never waits inside a step.
//
// A collective on one rank is a coroutine. Where it has to wait (for a peer or for the network), it stores the
// condition and returns to the caller of step(). The next step checks the condition again and continues if it holds. So
// the same code serves the blocking form (step until done), the nonblocking form (a step from every MPI call) and
// tests, in which all ranks of a job take turns in one thread. Alternative considered: hand-written state machines, in
// which the same sequence of events is spread over switch labels.
#include <coroutine>
#include <exception>
#include <span>
#include <utility>

namespace bestride::inline collectives {

/// What a task waits for. Checked at every step. holds() must have no side effects once it returns true.
struct Condition {
  virtual bool holds() noexcept = 0;

 protected:
  ~Condition() = default;
};

/// Owns its coroutine. Movable; used by one thread at a time. Nothing runs before the first step.
class [[nodiscard]] Task {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  struct promise_type {
    promise_type* root = this;       ///< promise of the stepped task: it stores what the innermost coroutine waits for
    std::coroutine_handle<> parent;  ///< resumes when this one ends; none: this one is the stepped task
    Condition* waiting_for = nullptr;      // root only
    std::coroutine_handle<> continuation;  // root only
    bool failed = false;                   // root only: an exception ended it

    Task get_return_object() noexcept { return Task(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Return {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(Handle ended) noexcept {
          return ended.promise().parent ? ended.promise().parent : std::noop_coroutine();
        }
        void await_resume() noexcept {}
      };
      return Return{};
    }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { root->failed = true; }
  };

  Task() = default;
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  /// Continues as far as possible without waiting. Returns true if the task has ended.
  bool step() noexcept {
    if (!handle_ || handle_.done()) return true;
    promise_type& root = handle_.promise();
    if (root.waiting_for && !root.waiting_for->holds()) return false;
    const std::coroutine_handle<> next = root.waiting_for ? root.continuation : std::coroutine_handle<>(handle_);
    root.waiting_for = nullptr;
    next.resume();
    return handle_.done();
  }
  /// True if the task ended with an exception, such as std::bad_alloc.
  bool failed() const noexcept { return handle_ && handle_.promise().failed; }

  /// Awaiting a task runs it to its end as part of the awaiting task.
  auto operator co_await() && noexcept {
    struct Awaiter {
      Handle child;
      bool await_ready() noexcept { return !child || child.done(); }
      std::coroutine_handle<> await_suspend(Handle parent) noexcept {
        child.promise().parent = parent;
        child.promise().root = parent.promise().root;
        return child;
      }
      void await_resume() noexcept {}
    };
    return Awaiter{handle_};
  }

 private:
  explicit Task(Handle handle) noexcept : handle_(handle) {}
  Handle handle_;
};

/// co_await until([&] { return ...; }): continues once the function returns true. Checks at once, and waits only if it
/// returns false.
template <class Holds>
auto until(Holds holds) noexcept {
  struct Awaiter final : Condition {
    Holds function;
    explicit Awaiter(Holds given) noexcept : function(std::move(given)) {}
    bool holds() noexcept override { return function(); }
    bool await_ready() noexcept { return function(); }
    void await_suspend(Task::Handle waiting) noexcept {
      waiting.promise().root->waiting_for = this;
      waiting.promise().root->continuation = waiting;
    }
    void await_resume() noexcept {}
  };
  return Awaiter(std::move(holds));
}

/// co_await pause(): ends the current step of long work that does not wait, so that other tasks can run.
inline auto pause() noexcept {
  return until([asked = false]() mutable { return std::exchange(asked, true); });
}

/// co_await all_of(tasks): steps each task until all have ended. If one has failed, the awaiting task fails, too.
inline Task all_of(std::span<Task> tasks) {
  co_await until([tasks] {
    bool all = true;
    for (Task& task : tasks) all &= task.step();
    return all;
  });
  for (Task& task : tasks)
    if (task.failed()) throw std::exception();
}

}  // namespace bestride::inline collectives
