// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plan: everything known about sending, receiving or packing `count` elements of one type: layout, shape, the choice per call
// kind and distance, the packer and the respelled type. Made once per (type, count), then read without a lock.
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "datatype/decode.hpp"
#include "datatype/respell.hpp"
#include "kernels/packer.hpp"
#include "model/distance.hpp"
#include "perfmodel/shape.hpp"
#include "perfmodel/strategy.hpp"

namespace bestride {

/// How far one side of a call may be packed.
enum class Packing : std::uint8_t {
  careful,  ///< a sender: only what no receiver can trip over (may_be_split)
  agreed,   ///< the receiver is known to receive packed what may be split
  never,    ///< collectives: what their members receive is not one message of one sender
};
inline constexpr int packing_count = 3;

class Plan {
 public:
  /// `layout` of all elements; nullptr: can't be represented, MPI does it. `leaf`: the one basic type, or MPI_DATATYPE_NULL with
  /// `leaf_size` 0. `unit_bytes`: as DecodedType's.
  Plan(LayoutPtr layout, MPI_Datatype leaf, std::int64_t leaf_size, std::int64_t unit_bytes) noexcept;
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// True if no call gains by this plan: empty or opaque; contiguous without a second spelling.
  bool leave_alone() const noexcept { return leave_alone_; }
  /// One block: nothing to pack, but there may be a faster spelling.
  bool contiguous() const noexcept { return layout_ && layout_->contiguous(); }
  std::int64_t bytes() const noexcept { return shape_.bytes; }
  const LayoutPtr& layout() const noexcept { return layout_; }
  const Shape& shape() const noexcept { return shape_; }

  /// The strategy for one side of a call. A relaxed load after the first time.
  Strategy choose(CallKind kind, Distance distance, Packing packing = Packing::careful) noexcept {
    const std::uint8_t known = choice(kind, distance, packing).load(std::memory_order_relaxed);
    return known ? static_cast<Strategy>(known - 1) : choose_first(kind, distance, packing);
  }
  /// At which distances forwarding is the choice whatever the peer: bit d is Distance d.
  unsigned left_at(CallKind kind) noexcept;
  /// What the model says choose() saved in one call, in seconds. For the report.
  double saved_seconds(CallKind kind, Distance distance, Packing packing) noexcept;
  /// A packed message of this could be cut inside a basic element.
  bool may_be_split(Distance distance) const noexcept;

  /// nullptr if there is no memory for it. Compiled at the first call.
  const Packer* packer() noexcept {
    const Packer* known = packer_.load(std::memory_order_acquire);
    return known ? known : compile();
  }
  /// nullptr if it can't be made. Owned by the plan.
  const Respelled* respelled() noexcept { return typed_.get(*this, layout_, leaf_, leaf_size_); }
  /// The packed bytes as one element with a larger extent, where that is faster than as bytes; else nullptr. What is sent keeps
  /// its basic type, so that no fragment splits an element; what is received is bytes, which can't be split.
  const Respelled* wire(CallKind kind, Distance distance) noexcept;
  /// Frees the respelled type: the application freed its own, or MPI is about to end. Operations under way keep theirs, and
  /// the packer stays for what they owe.
  void retire() noexcept;

  void hold() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void drop() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  /// A respelled type, made at the first call that needs it.
  class Spelled {
   public:
    const Respelled* get(Plan& plan, const LayoutPtr& layout, MPI_Datatype leaf, std::int64_t leaf_size) noexcept {
      const int state = state_.load(std::memory_order_acquire);
      return state == made ? &respelled_ : state == unknown ? make(plan, layout, leaf, leaf_size) : nullptr;
    }
    /// The plan's mutex is held.
    void retire() noexcept;

   private:
    enum State : int { unknown, made, impossible };
    const Respelled* make(Plan& plan, const LayoutPtr& layout, MPI_Datatype leaf, std::int64_t leaf_size) noexcept;
    std::atomic<int> state_{unknown};
    std::uint32_t life_ = 0;  ///< of MPI, in which it was made
    Respelled respelled_;
  };
  std::atomic<std::uint8_t>& choice(CallKind kind, Distance distance, Packing packing) noexcept {
    return choices_[static_cast<int>(kind)][static_cast<int>(distance)][static_cast<int>(packing)];
  }
  Strategy choose_first(CallKind kind, Distance distance, Packing packing) noexcept;
  struct Possible {
    bool respell, pack;
  };
  Possible possible(CallKind kind, Distance distance, Packing packing) const noexcept;
  const Packer* compile() noexcept;

  // In the order of use: what a packed message reads comes first.
  std::atomic<std::uint32_t> references_{0};
  bool leave_alone_;
  std::atomic<std::uint8_t> choices_[call_kind_count][distance_count][packing_count] = {};
  std::atomic<const Packer*> packer_{nullptr};
  LayoutPtr layout_;
  Shape shape_;
  MPI_Datatype leaf_;
  std::int64_t leaf_size_;
  Spelled typed_, packed_send_, packed_receive_;
  std::mutex mutex_;
};

/// Intrusive: copying one costs an atomic addition, and none is made for calls that are forwarded.
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

}  // namespace bestride
