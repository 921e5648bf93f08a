// SPDX-License-Identifier: Apache-2.0
#include "collectives/cache/lookup.hpp"

#include <algorithm>

#include "collectives/cache/agree.hpp"

namespace bestride::inline collectives {

Lookup::Lookup(Hierarchy& hierarchy, const NodeVectors& vectors, const OwnBlock& own, CacheTable& table, Arena& arena,
               std::uint32_t coding)
    : h_(hierarchy), own_(own), table_(table), arena_(arena) {
  std::int64_t begin = 0;
  std::size_t i = 0;
  for (int node = 0; node < h_.nodes(); ++node) {
    begins_.push_back(begin);
    begin += vectors.bytes(node);
    for (int l = 0; l < static_cast<int>(h_.topology().ranks_on(node).size()); ++l)
      table_.blocks()[i++] = vectors.part(node, l).length();
  }
  other_nodes_bytes_ = begin - vectors.bytes(h_.node());
  own_begin_ = begins_[static_cast<std::size_t>(h_.node())] + vectors.part(h_.node(), h_.local_rank()).first;
  call_ = table_.begin(coding);
}

Task Lookup::run() {
  co_await look();
  AgreedWords words;
  words.word[0] = mine_.equal;
  words.word[1] = mine_.held;
  // A rank whose block is similar to none does not restrict the choice.
  words.word[2] = mine_.resembled ? mine_.resembled : ~std::uint64_t{0};
  words.word[3] = ~mine_.resembled;
  // Without candidates the ranks of a node still wait for each other: see Arena.
  co_await agree(h_, words, call_.candidates > 0 ? AgreementScope::all : AgreementScope::node);
  decision_ = table_.decide(call_, {words.word[0], words.word[1], words.word[2], ~words.word[3]});
  if (hit() && h_.local_rank() == 0) table_.add_hit_bytes(other_nodes_bytes_);
}

/// Compares this rank's block with the candidates that this rank holds, and finds similar ones.
Task Lookup::look() {
  for (std::int64_t i = 0; i < own_.steps(); ++i) {
    hash_ = own_.hash_on(hash_, i);
    co_await pause();
  }
  if (table_.delta()) own_.sample(sample_);
  for (int i = 0; i < call_.candidates; ++i) {
    CacheEntry& entry = table_.candidate(call_, i);
    if (!entry.held) continue;
    mine_.held |= std::uint64_t{1} << i;
    if (entry.hash != hash_) continue;
    // One comparison is enough for all results to which this rank contributed the same block.
    if (!content_) {
      bool equal = true;
      for (std::int64_t k = 0; equal && k < own_.steps(); ++k) {
        equal = own_.equals(arena_.at(entry.offset + own_begin_), k);
        co_await pause();
      }
      if (equal) content_ = entry.content;
    }
    if (entry.content == content_) mine_.equal |= std::uint64_t{1} << i;
  }
  if (table_.delta()) resemble();
}

/// Marks the candidates that share more than 1/32 of the sampled words, and nearly as many as the best candidate.
void Lookup::resemble() noexcept {
  const int count = own_.samples();
  int shared[CacheTable::candidates_of_a_shape] = {}, best = 0;
  for (int i = 0; i < call_.candidates; ++i) {
    if (!(mine_.held >> i & 1)) continue;
    const std::uint16_t* older = table_.sample(table_.candidate(call_, i));
    for (int k = 0; k < count; ++k) shared[i] += sample_[k] == older[k];
    best = std::max(best, shared[i]);
  }
  for (int i = 0; i < call_.candidates; ++i)
    if (shared[i] > count / 32 && shared[i] >= best - count / 16) mine_.resembled |= std::uint64_t{1} << i;
}

std::byte* Lookup::memory_for(int node, Range range) noexcept {
  const std::int64_t offset = decision_.store->offset + begins_[static_cast<std::size_t>(node)] + range.first;
  whole_ = whole_ && arena_.reserve(offset, range.length());
  return whole_ ? arena_.at(offset) : nullptr;
}

void Lookup::written() noexcept {
  CacheEntry* const entry = decision_.store;
  if (!keeps() || !whole_) return;
  entry->hash = hash_;
  entry->content = content_ ? content_ : table_.new_content();
  if (table_.delta()) std::copy(sample_, sample_ + own_.samples(), table_.sample(*entry));
  entry->held = true;
}

}  // namespace bestride::inline collectives
