// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/sides.hpp"

#include <algorithm>

#include "base/message.hpp"
#include "interpose/back/gpu/together.hpp"
#include "interpose/back/paranoid.hpp"
#include "interpose/back/thread_cache.hpp"

namespace bestride {

bool Side::prepare(CallKind kind, const void* user, std::int64_t count, TypeEntry* type, int peer, MPI_Comm comm,
                   std::int64_t largest, Manner manner) noexcept {
  const auto leave = [this](const char* why) {
    reason_ = why;
    return false;
  };
  kind_ = manner.alone ? kind : in_exchange(kind);
  if (count <= 0 || peer == MPI_PROC_NULL) return leave("nothing to move");
  if (gpu_in_play()) [[unlikely]] {
    const OnGpu answer = prepare_on_gpu(user, count, type, peer, comm, largest);
    if (answer != OnGpu::no) return answer == OnGpu::staged;
    if (type->leave_alone() && count < type->respell_from()) return leave(type->state() == TypeEntry::State::opaque ? "opaque" : "contiguous");
  }
  Plan* plan = find_plan(*type, count);
  if (!plan) return leave(type->state() == TypeEntry::State::opaque ? "opaque" : type->leave_alone() ? "contiguous" : "first use");
  plan_ = PlanRef(plan);
  if (plan->leave_alone()) return leave(plan->layout() ? "contiguous" : "opaque");
  if (!address_is_sound(user, *plan->layout())) return leave("address");
  distance_ = runtime().distance(comm, peer);
  if (!manner.packing)
    packing_ = Packing::never;
  else if (manner.trusting && is_sending(kind) && plan->may_be_split(distance_) && runtime().packs_too(comm, peer))
    packing_ = Packing::agreed;
  const Strategy strategy = plan->choose(kind_, distance_, packing_);
  user_ = const_cast<void*>(user);
  switch (strategy) {
    case Strategy::forward:
      if (!runtime().options().reporting) type->leave(count, kind_, plan->left_at(kind_));
      return leave(runtime().options().forced ? "forced" : plan->bytes() > runtime().options().pack_limit ? "size" : "model");
    case Strategy::respell: {
      const Respelled* spelled = manner.spelling ? plan->respelled() : nullptr;
      if (!spelled) return leave("no spelling");
      if (spelled->count > largest) return leave("count");
      handed_ = static_cast<std::byte*>(user_) + plan->layout()->offset();
      count_ = spelled->count;
      type_ = spelled->type;
      break;
    }
    case Strategy::pack: {
      if (plan->bytes() > largest) return leave("count");
      packer_ = plan->packer();
      if (!packer_) return leave("memory");
      lease_ = Lease(runtime().pool, plan->bytes());
      if (!lease_) {
        say_once("lease", "no memory for a packing buffer of %lld bytes; such messages are left to the MPI library",
                 static_cast<long long>(plan->bytes()));
        return leave("memory");
      }
      handed_ = lease_.data();
      count_ = plan->bytes();
      type_ = MPI_BYTE;
      if (const Respelled* wire = manner.spelling ? plan->wire(kind_, distance_) : nullptr) {
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

MPI_Datatype Side::user_type() const noexcept {
  const TypeEntry* now = runtime().types.find(user_type_);
  return now && now->id() == user_type_id_ ? user_type_ : MPI_DATATYPE_NULL;
}

void Outgoing::fill() noexcept {
  if (!packs()) return;
  if (staging_) return Together::move(staging_, cuda::Direction::pack, 0, staging_->size());
  packer_->pack(lease_.data(), user_);
  if (runtime().options().paranoid) check_packed(lease_.data(), packer_->size(), user_, user_count_, user_type());
}

void Incoming::fill() noexcept {
  if (staging_) return Together::move(staging_, cuda::Direction::pack, 0, staging_->size());
  if (packs()) packer_->pack(lease_.data(), user_);
}

void Incoming::settle(const MPI_Status& status) noexcept {
  if (!packs()) return;
  int cancelled = 0;
  MPI_Count arrived = 0;
  if (real.Test_cancelled(&status, &cancelled) != MPI_SUCCESS || cancelled) return;
  if (real.Get_elements_x(&status, MPI_BYTE, &arrived) != MPI_SUCCESS || arrived <= 0) return;
  if (staging_) return Together::move(staging_, cuda::Direction::unpack, 0, std::min<std::int64_t>(arrived, staging_->size()));
  if (arrived >= packer_->size()) return settle_whole();
  packer_->unpack_range(user_, lease_.data(), 0, arrived);
}

void Incoming::settle_whole() noexcept {
  if (!packs()) return;
  if (staging_) return Together::move(staging_, cuda::Direction::unpack, 0, staging_->size());
  packer_->unpack(user_, lease_.data());
  if (runtime().options().paranoid) check_unpacked(lease_.data(), packer_->size(), user_, user_count_, user_type());
}

}  // namespace bestride
