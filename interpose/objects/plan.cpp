// SPDX-License-Identifier: Apache-2.0
#include "interpose/objects/plan.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "base/float_environment.hpp"
#include "base/message.hpp"
#include "datatype/build.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/mpi/quirks.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {
namespace {

/// Largest packed message, in bytes, of a type whose basic elements a fragment may split: a type of several basic
/// types, or of one wide basic type. A longer message of this kind is not packed by its sender
/// (quirks::unpack_fails_inside_elements).
constexpr std::int64_t split_limit = 4096;
/// The same between hosts: the smallest fragment of a UCX transport.
constexpr std::int64_t split_limit_between_hosts = 1024;

/// True if basic elements of `leaf_size` bytes (0: several sizes) are never split between fragments.
bool divides_fragments(std::int64_t leaf_size) noexcept {
  return !quirks::unpack_fails_inside_elements || (leaf_size != 0 && leaf_size <= 8);
}

}  // namespace

Plan::Plan(LayoutPtr layout, MPI_Datatype leaf, std::int64_t leaf_size, std::int64_t unit_bytes) noexcept
    : forward_only_(!layout || (layout->contiguous() && !can_respell(*layout, leaf, leaf_size))),
      layout_(std::move(layout)),
      leaf_(leaf),
      leaf_size_(leaf_size) {
  if (layout_) shape_ = Shape::of(*layout_, {unit_bytes, TypeRepresentation::leaf_of(leaf_size)});
}

Plan::~Plan() { delete packer_.load(std::memory_order_acquire); }

bool Plan::may_be_split(Distance distance) const noexcept {
  return !divides_fragments(leaf_size_) &&
         shape_.bytes > (distance == Distance::network ? split_limit_between_hosts : split_limit);
}

Plan::Possible Plan::possible(CallKind kind, Distance distance, Packing packing) const noexcept {
  if (!is_message(kind)) return {false, true};
  const RuntimeOptions& options = runtime().options();
  // Where the engine packs, nothing else does, not even what the engine can't: how UCX cuts a packed message depends on
  // its settings, and a receiver that unpacks by the library may then get a part of an element of any size (8 bytes
  // with UCX_MM_SEG_SIZE=1001, 16 with UCX_RNDV_THRESH=inf).
  const bool by_engine = runtime().has_engine() && distance != Distance::self;
  const bool pack = !contiguous() && shape_.bytes <= options.pack_limit && packing != Packing::never && !by_engine &&
                    !(is_sending(kind) && may_be_split(distance));
  return {can_respell(*layout_, leaf_, leaf_size_), pack};
}

Strategy Plan::choose_first(CallKind kind, Distance distance, Packing packing) noexcept {
  const FloatEnvironment floats;
  Strategy strategy = Strategy::forward;
  const RuntimeOptions& options = runtime().options();
  const bool left_alone =
      contiguous() && (shape_.bytes < runtime().respell_contiguous_from() || (!options.forced && !is_near(distance)));
  if (!forward_only_ && !left_alone) {
    const Possible can = possible(kind, distance, packing);
    if (options.forced) {
      if ((*options.forced == Strategy::respell && can.respell) || (*options.forced == Strategy::pack && can.pack))
        strategy = *options.forced;
    } else {
      strategy = runtime().chooser().choose(shape_, kind, distance, {can.respell, can.pack}).strategy;
    }
  }
  remember(kind, distance, packing, strategy);
  return strategy;
}

void Plan::remember(CallKind kind, Distance distance, Packing packing, Strategy strategy) noexcept {
  const auto store_at = [&](Distance at) {
    choice(kind, at, packing)
        .store(static_cast<std::uint8_t>(static_cast<int>(strategy) + 1), std::memory_order_relaxed);
  };
  store_at(distance);
  // Layouts with gaps are treated alike at all distances on a host (Chooser::choose).
  if (!contiguous() && without_processors(distance) == Distance::node)
    for (const Distance other : {Distance::cache, Distance::domain, Distance::socket, Distance::node}) store_at(other);
}

unsigned Plan::forwarded_at(CallKind kind) noexcept {
  unsigned distances = 0;
  for (int distance = 0; distance < distance_count; ++distance)
    if (choose(kind, static_cast<Distance>(distance)) == Strategy::forward) distances |= 1u << distance;
  return distances;
}

double Plan::saved_seconds(CallKind kind, Distance distance, Packing packing) noexcept {
  const FloatEnvironment floats;
  const Strategy taken = choose(kind, distance, packing);
  if (forward_only_ || taken == Strategy::forward) return 0;
  const Choice choice = runtime().chooser().choose(shape_, kind, distance, {true, true});
  return choice.seconds[static_cast<int>(Strategy::forward)] - choice.seconds[static_cast<int>(taken)];
}

const Respelled* Plan::wire(CallKind kind, Distance distance) noexcept {
  const RuntimeOptions& options = runtime().options();
  if (options.forced || runtime().chooser().contiguous_strategy(shape_.bytes, kind, distance) != Strategy::respell)
    return nullptr;
  if (is_sending(kind) && leaf_size_ != 0) return packed_send_.get(*this, nullptr, leaf_, leaf_size_);
  return packed_receive_.get(*this, nullptr, MPI_BYTE, 1);
}

const Packer* Plan::compile() noexcept {
  // Without a lock: the engine calls this within a lock of the MPI library (interpose/engine/).
  try {
    if (inject_failure(FailPoint::packer)) throw std::bad_alloc();
    auto made_now = std::make_unique<const Packer>(layout_, runtime().options().packer);
    const Packer* known = nullptr;
    if (!packer_.compare_exchange_strong(known, made_now.get(), std::memory_order_acq_rel)) return known;
    return made_now.release();
  } catch (...) {
    warn_once("packer", "no memory to compile a datatype; its calls are left to the MPI library");
    return nullptr;
  }
}

/// `layout`: nullptr means plan.bytes() contiguous bytes.
const Respelled* Plan::LazyRespelledType::make(Plan& plan, const LayoutPtr& layout, MPI_Datatype leaf,
                                               std::int64_t leaf_size) noexcept {
  const std::lock_guard lock(plan.mutex_);
  const int state = state_.load(std::memory_order_acquire);
  if (state != unknown) return state == made ? type_.get() : nullptr;
  try {
    if (layout)
      type_ = runtime().spelled.respelled(layout, leaf, leaf_size);
    else if (const Built block = make_block(0, plan.bytes()))
      type_ = runtime().spelled.respelled(intern(*block), leaf, leaf_size);
  } catch (...) {
  }
  state_.store(type_ ? made : impossible, std::memory_order_release);
  return type_.get();
}

}  // namespace bestride::inline interpose
