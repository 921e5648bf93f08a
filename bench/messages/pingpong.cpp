// SPDX-License-Identifier: Apache-2.0
#include "pingpong.hpp"

#include <algorithm>

#include "base/median.hpp"
#include "by_hand.hpp"

namespace messages {
namespace {

using Bytes = std::vector<unsigned char>;
constexpr unsigned char gap = 0xA5;
constexpr std::size_t margin = 4096;

std::size_t span(const Shape& shape, int count) {
  std::ptrdiff_t end = 0;
  for (const Block& block : shape.blocks()) end = std::max(end, block.offset + block.length);
  return std::size_t(end + (count - 1) * shape.extent());
}

/// One side of a ping-pong: send and receive buffer.
struct End {
  const void* send;
  int send_count;
  MPI_Datatype send_type;
  void* receive;
  int receive_count;
  MPI_Datatype receive_type;

  void send_to(int peer) const { MPI_Send(send, send_count, send_type, peer, 0, MPI_COMM_WORLD); }
  void receive_from(int peer) const {
    MPI_Recv(receive, receive_count, receive_type, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
};

/// The same with packing and unpacking by hand, through two contiguous buffers.
struct HandEnd {
  const ByHand& pack;
  const unsigned char* sent;
  unsigned char* packed;
  const ByHand& unpack;
  unsigned char* received;
  unsigned char* arrived;
  const End& flat;

  void send_to(int peer) const {
    pack.pack(packed, sent);
    flat.send_to(peer);
  }
  void receive_from(int peer) const {
    flat.receive_from(peer);
    unpack.unpack(received, arrived);
  }
};

template <class AnyEnd>
void round_trips(const AnyEnd& end, int rank, int count) {
  for (int trip = 0; trip < count; ++trip)
    for (const int turn : {0, 1}) {
      if (turn == rank)
        end.send_to(1 - rank);
      else
        end.receive_from(1 - rank);
    }
}

template <class AnyEnd>
double seconds_for(const AnyEnd& end, int rank, int count) {
  const double start = MPI_Wtime();
  round_trips(end, rank, count);
  return MPI_Wtime() - start;
}

/// Round trips per sample, enough for the resolution of the clock. Rank 0 decides.
template <class AnyEnd>
int trips_per_sample(const AnyEnd& end, int rank) {
  constexpr int first = 4;
  constexpr double wanted_s = 20e-6;
  round_trips(end, rank, first);
  int trips = int(std::clamp(wanted_s / (seconds_for(end, rank, first) / first), 1.0, 64.0));
  MPI_Bcast(&trips, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return trips;
}

/// Fills `sent`, exchanges it once, and checks every received byte and every byte around it.
bool arrives_whole(const Message& message, Bytes& sent, Bytes& received, const End& end, int rank) {
  for (std::size_t at = 0; at < sent.size(); ++at) sent[at] = static_cast<unsigned char>((at * 2654435761u) >> 13);
  std::fill(received.begin(), received.end(), gap);
  round_trips(end, rank, 1);

  Bytes payload;
  for (int item = 0; item < message.send_count; ++item)
    for (const Block& block : message.send.blocks()) {
      const auto from = sent.begin() + std::ptrdiff_t(margin) + item * message.send.extent() + block.offset;
      payload.insert(payload.end(), from, from + block.length);
    }
  Bytes expected(received.size(), gap);
  auto next = payload.begin();
  for (int item = 0; item < message.receive_count; ++item)
    for (const Block& block : message.receive.blocks()) {
      std::copy(next, next + block.length,
                expected.begin() + std::ptrdiff_t(margin) + item * message.receive.extent() + block.offset);
      next += block.length;
    }
  int good = next == payload.end() && expected == received;
  MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return good;
}

}  // namespace

void send_long_messages() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  constexpr int length = 1 << 20, trips = 8;
  const Bytes sent(length, 1);
  Bytes received(length);
  round_trips(End{sent.data(), length, MPI_BYTE, received.data(), length, MPI_BYTE}, rank, trips);
}

Timing measure(const Case& chosen, double seconds) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Message message = chosen.make();
  message.send.commit();
  message.receive.commit();

  Timing timing;
  timing.payload = message.send.size() * message.send_count;
  timing.block = double(message.send.size()) / double(message.send.blocks().size());
  Bytes sent(span(message.send, message.send_count) + 2 * margin),
      received(span(message.receive, message.receive_count) + 2 * margin);
  const End typed = {sent.data() + margin,     message.send_count,    message.send.type(),
                     received.data() + margin, message.receive_count, message.receive.type()};
  timing.right = arrives_whole(message, sent, received, typed, rank);
  const ByHand pack(message.send, message.send_count), unpack(message.receive, message.receive_count);
  message.send.forget_blocks();
  message.receive.forget_blocks();
  if (seconds <= 0) return timing;

  Bytes flat_sent(timing.payload, 1), flat_received(timing.payload, 2);
  const End flat = {flat_sent.data(),     int(timing.payload), MPI_BYTE,
                    flat_received.data(), int(timing.payload), MPI_BYTE};

  const HandEnd hand = {
      pack, sent.data() + margin, flat_sent.data(), unpack, received.data() + margin, flat_received.data(), flat};

  // The kinds of messages take turns in short runs, so that other load affects all.
  constexpr int run = 8;
  std::vector<double> typed_s, flat_s, hand_s;
  const auto measure_run = [rank](const auto& end, int trips, std::vector<double>* into) {
    round_trips(end, rank, 1);
    for (int sample = 0; sample < run; ++sample) into->push_back(seconds_for(end, rank, trips) / trips / 2);
  };
  const int typed_trips = trips_per_sample(typed, rank), flat_trips = trips_per_sample(flat, rank),
            hand_trips = trips_per_sample(hand, rank);
  const double start = MPI_Wtime();
  for (int more = 1; more;) {
    measure_run(typed, typed_trips, &typed_s);
    measure_run(flat, flat_trips, &flat_s);
    measure_run(hand, hand_trips, &hand_s);
    more = MPI_Wtime() - start < seconds;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  timing.samples = int(typed_s.size());
  timing.typed_us = bestride::median_of(typed_s) * 1e6;
  timing.typed_fastest_us = *std::min_element(typed_s.begin(), typed_s.end()) * 1e6;
  timing.contiguous_us = bestride::median_of(flat_s) * 1e6;
  timing.by_hand_us = bestride::median_of(hand_s) * 1e6;
  return timing;
}

}  // namespace messages
