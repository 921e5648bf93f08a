// SPDX-License-Identifier: Apache-2.0
#pragma once
// Window: memory that the ranks of one node share.
//
// A memfd: it has no name, so nothing is left behind however a job ends, and a full /dev/shm does not matter. One rank makes it and tells
// the others its process and descriptor; they open it by /proc. Its pages are reserved before they are written, so that running out of memory
// is an error and not a SIGBUS. A magic number tells that it is the right one: process numbers mean another process in another
// container. Alternatives that lost: shm_open (a name that survives SIGKILL), MPI_Win_allocate_shared (collective, and blocking).
#include <cstddef>
#include <cstdint>

namespace bestride {

/// What another rank needs to open a window.
struct WindowKey {
  std::int64_t process = 0;
  std::int64_t descriptor = -1;  ///< -1: there is none
  std::uint64_t bytes = 0;
  std::uint64_t magic = 0;
};

class Window {
 public:
  Window() = default;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  Window(Window&& other) noexcept;
  Window& operator=(Window&& other) noexcept;
  ~Window();

  enum class Pages {
    reserved,   ///< all of them, at once
    on_demand,  ///< by whoever writes, by descriptor(); such a window keeps it
  };
  /// Zeroed. Check data() afterwards: nullptr if there is no memory, or it were more than an eighth of the machine's.
  static Window create(std::size_t bytes, Pages pages = Pages::reserved) noexcept;
  static Window open(const WindowKey& key, Pages pages = Pages::reserved) noexcept;
  /// Of one that was created; valid until close_descriptor().
  WindowKey key() const noexcept { return key_; }
  /// All have opened it: gives the descriptor back.
  void close_descriptor() noexcept;

  /// Aligned to a page; the mapping of descriptor() from its beginning.
  std::byte* data() const noexcept { return memory_; }
  /// -1: closed.
  int descriptor() const noexcept { return static_cast<int>(key_.descriptor); }

 private:
  std::byte* memory_ = nullptr;
  WindowKey key_;
};

}  // namespace bestride
