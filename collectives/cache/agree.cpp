// SPDX-License-Identifier: Apache-2.0
#include "collectives/cache/agree.hpp"

#include <cstring>

namespace bestride {
namespace {

constexpr std::int64_t words_bytes = sizeof(AgreedWords);

Task disseminate(Hierarchy& h, AgreedWords& words) {
  const auto first_rank = [&h](int node) { return h.topology().ranks_on(node)[0]; };
  std::byte* out = h.staging();
  std::byte* in = h.staging() + words_bytes;
  for (int distance = 1; distance < h.nodes(); distance *= 2) {
    std::memcpy(out, &words, sizeof words);
    Transfer received = h.wire().receive(first_rank((h.node() + h.nodes() - distance) % h.nodes()), in, words_bytes);
    Transfer sent = h.wire().send(first_rank((h.node() + distance) % h.nodes()), out, words_bytes);
    co_await until([&] { return h.wire().done(received); });
    co_await until([&] { return h.wire().done(sent); });
    AgreedWords other;
    std::memcpy(&other, in, sizeof other);
    words &= other;
  }
}

}  // namespace

Task agree(Hierarchy& h, AgreedWords& words, AgreementScope reach) {
  constexpr int leader = 0;
  Channels& channels = h.channels();
  AgreedWords other;
  if (h.local_rank() != leader) {
    co_await until([&] { return channels.vacant(Stream::own); });
    std::memcpy(channels.slot(Stream::own), &words, sizeof words);
    channels.publish(Stream::own, leader);
    for (int q = 0; q < h.local_ranks(); ++q)
      if (q != leader && q != h.local_rank()) channels.skip(q, Stream::own);
    co_await until([&] { return channels.arrived(leader, Stream::own) != nullptr; });
    std::memcpy(&words, channels.arrived(leader, Stream::own), sizeof words);
    channels.take(leader, Stream::own);
    co_return;
  }
  for (int q = 1; q < h.local_ranks(); ++q) {
    co_await until([&] { return channels.arrived(q, Stream::own) != nullptr; });
    std::memcpy(&other, channels.arrived(q, Stream::own), sizeof other);
    channels.take(q, Stream::own);
    words &= other;
  }
  if (reach == AgreementScope::all) co_await disseminate(h, words);
  if (h.local_ranks() == 1) co_return;
  co_await until([&] { return channels.vacant(Stream::own); });
  std::memcpy(channels.slot(Stream::own), &words, sizeof words);
  channels.publish(Stream::own);
}

}  // namespace bestride
