// SPDX-License-Identifier: Apache-2.0
#pragma once
// Choose: selects the kernel for a piece, in each direction.
#include "kernels/program.hpp"

namespace bestride::inline kernels {

class Choose {
 public:
  explicit Choose(const PackerOptions& options);
  bool masks() const { return table_.record.pack != nullptr; }
  /// Each function sets op.whole and op.row from op.piece.
  void strided(Op& op) const;
  void record(Op& op) const;
  void list(Op& op) const;

 private:
  // The kernels of one family for a piece; empty if the family does not support the shape.
  const Kernels& plain(const Piece& piece) const;
  const Kernels& gather(const Piece& piece) const;
  const Kernels& transpose(const Piece& piece) const;
  const Kernels& grouped(const Piece& piece) const;
  const Kernels& streaming(const Piece& piece) const;
  const Kernels& paced(const Piece& piece) const;
  const Kernels& fastest(const Piece& piece, Direction direction) const;
  const KernelTable& table_;
  KernelFamily family_;
};

}  // namespace bestride::inline kernels
