// SPDX-License-Identifier: Apache-2.0
// What a side does with device memory (sides.hpp).
#include <new>

#include "interpose/back/gpu/raise.hpp"
#include "interpose/back/sides.hpp"

namespace bestride {

TypeEntry* any_type(MPI_Datatype type) noexcept {
  if (TypeEntry* entry = known_type(type)) return entry;
  // Never destroyed: calls may come from other libraries' destructors.
  static TypeEntry* const unknown = new (std::nothrow) TypeEntry(MPI_DATATYPE_NULL, 0, false, TypeEntry::State::opaque);
  // Without a datatype there is nothing to move, and the error is MPI's.
  return type == MPI_DATATYPE_NULL ? nullptr : unknown;
}

int Side::raise() const noexcept { return bestride::raise(comm_); }

Side::OnGpu Side::prepare_on_gpu(const void* user, std::int64_t count, TypeEntry* type, int peer, MPI_Comm comm, std::int64_t largest) noexcept {
  const Place place = find_place(user, count, type);
  if (!place.by_gpu) return OnGpu::no;
  comm_ = comm;
  const auto refuse = [this](const Error& why) {
    say_not_moved(why);
    reason_ = "device memory";
    refused_ = true;
    return OnGpu::refused;
  };
  if (!place.layout) return refuse({"its datatype is not known, or can't be represented"});
  const Layout& layout = *place.layout;
  if (layout.contiguous() && gpu_aware()) {
    reason_ = "gpu-aware";
    return OnGpu::untouched;
  }
  const std::int64_t leaf = type->leaf_size() != 0 ? type->leaf_size() : 1;
  if (!layout.contiguous() && layout.size() / leaf > largest)
    return refuse({"a count of " + std::to_string(layout.size() / leaf) + " does not fit this call; the MPI_Count form (_c) takes it"});
  Result<StagingPtr> staging = Staging::make(place, const_cast<void*>(user), comm, {kind_, runtime().distance(comm, peer)});
  if (!staging) return refuse(staging.error());
  staging_ = std::move(*staging);
  strategy_ = Strategy::pack;
  if (layout.contiguous()) {
    // As it is, so that counts of any size and the status stay MPI's.
    handed_ = staging_->packed() - layout.offset();
    count_ = count;
    type_ = type->handle();
  } else {
    // Whole basic elements where there is but one kind: a fragment must not split one (plan.cpp). There is no leaving mixed ones to MPI.
    handed_ = staging_->packed();
    count_ = layout.size() / leaf;
    type_ = type->leaf_size() != 0 ? type->leaf() : MPI_BYTE;
  }
  return OnGpu::staged;
}

}  // namespace bestride
