// SPDX-License-Identifier: Apache-2.0
#pragma once
// Strand: work that is carried on in steps and never waits inside of one.
//
// A collective on one rank is a coroutine. Where it would have to wait (for a peer, for the wire) it names the condition and returns to
// whoever stepped it; the next step asks the condition again and goes on from there. So one text serves the blocking form (step
// until done), the nonblocking one (a step from every MPI call) and tests, in which all ranks of a job take turns in one thread.
// Alternative that lost: state machines by hand; the same order of events, spread over switch labels.
#include <coroutine>
#include <exception>
#include <span>
#include <utility>

namespace bestride {

/// What a strand waits for. Asked again at every step; must not change anything once it holds.
struct Condition {
  virtual bool holds() noexcept = 0;

 protected:
  ~Condition() = default;
};

/// Owns its coroutine. Movable; used by one thread at a time. Nothing of it runs before the first step.
class [[nodiscard]] Strand {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  struct promise_type {
    promise_type* root = this;             ///< of the strand that is stepped: it keeps what the innermost coroutine waits for
    std::coroutine_handle<> parent;        ///< goes on when this one ends; none: this one is stepped
    Condition* waiting_for = nullptr;      // root only
    std::coroutine_handle<> goes_on;       // root only
    bool failed = false;                   // root only: an exception ended it

    Strand get_return_object() noexcept { return Strand(Handle::from_promise(*this)); }
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

  Strand() = default;
  Strand(Strand&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Strand& operator=(Strand&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Strand() {
    if (handle_) handle_.destroy();
  }

  /// Goes on as far as possible without waiting. True: it has ended.
  bool step() noexcept {
    if (!handle_ || handle_.done()) return true;
    promise_type& root = handle_.promise();
    if (root.waiting_for && !root.waiting_for->holds()) return false;
    const std::coroutine_handle<> next = root.waiting_for ? root.goes_on : std::coroutine_handle<>(handle_);
    root.waiting_for = nullptr;
    next.resume();
    return handle_.done();
  }
  /// It ended for want of memory.
  bool failed() const noexcept { return handle_ && handle_.promise().failed; }

  /// Awaiting a strand runs it to its end as a part of the awaiting one.
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
  explicit Strand(Handle handle) noexcept : handle_(handle) {}
  Handle handle_;
};

/// co_await until([&] { return ...; }): goes on when the function says so; asks at once, and waits only if it says no.
template <class Holds>
auto until(Holds holds) noexcept {
  struct Awaiter final : Condition {
    Holds function;
    explicit Awaiter(Holds given) noexcept : function(std::move(given)) {}
    bool holds() noexcept override { return function(); }
    bool await_ready() noexcept { return function(); }
    void await_suspend(Strand::Handle waiting) noexcept {
      waiting.promise().root->waiting_for = this;
      waiting.promise().root->goes_on = waiting;
    }
    void await_resume() noexcept {}
  };
  return Awaiter(std::move(holds));
}

/// co_await pause(): lets others have a turn, in the midst of work that waits for nothing.
inline auto pause() noexcept {
  return until([asked = false]() mutable { return std::exchange(asked, true); });
}

/// co_await all_of(strands): steps each until all have ended. If one has failed, the awaiting strand fails, too.
inline Strand all_of(std::span<Strand> strands) {
  co_await until([strands] {
    bool all = true;
    for (Strand& strand : strands) all &= strand.step();
    return all;
  });
  for (Strand& strand : strands)
    if (strand.failed()) throw std::exception();
}

}  // namespace bestride
