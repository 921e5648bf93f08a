// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/edge_messages.hpp"

#include <algorithm>
#include <map>
#include <memory>

namespace bestride::inline collectives {

std::vector<EdgeMessages::Chain> EdgeMessages::chains(std::span<const EdgeEnd> ends) {
  std::map<int, Chain> by_peer;
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (ends[i].edge != EdgeEnd::none) by_peer[ends[i].peer].push_back(i);
  std::vector<Chain> result;
  for (auto& [peer, chain] : by_peer) {
    std::sort(chain.begin(), chain.end(), [&](std::size_t a, std::size_t b) { return ends[a].edge < ends[b].edge; });
    result.push_back(std::move(chain));
  }
  return result;
}

Task EdgeMessages::send(const Chain& edges, const Operands& input) {
  const auto piece = std::make_unique_for_overwrite<std::byte[]>(piece_bytes);
  for (const std::size_t i : edges) {
    const Operand from = input.of(static_cast<int>(i));
    for (std::int64_t first = 0, last = 0;; first = last) {
      last = std::min(first + piece_bytes, from.bytes());
      from.read(piece.get(), first, last);
      Transfer sent = transport_.send(out_[i].peer, piece.get(), last - first);
      co_await until([&] { return transport_.done(sent); });
      if (last - first < piece_bytes) break;
    }
  }
}

Task EdgeMessages::receive(std::span<const EdgeEnd> in, const Chain& edges, const Operands& output) {
  const auto piece = std::make_unique_for_overwrite<std::byte[]>(piece_bytes);
  for (const std::size_t i : edges) {
    const Operand to = output.of(static_cast<int>(i));
    for (std::int64_t first = 0;;) {
      Transfer received = transport_.receive(in[i].peer, piece.get(), piece_bytes);
      co_await until([&] { return transport_.done(received); });
      const std::int64_t last = first + received.bytes, fits = std::min(last, to.bytes());
      truncated_ |= fits < last;
      if (first < fits) to.write(piece.get(), first, fits);
      first = last;
      if (received.bytes < piece_bytes) break;
    }
  }
}

Task EdgeMessages::exchange(std::span<const EdgeEnd> in, const Operands& input, const Operands& output) {
  truncated_ = false;
  const std::vector<Chain> to = chains(out_), from = chains(in);
  std::vector<Task> tasks;
  for (const Chain& chain : to) tasks.push_back(send(chain, input));
  for (const Chain& chain : from) tasks.push_back(receive(in, chain, output));
  co_await all_of(tasks);
}

}  // namespace bestride::inline collectives
