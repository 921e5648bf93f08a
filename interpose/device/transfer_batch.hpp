// SPDX-License-Identifier: Apache-2.0
#pragma once
// TransferBatch: the packs and unpacks of one call, with one launch per device.
//
// A batch is a scope of one thread. Endpoints that are filled or completed inside the scope only add their parts;
// flush() moves all parts and waits. Outside of any scope the bytes move immediately. So the code that fills an
// endpoint does not have to know whether it is one of many.
// Alternative considered: one launch per message, with a wait only for the last; a halo has 26 faces, and a launch
// costs more than packing most of them.
#include <mpi.h>

#include <vector>

#include "interpose/device/staging.hpp"

namespace bestride::inline interpose {

/// Packed bytes [first, last) of one message.
struct TransferPart {
  StagingPtr staging;
  Direction direction = Direction::pack;
  std::int64_t first = 0, last = 0;
  int index = 0;  ///< index of the request in the call's array
};

/// Moves all parts, in no defined order, and waits: one launch per device if kernels can be used, else block by block.
/// If a part fails, its staging is marked as failed and the cause is reported.
void transfer_all(std::vector<TransferPart>& parts) noexcept;

class TransferBatch {
 public:
  /// Does nothing if no GPU runtime is detected.
  TransferBatch() noexcept : active_(gpu_runtime_detected()) {
    if (active_) [[unlikely]]
      open();
  }
  /// Moves the parts if flush() was not called.
  ~TransferBatch() {
    if (active_) [[unlikely]]
      close();
  }
  TransferBatch(const TransferBatch&) = delete;
  TransferBatch& operator=(const TransferBatch&) = delete;

  /// The parts added from now on belong to the request at this index of the call's array.
  void set_request_index(int index) noexcept { index_ = index; }
  /// Moves all parts. Returns nullptr if all succeeded, else a part that failed, valid until this scope ends.
  const TransferPart* flush() noexcept { return active_ ? move() : nullptr; }
  /// Call after flush(): calls function(part) for each part that failed.
  template <class Function>
  void for_each_failed(Function&& function) const {
    for (const TransferPart& part : parts_)
      if (part.staging->failed()) function(part);
  }

  /// Adds the part to the innermost scope of this thread, or moves it immediately if there is none.
  static void move(StagingPtr staging, Direction direction, std::int64_t first, std::int64_t last) noexcept;

 private:
  void open() noexcept;
  void close() noexcept;
  const TransferPart* move() noexcept;

  const bool active_;
  bool flushed_ = false;
  int index_ = 0;
  TransferBatch* outer_ = nullptr;
  std::vector<TransferPart> parts_;
};

}  // namespace bestride::inline interpose
