// SPDX-License-Identifier: Apache-2.0
#include "interpose/message/endpoint.hpp"

#include <algorithm>

#include "base/message.hpp"
#include "datatype/build.hpp"
#include "interpose/device/transfer_batch.hpp"
#include "interpose/message/paranoid.hpp"
#include "interpose/objects/plan_cache.hpp"

namespace bestride::inline interpose {

bool Endpoint::prepare(CallKind kind, const void* user, std::int64_t count, TypeEntry* type, int peer, MPI_Comm comm,
                       std::int64_t largest, CallTraits traits) noexcept {
  const auto forward_because = [this](const char* why) {
    reason_ = why;
    return false;
  };
  kind_ = traits.blocks_alone ? kind : in_exchange(kind);
  if (count <= 0 || peer == MPI_PROC_NULL) return forward_because("nothing to move");
  if (gpu_runtime_detected()) [[unlikely]] {
    const DeviceDecision answer = prepare_device(user, count, type, peer, comm, largest);
    if (answer != DeviceDecision::no) return answer == DeviceDecision::staged;
    if (type->forward_only() && count < type->respell_from())
      return forward_because(type->state() == TypeEntry::State::opaque ? "opaque" : "contiguous");
  }
  Plan* plan = find_plan(*type, count);
  if (!plan)
    return forward_because(type->state() == TypeEntry::State::opaque ? "opaque"
                           : type->forward_only()                    ? "contiguous"
                                                                     : "first use");
  plan_ = PlanRef(plan);
  if (plan->forward_only()) return forward_because(plan->layout() ? "contiguous" : "opaque");
  if (!address_is_plausible(user, *plan->layout())) return forward_because("address");
  distance_ = runtime().distance(comm, peer);
  // What a rank sends to itself is copied by the library.
  if (traits.engine && type->served() && distance_ != Distance::self) {
    constexpr unsigned others = TypeEntry::everywhere & ~(1u << static_cast<int>(Distance::self));
    if (!runtime().options().reporting) type->leave(count, kind_, others);
    served_ = true;
    return false;
  }
  if (!traits.packing)
    packing_ = Packing::never;
  else if (traits.relies_on_announcements && is_sending(kind) && plan->may_be_split(distance_) &&
           runtime().receives_packed(comm, peer))
    packing_ = Packing::agreed;
  const Strategy strategy = plan->choose(kind_, distance_, packing_);
  user_ = const_cast<void*>(user);
  switch (strategy) {
    case Strategy::forward:
      if (!runtime().options().reporting) type->leave(count, kind_, plan->forwarded_at(kind_));
      return forward_because(runtime().options().forced                       ? "forced"
                             : plan->bytes() > runtime().options().pack_limit ? "size"
                                                                              : "model");
    case Strategy::respell: {
      const Respelled* spelled = traits.allows_respelling ? plan->respelled() : nullptr;
      if (!spelled) return forward_because("not respellable");
      if (spelled->count > largest) return forward_because("count");
      mpi_buffer_ = static_cast<std::byte*>(user_) + plan->layout()->offset();
      count_ = spelled->count;
      type_ = spelled->type;
      break;
    }
    case Strategy::pack: {
      if (plan->bytes() > largest) return forward_because("count");
      packer_ = plan->packer();
      if (!packer_) return forward_because("memory");
      lease_ = BufferLease(runtime().pool, plan->bytes());
      if (!lease_) {
        warn_once("lease", "no memory for a packing buffer of %lld bytes; such messages are left to the MPI library",
                  static_cast<long long>(plan->bytes()));
        return forward_because("memory");
      }
      mpi_buffer_ = lease_.data();
      count_ = plan->bytes();
      type_ = MPI_BYTE;
      if (const Respelled* wire = traits.allows_respelling ? plan->wire(kind_, distance_) : nullptr) {
        count_ = wire->count;
        type_ = wire->type;
      }
      user_type_ = type->handle();
      user_type_id_ = type->id();
      user_count_ = count;
      break;
    }
  }
  strategy_ = strategy;
  return true;
}

MPI_Datatype Endpoint::user_type() const noexcept {
  const TypeEntry* now = runtime().types.find(user_type_);
  return now && now->id() == user_type_id_ ? user_type_ : MPI_DATATYPE_NULL;
}

void SendEndpoint::fill() noexcept {
  if (!packs()) return;
  if (staging_) return TransferBatch::move(staging_, Direction::pack, 0, staging_->size());
  packer_->pack(lease_.data(), user_);
  if (runtime().options().paranoid) check_packed(lease_.data(), packer_->size(), user_, user_count_, user_type());
}

bool ReceiveEndpoint::prepare(void* user, std::int64_t count, TypeEntry* type, int peer, MPI_Comm comm,
                              std::int64_t largest, CallTraits traits) noexcept {
  if (Endpoint::prepare(CallKind::receive, user, count, type, peer, comm, largest, traits)) return true;
  if (!traits.relies_on_announcements || !traits.packing || !traits.allows_respelling || peer == MPI_PROC_NULL ||
      failed() || !may_split_elements(count, *type)) [[likely]]
    return false;
  if (type->state() == TypeEntry::State::opaque) return receive_opaque_type(user, count, *type, comm, largest);
  return receive_as_bytes(user, type->layout(count), largest);
}

bool ReceiveEndpoint::receive_without_completion(void* user, std::int64_t count, TypeEntry* type,
                                                 std::int64_t largest) noexcept {
  forward_because("memory");
  return !failed() && may_split_elements(count, *type) && type->state() != TypeEntry::State::opaque &&
         receive_as_bytes(user, type->layout(count), largest);
}

bool ReceiveEndpoint::may_split_elements(std::int64_t count, TypeEntry& type) const noexcept {
  if (!runtime().promises_to_receive_packed()) return false;
  TypeEntry::State state = type.state();
  int size = 0;
  std::int64_t bytes = 0;
  if (state == TypeEntry::State::undecoded || state == TypeEntry::State::opaque) {
    if (type.handle() == MPI_DATATYPE_NULL || datatype_calls.size(type.handle(), &size) != MPI_SUCCESS || size == 0)
      return false;
    if (size > 0 && !__builtin_mul_overflow(std::int64_t{size}, count, &bytes) && bytes <= Plan::never_split)
      return false;
    if (type.never_divided()) return false;
    state = type.decoded_state();
    if (state == TypeEntry::State::opaque) return true;
  }
  // The library puts fragments of a contiguous type at the right addresses.
  return state == TypeEntry::State::useful && !Plan::divides_fragments(type.leaf_size(), Distance::network) &&
         (__builtin_mul_overflow(type.size(), count, &bytes) || bytes > Plan::never_split);
}

bool ReceiveEndpoint::receive_as_bytes(void* user, const LayoutPtr& layout, std::int64_t largest) noexcept {
  if (!layout || !address_is_plausible(user, *layout)) return false;
  if (layout->contiguous() && layout->size() <= largest) {
    count_ = layout->size();
    type_ = MPI_BYTE;
  } else {
    respelled_ = runtime().spelled.as_bytes(layout);
    const Respelled* spelled = respelled_.get();
    if (!spelled || spelled->count > largest) return false;
    count_ = spelled->count;
    type_ = spelled->type;
  }
  user_ = user;
  mpi_buffer_ = static_cast<std::byte*>(user) + layout->offset();
  strategy_ = Strategy::respell;
  reason_ = "";
  return true;
}

bool ReceiveEndpoint::receive_opaque_type(void* user, std::int64_t count, TypeEntry& type, MPI_Comm comm,
                                          std::int64_t largest) noexcept {
  int size = 0;
  std::int64_t bytes = 0;
  if (datatype_calls.size(type.handle(), &size) != MPI_SUCCESS || size <= 0 ||
      __builtin_mul_overflow(std::int64_t{size}, count, &bytes))
    return false;
  lease_ = BufferLease(runtime().pool, bytes);
  if (!lease_ || !opaque_.open(type.handle(), size, comm != MPI_COMM_NULL ? comm : MPI_COMM_SELF)) return false;
  count_ = bytes;
  type_ = MPI_BYTE;
  if (bytes > largest) {
    try {
      if (const Built block = make_block(0, bytes)) respelled_ = runtime().spelled.as_bytes(intern(*block));
    } catch (...) {
    }
    if (!respelled_) return false;
    count_ = respelled_.get()->count;
    type_ = respelled_.get()->type;
  }
  user_ = user;
  mpi_buffer_ = lease_.data();
  strategy_ = Strategy::pack;
  reason_ = "";
  return true;
}

void ReceiveEndpoint::fill() noexcept {
  if (staging_) return TransferBatch::move(staging_, Direction::pack, 0, staging_->size());
  if (packs()) packer_->pack(lease_.data(), user_);
}

void ReceiveEndpoint::complete(const MPI_Status& status) noexcept {
  if (!packs()) return;
  int cancelled = 0;
  MPI_Count arrived = 0;
  if (real.Test_cancelled(&status, &cancelled) != MPI_SUCCESS || cancelled) return;
  if (real.Get_elements_x(&status, MPI_BYTE, &arrived) != MPI_SUCCESS || arrived <= 0) return;
  if (staging_)
    return TransferBatch::move(staging_, Direction::unpack, 0, std::min<std::int64_t>(arrived, staging_->size()));
  if (opaque_) return opaque_.unpack(reinterpret_cast<const std::byte*>(lease_.data()), arrived, user_);
  if (arrived >= packer_->size()) return complete_whole();
  packer_->unpack_range(user_, lease_.data(), 0, arrived);
}

void ReceiveEndpoint::complete_whole() noexcept {
  if (!packs()) return;
  if (staging_) return TransferBatch::move(staging_, Direction::unpack, 0, staging_->size());
  packer_->unpack(user_, lease_.data());
  if (runtime().options().paranoid) check_unpacked(lease_.data(), packer_->size(), user_, user_count_, user_type());
}

}  // namespace bestride::inline interpose
