// SPDX-License-Identifier: Apache-2.0
// A layout as one readable line.
#include <algorithm>

#include "datatype/layout.hpp"

namespace bestride::inline datatype {
namespace {

constexpr std::size_t longest_line = 240;

void write(std::string& out, const Node& node) {
  if (out.size() > longest_line) return;
  switch (node.kind) {
    case Node::Kind::block: out += std::to_string(node.size) + " B"; return;
    case Node::Kind::loop:
      out += std::to_string(node.count) + " x " + std::to_string(node.stride) + " | ";
      write(out, *node.body);
      return;
    case Node::Kind::sequence:
      out += "{";
      for (std::size_t i = 0; i < node.items.size(); ++i) {
        out += i ? ", " : " ";
        if (node.items[i].offset)
          out += (node.items[i].offset > 0 ? "+" : "") + std::to_string(node.items[i].offset) + " ";
        write(out, *node.items[i].node);
        if (out.size() > longest_line) return;
      }
      out += " }";
      return;
    case Node::Kind::list:
      out += std::to_string(node.offsets.size()) + " blocks of ";
      if (node.lengths.empty()) {
        out += std::to_string(node.block_length);
      } else {
        const auto [least, most] = std::minmax_element(node.lengths.begin(), node.lengths.end());
        out += std::to_string(*least) + ".." + std::to_string(*most);
      }
      out += " B in [" + std::to_string(node.low) + ", " + std::to_string(node.high) + ")";
      return;
  }
}

}  // namespace

std::string Layout::text() const {
  if (!root_) return "empty";
  std::string out;
  if (offset_) out += (offset_ > 0 ? "+" : "") + std::to_string(offset_) + " | ";
  write(out, *root_);
  if (out.size() > longest_line) out.resize(longest_line), out += " ...";
  return out;
}

}  // namespace bestride::inline datatype
