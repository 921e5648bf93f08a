// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operand: the (buffer, count, datatype) of a collective as a sequence of packed bytes. It can be read and written
// piece by piece, so derived types never need a complete packed copy.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/copy.hpp"
#include "kernels/packer.hpp"

namespace bestride::inline collectives {

/// A view: it owns neither the buffer nor the packer.
class Operand {
 public:
  Operand() = default;
  /// `bytes` contiguous bytes.
  Operand(void* data, std::int64_t bytes) noexcept : user_(static_cast<std::byte*>(data)), bytes_(bytes) {}
  /// The bytes of a layout, relative to `user`.
  Operand(void* user, const Packer& packer) noexcept
      : user_(static_cast<std::byte*>(user)), packer_(&packer), bytes_(packer.size()) {
    if (packer.layout()->contiguous()) {
      user_ += packer.layout()->offset();
      packer_ = nullptr;
    }
  }

  /// Equal operands are the same bytes of memory in the same order.
  bool operator==(const Operand&) const = default;
  std::int64_t bytes() const noexcept { return bytes_; }
  /// The address of a packed byte if the operand is contiguous, else nullptr.
  std::byte* at(std::int64_t byte) const noexcept { return packer_ ? nullptr : user_ + byte; }
  /// read() copies the packed bytes [first, last) of the operand to `to`; write() copies `from` to them. 0 <= first <=
  /// last <= bytes().
  void read(void* to, std::int64_t first, std::int64_t last) const noexcept {
    if (first == last) return;
    if (packer_)
      packer_->pack_range(to, user_, first, last);
    else
      copy_bytes(to, user_ + first, static_cast<std::size_t>(last - first));
  }
  void write(const void* from, std::int64_t first, std::int64_t last) const noexcept {
    if (first == last) return;
    if (packer_)
      packer_->unpack_range(user_, from, first, last);
    else
      copy_bytes(user_ + first, from, static_cast<std::size_t>(last - first));
  }

 private:
  std::byte* user_ = nullptr;
  const Packer* packer_ = nullptr;  ///< nullptr: contiguous
  std::int64_t bytes_ = 0;
};

/// One operand for each rank of a communicator: the blocks of an allgather or an alltoall.
class Operands {
 public:
  virtual Operand of(int rank) const noexcept = 0;
  /// of(rank).bytes(), but cheap.
  virtual std::int64_t bytes(int rank) const noexcept = 0;

 protected:
  ~Operands() = default;
};

/// One rank's block, and the sizes of the blocks of all ranks: for a rank that takes part in a collective with one
/// block. `sizes` outlives this object.
class SingleBlock final : public Operands {
 public:
  SingleBlock(const Operands& sizes, int rank, Operand own) noexcept : sizes_(sizes), rank_(rank), own_(own) {}
  Operand of(int rank) const noexcept override { return rank == rank_ ? own_ : Operand(nullptr, bytes(rank)); }
  std::int64_t bytes(int rank) const noexcept override { return sizes_.bytes(rank); }

 private:
  const Operands& sizes_;
  const int rank_;
  const Operand own_;
};

}  // namespace bestride::inline collectives
