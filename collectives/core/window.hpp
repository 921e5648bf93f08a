// SPDX-License-Identifier: Apache-2.0
#pragma once
// Window: memory that the ranks of one node share.
//
// It is a memfd. It has no name, so nothing is left behind however a job ends, and a full /dev/shm does not matter.
// Where a policy forbids that, it is a file in /dev/shm, also without a name. One rank creates it and passes its
// process ID and descriptor to the others, which open it through /proc. Its pages are reserved before they are written,
// so that lack of memory is an error and not a SIGBUS. A magic number verifies that it is the right one, because in
// another container the same process ID means another process. Alternatives considered: shm_open, whose name survives
// SIGKILL; MPI_Win_allocate_shared, which is collective and blocking.
#include <cstddef>
#include <cstdint>

namespace bestride::inline collectives {

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
    reserved,   ///< all of them, at creation
    on_demand,  ///< by the writer, through descriptor(); such a window keeps its descriptor
  };
  /// Zeroed. data() is nullptr if memory is not available, or if `bytes` exceeds an eighth of the machine's memory.
  static Window create(std::size_t bytes, Pages pages = Pages::reserved) noexcept;
  static Window open(const WindowKey& key, Pages pages = Pages::reserved) noexcept;
  /// The key of a created window; valid until close_descriptor().
  WindowKey key() const noexcept { return key_; }
  /// Closes the descriptor; called when all ranks have opened the window.
  void close_descriptor() noexcept;

  /// Aligned to a page; the mapping of descriptor() from offset 0.
  std::byte* data() const noexcept { return memory_; }
  /// -1 if closed.
  int descriptor() const noexcept { return static_cast<int>(key_.descriptor); }

 private:
  std::byte* memory_ = nullptr;
  WindowKey key_;
};

}  // namespace bestride::inline collectives
