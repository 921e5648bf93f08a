// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/note.hpp"

namespace bestride {

void note(CallId call, Plan* plan, CallKind kind, Strategy strategy, const char* reason, double seconds) noexcept {
  Deed deed{name(call), name(strategy).data(), reason, {}, 0, seconds, 0};
  if (plan) {
    deed.layout = plan->layout();
    deed.bytes = plan->bytes();
  }
  if (strategy != Strategy::forward) deed.reason = "";
  runtime().tally.add(deed);
  (void)kind;
}

void note(CallId call, const Side& side, double seconds) noexcept {
  Deed deed{name(call), name(side.strategy()).data(), side.reason(), {}, 0, seconds, 0};
  if (const StagingPtr& staging = side.staging()) {
    deed.strategy = staging->way_text();
    deed.layout = staging->layout_pointer();
    deed.bytes = staging->size();
  } else if (Plan* plan = side.plan()) {
    deed.layout = plan->layout();
    deed.bytes = plan->bytes();
    if (side.strategy() != Strategy::forward && !runtime().options().forced)
      deed.saved_seconds = plan->saved_seconds(side.kind(), side.distance(), side.packing());
  }
  runtime().tally.add(deed);
}

void note_moved(const char* call_name, const char* strategy, const LayoutPtr& layout, double seconds) noexcept {
  runtime().tally.add({call_name, strategy, "", layout, layout ? layout->size() : 0, seconds, 0});
}

void note_spread(const char* call_name, const char* way, std::int64_t bytes, double seconds, double saved_seconds) noexcept {
  runtime().tally.add({call_name, way, "", {}, bytes, seconds, saved_seconds});
}

void note_cache(const CacheCounts& before, const CacheCounts& now) noexcept {
  runtime().tally.add(CacheSums{now.hits - before.hits, now.hit_bytes - before.hit_bytes, now.deltas - before.deltas,
                                now.delta_saved_bytes - before.delta_saved_bytes, now.misses - before.misses, now.paused - before.paused});
}

void note_left_alone(CallId call, std::int64_t count, MPI_Datatype type) noexcept {
  Deed deed{name(call), name(Strategy::forward).data(), "", {}, 0, 0, 0};
  const TypeEntry* entry = runtime().types.find(type);
  deed.reason = !entry                                            ? "predefined"
                : entry->state() == TypeEntry::State::contiguous ? "contiguous"
                : entry->state() == TypeEntry::State::opaque     ? "opaque"
                                                                 : "nothing to move";
  int size = 0;
  if (count > 0 && type != MPI_DATATYPE_NULL && entry && real.Type_size(type, &size) == MPI_SUCCESS && size > 0)
    deed.bytes = count * size;
  runtime().tally.add(deed);
}

}  // namespace bestride
