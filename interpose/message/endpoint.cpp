// SPDX-License-Identifier: Apache-2.0
#include "interpose/message/endpoint.hpp"

#include <algorithm>

#include "base/message.hpp"
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
  if (!traits.packing) packing_ = Packing::never;
  // A rank that moves device memory sends several basic types as bytes (device_endpoint.cpp).
  const bool may_get_bytes = gpu_runtime_detected() && !is_sending(kind_) && traits.packing && !plan->contiguous() &&
                             plan->may_be_split(Distance::network) && !runtime().options().forced;
  const Strategy strategy = may_get_bytes ? Strategy::pack : plan->choose(kind_, distance_, packing_);
  user_ = const_cast<void*>(user);
  switch (strategy) {
    case Strategy::forward:
      if (!runtime().options().reporting) type->leave(count, kind_, plan->forwarded_at(kind_));
      return forward_because(runtime().options().forced                       ? "forced"
                             : plan->bytes() > runtime().options().pack_limit ? "size"
                                                                              : "model");
    case Strategy::respell: {
      const Respelled* spelled = traits.allows_respelling ? plan->respelled(kind) : nullptr;
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
