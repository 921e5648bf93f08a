// SPDX-License-Identifier: Apache-2.0
#include "interpose/message/report_entry.hpp"

namespace bestride::inline interpose {

void record(CallId call, Plan* plan, Strategy strategy, const char* reason, double seconds) noexcept {
  TalliedCall tallied{name(call), name(strategy).data(), reason, {}, 0, seconds, 0};
  if (plan) {
    tallied.layout = plan->layout();
    tallied.bytes = plan->bytes();
  }
  if (strategy != Strategy::forward) tallied.reason = "";
  runtime().tally.add(tallied);
}

void record(CallId call, const Endpoint& endpoint, double seconds) noexcept {
  TalliedCall tallied{name(call), name(endpoint.strategy()).data(), endpoint.reason(), {}, 0, seconds, 0};
  if (const StagingPtr& staging = endpoint.staging()) {
    tallied.strategy = staging->method_name();
    tallied.layout = staging->layout_pointer();
    tallied.bytes = staging->size();
  } else if (Plan* plan = endpoint.plan()) {
    tallied.layout = plan->layout();
    tallied.bytes = plan->bytes();
    if (endpoint.served()) {
      tallied.strategy = "engine";
      const EngineSamples::Seconds packing = plan->engine_samples().seconds(tallied.bytes);
      tallied.engine_seconds = packing.own;
      tallied.saved_seconds = packing.library - packing.own;
    } else if (endpoint.strategy() != Strategy::forward && !runtime().options().forced)
      tallied.saved_seconds = plan->saved_seconds(endpoint.kind(), endpoint.distance(), endpoint.packing());
  }
  runtime().tally.add(tallied);
}

void record_device_buffer(const char* call_name, const char* strategy, const LayoutPtr& layout,
                          double seconds) noexcept {
  runtime().tally.add({call_name, strategy, "", layout, layout ? layout->size() : 0, seconds, 0});
}

void record_collective(const char* call_name, const char* variant, std::int64_t bytes, double seconds,
                       double saved_seconds) noexcept {
  runtime().tally.add({call_name, variant, "", {}, bytes, seconds, saved_seconds});
}

void record_cache(const CacheCounts& before, const CacheCounts& now) noexcept {
  runtime().tally.add(CacheSums{now.hits - before.hits, now.hit_bytes - before.hit_bytes, now.deltas - before.deltas,
                                now.delta_saved_bytes - before.delta_saved_bytes, now.misses - before.misses,
                                now.paused - before.paused});
}

void record_left(const char* call_name, const char* reason, std::int64_t bytes, double seconds) noexcept {
  runtime().tally.add({call_name, name(Strategy::forward).data(), reason, {}, bytes, seconds, 0});
}

void record_forwarded(CallId call, std::int64_t count, MPI_Datatype type) noexcept {
  TalliedCall tallied{name(call), name(Strategy::forward).data(), "", {}, 0, 0, 0};
  const TypeEntry* entry = runtime().types.find(type);
  tallied.reason = !entry                                           ? "predefined"
                   : entry->state() == TypeEntry::State::contiguous ? "contiguous"
                   : entry->state() == TypeEntry::State::opaque     ? "opaque"
                                                                    : "nothing to move";
  if (count > 0) tallied.bytes = count * runtime().types.size_of(type);
  runtime().tally.add(tallied);
}

}  // namespace bestride::inline interpose
