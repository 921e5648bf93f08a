// SPDX-License-Identifier: Apache-2.0
#include "collectives/share.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <vector>

#include "collectives/own_parts.hpp"
#include "collectives/share_unequal.hpp"

namespace bestride {
namespace {

/// One piece that crosses the wire.
struct Parcel {
  int rank = 0;  ///< the other end
  Range range;   ///< of the sending node's string
};

class Share {
 public:
  Share(Hierarchy& hierarchy, const NodeStrings& strings, Pace pace, std::int64_t unit, Kept* kept, PieceCode* code)
      : h_(hierarchy), strings_(strings), kept_(kept), code_(code), unit_(unit),
        piece_(std::min(pace.piece, hierarchy.channels().slot_bytes())), in_flight_(pace.in_flight), own_(hierarchy, strings, piece_) {}

  Strand run() {
    std::vector<Strand> strands;
    strands.push_back(send());
    strands.push_back(receive());
    own_.exchange(strands);
    for (int q = 0; q < h_.local_ranks(); ++q)
      if (q != h_.local_rank()) strands.push_back(take_arrived(q));
    co_await all_of(strands);
  }

 private:
  /// The parcels of one carrier in the order in which they are sent, or received. Both ends count alike.
  class Parcels {
   public:
    Parcels(const Share& share, Lanes lanes, bool sent) noexcept : share_(share), lanes_(lanes), sent_(sent), lane_(lanes.first) {}
    bool next(Parcel* parcel) noexcept {
      const int nodes = share_.h_.nodes();
      for (; step_ < nodes; ++step_, lane_ = lanes_.first)
        for (; lane_ < lanes_.last; ++lane_, piece_ = 0) {
          const int other = (share_.h_.node() + (sent_ ? step_ : nodes - step_)) % nodes;
          const Range range = share_.strings_.lane(sent_ ? share_.h_.node() : other, lane_, share_.h_.lanes(), share_.unit_);
          const Range here = piece_of(range, piece_, share_.piece_);
          if (here.bytes() == 0) continue;
          *parcel = {share_.h_.carrier(other, lane_), here};
          from_ = other;
          ++piece_;
          return true;
        }
      return false;
    }
    /// The other node of the last parcel.
    int node() const noexcept { return from_; }

   private:
    const Share& share_;
    Lanes lanes_;
    bool sent_;
    int step_ = 1, lane_, from_ = 0;
    std::int64_t piece_ = 0;
  };

  Lanes lanes_of_neighbour(int q) const noexcept { return lanes_of(q, h_.local_ranks(), h_.lanes()); }
  /// Pieces in staging: in_flight_ each to send and received; with a code, as many encoded to send, and one received.
  std::byte* staging(int index) noexcept { return h_.staging() + index * piece_; }

  Strand take_arrived(int q) {
    Parcels parcels(*this, lanes_of_neighbour(q), false);
    for (Parcel parcel; parcels.next(&parcel);) {
      co_await until([&] { return h_.channels().arrived(q, Stream::arrived) != nullptr; });
      strings_.write(parcels.node(), parcel.range, h_.channels().arrived(q, Stream::arrived));
      h_.channels().take(q, Stream::arrived);
    }
  }

  Strand send() {
    std::vector<Transfer> sent(static_cast<std::size_t>(in_flight_));
    Parcels parcels(*this, h_.own_lanes(), true);
    int count = 0;
    for (Parcel parcel; parcels.next(&parcel); ++count) {
      const int slot = count % in_flight_;
      if (count >= in_flight_) co_await until([&] { return h_.wire().done(sent[static_cast<std::size_t>(slot)]); });
      co_await until([&] { return own_.here(parcel.range); });
      const std::byte* data = strings_.at(h_.node(), parcel.range);
      if (!data) {
        strings_.read(h_.node(), parcel.range, staging(slot));
        data = staging(slot);
      }
      std::int64_t bytes = parcel.range.bytes();
      if (code_) {
        std::byte* shorter = staging(2 * in_flight_ + slot);
        if (const std::int64_t size = code_->encode(h_.node(), parcel.range, data, shorter)) {
          data = shorter;
          bytes = size;
        }
      }
      sent[static_cast<std::size_t>(slot)] = h_.wire().send(parcel.rank, data, bytes);
    }
    for (int i = std::max(0, count - in_flight_); i < count; ++i)
      co_await until([&] { return h_.wire().done(sent[static_cast<std::size_t>(i % in_flight_)]); });
  }

  Strand receive() {
    struct Posted {
      Transfer transfer;
      std::byte* place = nullptr;
      bool staged = false;
    };
    std::vector<Posted> posted(static_cast<std::size_t>(in_flight_));
    Parcels ahead(*this, h_.own_lanes(), false), parcels(*this, h_.own_lanes(), false);
    int first = 0, last = 0;
    for (Parcel parcel; parcels.next(&parcel); ++first) {
      for (Parcel next; last - first < in_flight_ && ahead.next(&next); ++last) {
        Posted& place = posted[static_cast<std::size_t>(last % in_flight_)];
        std::byte* direct = strings_.at(ahead.node(), next.range);
        place.staged = !direct;
        place.place = direct ? direct : staging(in_flight_ + last % in_flight_);
        place.transfer = h_.wire().receive(next.rank, place.place, next.range.bytes());
      }
      Posted& place = posted[static_cast<std::size_t>(first % in_flight_)];
      co_await until([&] { return h_.wire().done(place.transfer); });
      if (code_ && place.transfer.bytes < parcel.range.bytes()) {
        std::byte* shorter = staging(3 * in_flight_);
        std::memcpy(shorter, place.place, static_cast<std::size_t>(place.transfer.bytes));
        if (!code_->decode(parcels.node(), parcel.range, shorter, place.transfer.bytes, place.place)) throw std::exception();
      }
      if (place.staged) strings_.write(parcels.node(), parcel.range, place.place);
      if (kept_) kept_->keep(parcels.node(), parcel.range, place.place);
      if (h_.local_ranks() == 1) continue;
      co_await until([&] { return h_.channels().vacant(Stream::arrived); });
      strings_.read(parcels.node(), parcel.range, h_.channels().slot(Stream::arrived));
      h_.channels().publish(Stream::arrived);
    }
  }

  Hierarchy& h_;
  const NodeStrings& strings_;
  Kept* const kept_;
  PieceCode* const code_;
  const std::int64_t unit_, piece_;
  const int in_flight_;
  OwnParts own_;
};

}  // namespace

Strand share(Hierarchy& hierarchy, const NodeStrings& strings, Pace pace, std::int64_t unit, Kept* kept, PieceCode* code) {
  const RelayPlan plan(bytes_of(strings, hierarchy.nodes()), unit, pace.uneven);
  if (!plan.even()) {
    co_await share_unequal(hierarchy, strings, plan, pace, unit, kept, code);
    co_return;
  }
  Share work(hierarchy, strings, pace, unit, kept, code);
  co_await work.run();
}

}  // namespace bestride
