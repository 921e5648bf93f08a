// SPDX-License-Identifier: Apache-2.0
// Endpoints with device memory (endpoint.hpp).
#include <cstddef>
#include <new>

#include "interpose/device/mpi_errors.hpp"
#include "interpose/message/endpoint.hpp"

namespace bestride::inline interpose {

TypeEntry* type_entry_or_opaque(MPI_Datatype type) noexcept {
  if (TypeEntry* entry = find_or_add_type(type)) return entry;
  // Also without memory for an entry. Never destroyed: calls may come from destructors of other libraries.
  alignas(TypeEntry) static std::byte place[sizeof(TypeEntry)];
  static TypeEntry* const unknown = ::new (static_cast<void*>(place))
      TypeEntry(MPI_DATATYPE_NULL, 0, TypeEntry::Life::permanent, nullptr, TypeEntry::State::opaque);
  // Without a datatype there is nothing to move, and MPI reports the error.
  return type == MPI_DATATYPE_NULL ? nullptr : unknown;
}

int Endpoint::raise_error() const { return bestride::raise_error(comm_); }

Endpoint::DeviceDecision Endpoint::prepare_device(const void* user, std::int64_t count, TypeEntry* type, int peer,
                                                  MPI_Comm comm, std::int64_t largest) noexcept {
  const BufferLocation location = locate_buffer(user, count, type);
  if (!location.needs_device) return DeviceDecision::no;
  comm_ = comm;
  const auto refuse = [this](const Error& why) {
    report_transfer_failure(why);
    reason_ = "device memory";
    failed_ = true;
    return DeviceDecision::failed;
  };
  if (!location.layout) return refuse({"its datatype is not known, or can't be represented"});
  const Layout& layout = *location.layout;
  if (layout.contiguous() && gpu_aware()) {
    reason_ = "gpu-aware";
    return DeviceDecision::untouched;
  }
  const std::int64_t leaf = type->leaf_size() != 0 ? type->leaf_size() : 1;
  if (!layout.contiguous() && layout.size() / leaf > largest)
    return refuse({"a count of " + std::to_string(layout.size() / leaf) +
                   " does not fit this call; the MPI_Count form (_c) takes it"});
  Result<StagingPtr> staging =
      Staging::make(location, const_cast<void*>(user), comm, {kind_, runtime().distance(comm, peer)});
  if (!staging) return refuse(staging.error());
  staging_ = std::move(*staging);
  strategy_ = Strategy::pack;
  if (layout.contiguous()) {
    // With the user's own type, so that MPI itself handles counts of any size and the status.
    mpi_buffer_ = staging_->packed() - layout.offset();
    count_ = count;
    type_ = type->handle();
  } else {
    // In units of the basic type if there is only one: a fragment must not split a basic element
    // (interpose/objects/plan.cpp). Messages with several basic types are sent as bytes, because they can't be left to
    // MPI.
    mpi_buffer_ = staging_->packed();
    count_ = layout.size() / leaf;
    type_ = type->leaf_size() != 0 ? type->leaf() : MPI_BYTE;
  }
  return DeviceDecision::staged;
}

}  // namespace bestride::inline interpose
