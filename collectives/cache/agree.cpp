// SPDX-License-Identifier: Apache-2.0
#include "collectives/cache/agree.hpp"

#include <cstring>

namespace bestride::inline collectives {
namespace {

constexpr std::int64_t words_bytes = sizeof(AgreedWords);

Task disseminate(Hierarchy& h, AgreedWords& words) {
  const auto first_rank = [&h](int node) { return h.topology().ranks_on(node)[0]; };
  std::byte* out = h.staging();
  std::byte* in = h.staging() + words_bytes;
  for (int distance = 1; distance < h.nodes(); distance *= 2) {
    std::memcpy(out, &words, sizeof words);
    Transfer received =
        h.transport().receive(first_rank((h.node() + h.nodes() - distance) % h.nodes()), in, words_bytes);
    Transfer sent = h.transport().send(first_rank((h.node() + distance) % h.nodes()), out, words_bytes);
    co_await until([&] { return h.transport().done(received); });
    co_await until([&] { return h.transport().done(sent); });
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
    co_await until([&] { return channels.vacant(ChannelKind::own); });
    std::memcpy(channels.slot(ChannelKind::own), &words, sizeof words);
    channels.publish(ChannelKind::own, leader);
    for (int q = 0; q < h.local_ranks(); ++q)
      if (q != leader && q != h.local_rank()) channels.skip(q, ChannelKind::own);
    co_await until([&] { return channels.arrived(leader, ChannelKind::own) != nullptr; });
    std::memcpy(&words, channels.arrived(leader, ChannelKind::own), sizeof words);
    channels.take(leader, ChannelKind::own);
    co_return;
  }
  for (int q = 1; q < h.local_ranks(); ++q) {
    co_await until([&] { return channels.arrived(q, ChannelKind::own) != nullptr; });
    std::memcpy(&other, channels.arrived(q, ChannelKind::own), sizeof other);
    channels.take(q, ChannelKind::own);
    words &= other;
  }
  if (reach == AgreementScope::all) co_await disseminate(h, words);
  if (h.local_ranks() == 1) co_return;
  co_await until([&] { return channels.vacant(ChannelKind::own); });
  std::memcpy(channels.slot(ChannelKind::own), &words, sizeof words);
  channels.publish(ChannelKind::own);
}

}  // namespace bestride::inline collectives
