// SPDX-License-Identifier: Apache-2.0
#include "collectives/cache/allgather.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "collectives/cache/agree.hpp"
#include "collectives/cache/delta_code.hpp"
#include "collectives/cache/own_block.hpp"
#include "collectives/share.hpp"

namespace bestride {
namespace {

/// A result in the arena: the strings of the nodes, one after the other.
class Storing final : public Kept {
 public:
  Storing(Arena& arena, std::int64_t result, const std::vector<std::int64_t>& begins) noexcept : arena_(arena), result_(result), begins_(begins) {}
  void keep(int node, Range range, const std::byte* data) noexcept override {
    if (std::byte* to = place(node, range)) std::memcpy(to, data, static_cast<std::size_t>(range.bytes()));
  }
  /// Where a piece is to be written; nullptr: not all of the result can be kept.
  std::byte* place(int node, Range range) noexcept {
    const std::int64_t offset = result_ + begins_[static_cast<std::size_t>(node)] + range.first;
    whole_ = whole_ && arena_.reserve(offset, range.bytes());
    return whole_ ? arena_.at(offset) : nullptr;
  }
  /// Nothing is missing so far.
  bool whole() const noexcept { return whole_; }

 private:
  Arena& arena_;
  const std::int64_t result_;
  const std::vector<std::int64_t>& begins_;
  bool whole_ = true;
};

class CachedAllgather {
 public:
  CachedAllgather(Hierarchy& hierarchy, const RankBlocks& strings, CacheTable& table, Arena& arena, Pace pace)
      : h_(hierarchy), strings_(strings), table_(table), arena_(arena), pace_(pace), own_(strings, hierarchy.node(), hierarchy.local_rank(), hierarchy.staging()) {
    std::int64_t begin = 0;
    std::size_t i = 0;
    for (int node = 0; node < h_.nodes(); ++node) {
      begins_.push_back(begin);
      begin += strings_.bytes(node);
      for (int l = 0; l < static_cast<int>(h_.topology().ranks_on(node).size()); ++l) {
        table_.blocks()[i] = strings_.part(node, l).bytes();
        if (table_.blocks()[i++] % 2) unit_ = 1;
      }
    }
    // Cut where 16-bit words are, so that a word that changed is one that changed for both ends.
    pace_.piece = std::min(pace_.piece, Hierarchy::staging_bytes / (3 * pace_.in_flight + 1));
    pace_.piece = std::max<std::int64_t>(unit_, pace_.piece / unit_ * unit_);
    call_ = table_.begin();
  }

  Strand run() {
    if (!call_.active) {
      co_await share(h_, strings_, pace_, unit_);
      co_return;
    }
    co_await look();
    AgreedWords words;
    words.word[0] = mine_.equal;
    words.word[1] = mine_.held;
    words.word[2] = mine_.resembled ? mine_.resembled : ~std::uint64_t{0};  // who sees nothing alike has no say in the choice
    words.word[3] = ~mine_.resembled;
    // Where there is nothing to agree on, the ranks of a node still wait for each other: see Arena.
    co_await agree(h_, words, call_.candidates > 0 ? Reach::all : Reach::node);
    const CacheTable::Decision decision = table_.decide(call_, {words.word[0], words.word[1], words.word[2], ~words.word[3]});
    if (decision.hit >= 0)
      co_await copy(arena_.at(decision.hit));
    else
      co_await gather(decision);
  }

 private:
  std::int64_t own_begin() const noexcept { return begins_[static_cast<std::size_t>(h_.node())] + own_.range().first; }
  const std::byte* own_block_in(const CacheEntry& entry) const noexcept { return arena_.at(entry.offset + own_begin()); }

  /// What this rank's block is and what it resembles, among the candidates that this rank holds.
  Strand look() {
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
      // One comparison decides for all results in which this rank gave the same.
      if (!content_) {
        bool equal = true;
        for (std::int64_t k = 0; equal && k < own_.steps(); ++k) {
          equal = own_.equals(own_block_in(entry), k);
          co_await pause();
        }
        if (equal) content_ = entry.content;
      }
      if (entry.content == content_) mine_.equal |= std::uint64_t{1} << i;
    }
    if (table_.delta()) resemble();
  }

  /// Of the candidates that share more than 1/32 of the sampled words, those that share about as many as the best.
  void resemble() noexcept {
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

  Strand copy(const std::byte* result) {
    for (int node = 0; node < h_.nodes(); ++node) {
      const Range own = node == h_.node() ? own_.range() : Range{};
      const Range parts[2] = {{0, own.first}, {own.last, strings_.bytes(node)}};
      for (int part = 0; part < 2; ++part)
        for (std::int64_t i = 0; i < pieces_in(parts[part].bytes(), OwnBlock::step); ++i) {
          const Range range = piece_of(parts[part], i, OwnBlock::step);
          strings_.write(node, range, result + begins_[static_cast<std::size_t>(node)] + range.first);
          co_await pause();
        }
    }
  }

  Strand gather(const CacheTable::Decision& decision) {
    CacheEntry* const entry = decision.store;
    const bool keeps = entry && arena_.has(entry->offset, entry->bytes);
    Storing storing(arena_, keeps ? entry->offset : 0, begins_);
    DeltaCode code(decision.base >= 0 ? arena_.at(decision.base) : nullptr, begins_);
    std::vector<Strand> strands;
    strands.push_back(share(h_, strings_, pace_, unit_, keeps ? &storing : nullptr, decision.base >= 0 ? &code : nullptr));
    if (keeps) strands.push_back(keep_own(storing));
    co_await all_of(strands);
    if (!keeps || !storing.whole()) co_return;
    entry->hash = hash_;
    entry->content = content_ ? content_ : table_.new_content();
    if (table_.delta()) std::copy(sample_, sample_ + own_.samples(), table_.sample(*entry));
    entry->held = true;
  }

  /// A piece at a time, while the wire is busy.
  Strand keep_own(Storing& storing) {
    for (std::int64_t i = 0; i < pieces_in(own_.range().bytes(), pace_.piece); ++i) {
      const Range range = piece_of(own_.range(), i, pace_.piece);
      if (std::byte* to = storing.place(h_.node(), range)) strings_.read(h_.node(), range, to);
      co_await pause();
    }
  }

  Hierarchy& h_;
  const RankBlocks& strings_;
  CacheTable& table_;
  Arena& arena_;
  Pace pace_;
  const OwnBlock own_;
  std::int64_t unit_ = 2;
  std::vector<std::int64_t> begins_;  ///< by node: where its string begins in a kept result
  CacheTable::Call call_;
  CacheTable::Agreed mine_;
  std::uint64_t hash_ = 0;
  std::uint64_t content_ = 0;  ///< that of a result in which this rank gave the same; 0: none
  std::uint16_t sample_[OwnBlock::sample_words];
};

}  // namespace

Strand allgather_cached(Hierarchy& hierarchy, const RankBlocks& strings, CacheTable& table, Arena& arena, Pace pace) {
  CachedAllgather work(hierarchy, strings, table, arena, pace);
  co_await work.run();
}

}  // namespace bestride
