// SPDX-License-Identifier: Apache-2.0
#pragma once
// Together: the packs and unpacks of one call, in one launch a device.
//
// A scope of one thread. Sides that are filled or settled inside it only say what is to be moved; conclude() moves it all and waits. Sides
// outside of any scope move at once. So nothing that fills a side has to know whether it is one of many.
// Alternative that lost: a launch each, without waiting for any but the last; a halo has 26 faces, and a launch costs more than most.
#include <mpi.h>

#include <vector>

#include "interpose/back/gpu/staging.hpp"

namespace bestride {

/// Packed bytes [first, last) of one message.
struct Part {
  StagingPtr staging;
  cuda::Direction direction = cuda::Direction::pack;
  std::int64_t first = 0, last = 0;
  int index = 0;  ///< of the request in the call's array
};

/// Moves all parts, in no order among them, and waits: one launch a device where kernels can do it, block by block else. A part that did not
/// get through has its staging marked and the cause said.
void move_all(std::vector<Part>& parts) noexcept;

class Together {
 public:
  /// Does nothing at all while no GPU is in play.
  Together() noexcept : active_(gpu_in_play()) {
    if (active_) [[unlikely]] open();
  }
  /// Moves what conclude() was not called for.
  ~Together() {
    if (active_) [[unlikely]] close();
  }
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;

  /// What comes next belongs to the request at this index of the call's array.
  void about(int index) noexcept { index_ = index; }
  /// Moves everything. nullptr: all of it got through; else a part that did not, until this scope ends.
  const Part* conclude() noexcept { return active_ ? move() : nullptr; }
  /// After conclude(): calls use(part) for each part that did not get through.
  template <class Use>
  void each_failed(Use&& use) const {
    for (const Part& part : parts_)
      if (part.staging->failed()) use(part);
  }

  /// To the scope this thread is in, or at once.
  static void move(StagingPtr staging, cuda::Direction direction, std::int64_t first, std::int64_t last) noexcept;

 private:
  void open() noexcept;
  void close() noexcept;
  const Part* move() noexcept;

  const bool active_;
  bool concluded_ = false;
  int index_ = 0;
  Together* outer_ = nullptr;
  std::vector<Part> parts_;
};

}  // namespace bestride
