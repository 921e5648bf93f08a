// SPDX-License-Identifier: Apache-2.0
// Describes a program in one line, outer to inner: "16 x (word8 32 x 256)", sequences in braces.
#include "kernels/program.hpp"

namespace bestride::inline kernels {

std::string text(const Op& op) {
  if (op.kind == Op::Kind::loop) return std::to_string(op.count) + " x (" + text(*op.body) + ")";
  if (op.kind == Op::Kind::sequence) {
    std::string line = "{";
    constexpr std::size_t shown = 8;
    for (std::size_t i = 0; i < op.parts.size() && i < shown; ++i) line += (i ? ", " : "") + text(*op.parts[i].op);
    if (op.parts.size() > shown) line += ", and " + std::to_string(op.parts.size() - shown) + " more";
    return line + "}";
  }
  std::string line = op.whole[Direction::pack].name;
  if (op.whole[Direction::pack].kernel && std::string(op.whole[Direction::unpack].name) != line)
    line += "+" + std::string(op.whole[Direction::unpack].name);
  if (op.piece.rows != 1) line += " " + std::to_string(op.piece.rows) + " x";
  line += " " + std::to_string(op.piece.count);
  if (!op.piece.lengths) line += " of " + std::to_string(op.piece.width) + " B";
  return line;
}

}  // namespace bestride::inline kernels
