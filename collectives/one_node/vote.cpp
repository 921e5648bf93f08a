// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/vote.hpp"

#include <algorithm>
#include <cstring>

namespace bestride::inline collectives {

bool Vote::step() noexcept {
  if (!published_) {
    if (!rounds_.take(round_, static_cast<std::int64_t>(values_.size_bytes()))) return false;
    if (!values_.empty()) std::memcpy(rounds_.own(round_), values_.data(), values_.size_bytes());
    rounds_.publish(round_, static_cast<std::int64_t>(values_.size_bytes()));
    published_ = true;
  }
  for (; next_ < rounds_.ranks(); ++next_) {
    if (next_ == rounds_.rank()) continue;
    if (!rounds_.is_published(round_, next_)) return false;
    if (rounds_.told(round_, next_) < 0) return true;
    std::int64_t theirs[max_values];
    std::memcpy(theirs, rounds_.of(round_, next_), values_.size_bytes());
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = std::max(values_[i], theirs[i]);
  }
  rounds_.end(round_);
  return true;
}

}  // namespace bestride::inline collectives
