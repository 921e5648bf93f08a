// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plan: everything known about sending, receiving or packing `count` elements of one type: layout, shape, the choice
// per call kind and distance, the packer and the respelled type. Created once per (type, count), then read without a
// lock.
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "datatype/decode.hpp"
#include "interpose/objects/engine_samples.hpp"
#include "interpose/objects/respelled_types.hpp"
#include "kernels/packer.hpp"
#include "model/distance.hpp"
#include "perfmodel/host/shape.hpp"
#include "perfmodel/host/strategy.hpp"

namespace bestride::inline interpose {

/// Whether one endpoint of a call may be packed.
enum class Packing : std::uint8_t {
  possible,  ///< a sender: only messages that every receiver can handle (may_be_split)
  never,     ///< collectives: their members do not receive one message of one sender
};
inline constexpr int packing_count = 2;

class Plan {
 public:
  /// `layout`: of all elements; nullptr if it can't be represented, in which case MPI does everything. `leaf`: the only
  /// basic type, or MPI_DATATYPE_NULL with `leaf_size` 0 if there are several. `unit_bytes`: that of DecodedType.
  Plan(LayoutPtr layout, MPI_Datatype leaf, std::int64_t leaf_size, std::int64_t unit_bytes) noexcept;
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// True if no call gains by this plan: the layout is empty or opaque, or contiguous without a second spelling.
  bool forward_only() const noexcept { return forward_only_; }
  /// True if the layout is one block: nothing to pack, but a respelled type may be faster.
  bool contiguous() const noexcept { return layout_ && layout_->contiguous(); }
  std::int64_t bytes() const noexcept { return shape_.bytes; }
  const LayoutPtr& layout() const noexcept { return layout_; }
  const Shape& shape() const noexcept { return shape_; }

  /// The strategy for one endpoint of a call. A relaxed load after the first time.
  Strategy choose(CallKind kind, Distance distance, Packing packing = Packing::possible) noexcept {
    const std::uint8_t known = choice(kind, distance, packing).load(std::memory_order_relaxed);
    return known ? static_cast<Strategy>(known - 1) : choose_first(kind, distance, packing);
  }
  /// The distances at which forwarding is the choice for any peer: bit d stands for Distance d.
  unsigned forwarded_at(CallKind kind) noexcept;
  /// Time in seconds that choose() saved in one call, according to the model. For the report.
  double saved_seconds(CallKind kind, Distance distance, Packing packing) noexcept;
  /// True if a packed message of this plan could be split inside a basic element.
  bool may_be_split(Distance distance) const noexcept;

  /// The packer; nullptr if there is no memory for it. Compiled at the first call.
  const Packer* packer() noexcept {
    const Packer* known = packer_.load(std::memory_order_acquire);
    return known ? known : compile();
  }
  /// The respelled type; nullptr if it can't be created. Valid as long as the plan. The library receives into the
  /// application's contiguous type wherever a fragment ends, so the respelled type of such a receive is bytes, too.
  const Respelled* respelled(CallKind kind) noexcept {
    return contiguous() && !is_sending(kind) ? packed_receive_.get(*this, nullptr, MPI_BYTE, 1)
                                             : typed_.get(*this, layout_, leaf_, leaf_size_);
  }
  /// A type for packed bytes as one element with a larger extent, if that is faster than sending MPI_BYTE elements;
  /// else nullptr. The type of a send keeps its basic type, so that no fragment splits an element; the type of a
  /// receive is bytes, which can't be split.
  const Respelled* wire(CallKind kind, Distance distance) noexcept;
  EngineSamples& engine_samples() noexcept { return engine_samples_; }
  void hold() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void drop() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  /// A type from RespelledTypes, created at the first call that needs it.
  class LazyRespelledType {
   public:
    const Respelled* get(Plan& plan, const LayoutPtr& layout, MPI_Datatype leaf, std::int64_t leaf_size) noexcept {
      const int state = state_.load(std::memory_order_acquire);
      return state == made ? type_.get() : state == unknown ? make(plan, layout, leaf, leaf_size) : nullptr;
    }

   private:
    enum State : int { unknown, made, impossible };
    const Respelled* make(Plan& plan, const LayoutPtr& layout, MPI_Datatype leaf, std::int64_t leaf_size) noexcept;
    std::atomic<int> state_{unknown};
    RespelledTypeRef type_;
  };
  std::atomic<std::uint8_t>& choice(CallKind kind, Distance distance, Packing packing) noexcept {
    return choices_[static_cast<int>(kind)][static_cast<int>(distance)][static_cast<int>(packing)];
  }
  Strategy choose_first(CallKind kind, Distance distance, Packing packing) noexcept;
  /// Stores the choice for these arguments and for all others that must have the same.
  void remember(CallKind kind, Distance distance, Packing packing, Strategy strategy) noexcept;
  struct Possible {
    bool respell, pack;
  };
  Possible possible(CallKind kind, Distance distance, Packing packing) const noexcept;
  const Packer* compile() noexcept;

  // Members in the order of use: those that a packed message reads come first.
  std::atomic<std::uint32_t> references_{0};
  bool forward_only_;
  std::atomic<std::uint8_t> choices_[call_kind_count][distance_count][packing_count] = {};
  std::atomic<const Packer*> packer_{nullptr};
  LayoutPtr layout_;
  Shape shape_;
  MPI_Datatype leaf_;
  std::int64_t leaf_size_;
  LazyRespelledType typed_, packed_send_, packed_receive_;
  EngineSamples engine_samples_;
  std::mutex mutex_;
};

/// A reference to a Plan with an intrusive count. A copy costs an atomic addition; calls that are forwarded make none.
class PlanRef {
 public:
  PlanRef() = default;
  explicit PlanRef(Plan* plan) noexcept : plan_(plan) {
    if (plan_) plan_->hold();
  }
  PlanRef(const PlanRef& other) noexcept : PlanRef(other.plan_) {}
  PlanRef(PlanRef&& other) noexcept : plan_(std::exchange(other.plan_, nullptr)) {}
  PlanRef& operator=(PlanRef other) noexcept {
    std::swap(plan_, other.plan_);
    return *this;
  }
  ~PlanRef() {
    if (plan_) plan_->drop();
  }
  Plan* get() const noexcept { return plan_; }
  Plan* operator->() const noexcept { return plan_; }
  explicit operator bool() const noexcept { return plan_ != nullptr; }

 private:
  Plan* plan_ = nullptr;
};

}  // namespace bestride::inline interpose
