// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/intra_node.hpp"

#include <algorithm>

namespace bestride::inline collectives {

IntraNodeExchange::IntraNodeExchange(Hierarchy& hierarchy, const NodeVectors& vectors, std::int64_t piece)
    : h_(hierarchy), vectors_(vectors), piece_(piece), taken_(static_cast<std::size_t>(hierarchy.local_ranks())) {
  for (int q = 0; q < h_.local_ranks(); ++q) taken_[static_cast<std::size_t>(q)] = vectors_.part(h_.node(), q).first;
  taken_[static_cast<std::size_t>(h_.local_rank())] = vectors_.part(h_.node(), h_.local_rank()).last;
}

void IntraNodeExchange::exchange(std::vector<Task>& tasks) {
  if (h_.local_ranks() > 1) tasks.push_back(give());
  for (int q = 0; q < h_.local_ranks(); ++q)
    if (q != h_.local_rank()) tasks.push_back(take(q));
}

bool IntraNodeExchange::here(Range range) const noexcept {
  for (int q = 0; q < h_.local_ranks(); ++q) {
    const Range part = vectors_.part(h_.node(), q);
    if (part.first < range.last && range.first < part.last &&
        taken_[static_cast<std::size_t>(q)] < std::min(part.last, range.last))
      return false;
  }
  return true;
}

Task IntraNodeExchange::give() {
  const Range own = vectors_.part(h_.node(), h_.local_rank());
  for (std::int64_t i = 0; i < pieces_in(own.length(), piece_); ++i) {
    co_await until([&] { return h_.channels().vacant(ChannelKind::own); });
    h_.channels().fill(ChannelKind::own, vectors_, h_.node(), piece_of(own, i, piece_));
    h_.channels().publish(ChannelKind::own);
  }
}

Task IntraNodeExchange::take(int q) {
  const Range part = vectors_.part(h_.node(), q);
  for (std::int64_t i = 0; i < pieces_in(part.length(), piece_); ++i) {
    co_await until([&] { return h_.channels().arrived(q, ChannelKind::own) != nullptr; });
    const Range range = piece_of(part, i, piece_);
    vectors_.write(h_.node(), range, h_.channels().arrived(q, ChannelKind::own));
    h_.channels().take(q, ChannelKind::own);
    taken_[static_cast<std::size_t>(q)] = range.last;
  }
}

}  // namespace bestride::inline collectives
