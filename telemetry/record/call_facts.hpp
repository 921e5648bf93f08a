// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the writer of a record knows of a call when it begins, besides the time. The members are those of CallRecord.
#include <cstdint>

#include "telemetry/record/layout.hpp"

namespace bestride::inline telemetry {

struct CallFacts {
  std::uint16_t function = no_function;
  std::uint16_t operation = 0;
  std::uint32_t communicator = no_index;
  std::int32_t peer = no_rank;
  std::int32_t tag = no_tag;
  std::int32_t second_peer = no_rank;
  std::int32_t second_tag = no_tag;
  std::uint64_t bytes = 0;
  std::uint32_t ordinal = 0;
  std::uint32_t site = no_index;
};

[[gnu::always_inline]] inline void write_facts(CallRecord& call, const CallFacts& facts) noexcept {
  store_pair(call.function, facts.function | std::uint32_t{facts.operation} << 16, facts.communicator);
  store_pair(call.peer, static_cast<std::uint32_t>(facts.peer), static_cast<std::uint32_t>(facts.tag));
  store_pair(call.second_peer, static_cast<std::uint32_t>(facts.second_peer),
             static_cast<std::uint32_t>(facts.second_tag));
  call.bytes.set(facts.bytes);
  store_pair(call.ordinal, facts.ordinal, facts.site);
}

}  // namespace bestride::inline telemetry
