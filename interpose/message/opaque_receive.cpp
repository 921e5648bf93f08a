// SPDX-License-Identifier: Apache-2.0
#include "interpose/message/opaque_receive.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "base/message.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {

OpaqueReceive::OpaqueReceive(OpaqueReceive&& other) noexcept { *this = std::move(other); }

OpaqueReceive& OpaqueReceive::operator=(OpaqueReceive&& other) noexcept {
  std::swap(type_, other.type_);
  std::swap(element_bytes_, other.element_bytes_);
  std::swap(extent_, other.extent_);
  std::swap(comm_, other.comm_);
  return *this;
}

OpaqueReceive::~OpaqueReceive() {
  if (type_ != MPI_DATATYPE_NULL && !runtime().ended()) real.Type_free(&type_);
}

bool OpaqueReceive::open(MPI_Datatype type, std::int64_t element_bytes, MPI_Comm comm) noexcept {
  MPI_Aint lower = 0;
  if (element_bytes <= 0 || element_bytes > INT_MAX || real.Type_get_extent(type, &lower, &extent_) != MPI_SUCCESS)
    return false;
  if (real.Type_dup(type, &type_) != MPI_SUCCESS) return false;
  element_bytes_ = element_bytes;
  comm_ = comm;
  return true;
}

void OpaqueReceive::unpack(const std::byte* packed, std::int64_t arrived, void* user) const noexcept {
  auto* to = static_cast<std::byte*>(user);
  const std::int64_t whole = arrived / element_bytes_, at_once = std::max<std::int64_t>(1, INT_MAX / element_bytes_);
  for (std::int64_t first = 0; first < whole; first += at_once) {
    const auto count = static_cast<int>(std::min(at_once, whole - first));
    int at = 0;
    real.Unpack(packed + first * element_bytes_, static_cast<int>(count * element_bytes_), &at, to + first * extent_,
                count, type_, comm_);
  }
  const std::int64_t rest = arrived - whole * element_bytes_;
  if (rest == 0) return;
  // MPI_Unpack accepts only whole elements. The rest of the last element is filled with its present values.
  std::unique_ptr<std::byte[]> last(new (std::nothrow) std::byte[static_cast<std::size_t>(element_bytes_)]);
  int at = 0;
  if (!last || real.Pack(to + whole * extent_, 1, type_, last.get(), static_cast<int>(element_bytes_), &at, comm_) !=
                   MPI_SUCCESS)
    return warn_once("opaque", "no memory for a part of an element that was received; it is lost");
  std::memcpy(last.get(), packed + whole * element_bytes_, static_cast<std::size_t>(rest));
  at = 0;
  real.Unpack(last.get(), static_cast<int>(element_bytes_), &at, to + whole * extent_, 1, type_, comm_);
}

}  // namespace bestride::inline interpose
