// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/gpu/packing.hpp"

#include <cstring>

#include "interpose/back/gpu/raise.hpp"
#include "interpose/back/gpu/together.hpp"
#include "interpose/back/note.hpp"
#include "interpose/back/runtime.hpp"
#include "interpose/back/thread_cache.hpp"

namespace bestride {
namespace {

using cuda::Direction;

bool move_now(const StagingPtr& staging, Direction direction) noexcept {
  Together together;
  Together::move(staging, direction, 0, staging->size());
  return !together.conclude();
}

/// Kernels that reach the user's memory reach the packed bytes, too.
bool reached_together(const Place& user, const Place& packed) noexcept {
  switch (packed.memory.kind) {
    case cuda::MemoryKind::pinned: return packed.memory.to_device == 0;
    case cuda::MemoryKind::managed:
    case cuda::MemoryKind::device: return user.memory.kind != cuda::MemoryKind::mixed && packed.memory.context && packed.memory.context_id == user.memory.context_id;
    default: return false;
  }
}

/// The user's side, on the CPU.
Result<cuda::Done> move_on_host(Direction direction, void* user, std::int64_t count, TypeEntry* type, const Layout& layout, std::byte* packed) noexcept {
  if (layout.contiguous()) {
    std::byte* first = static_cast<std::byte*>(user) + layout.offset();
    const auto bytes = static_cast<std::size_t>(layout.size());
    direction == Direction::pack ? std::memcpy(packed, first, bytes) : std::memcpy(first, packed, bytes);
    return cuda::Done{};
  }
  Plan* plan = find_plan(*type, count);
  const Packer* packer = plan ? plan->packer() : nullptr;
  if (!packer) return Error{"no memory to pack a datatype"};
  direction == Direction::pack ? packer->pack(packed, user) : packer->unpack(user, packed);
  return cuda::Done{};
}

}  // namespace

std::optional<int> pack_on_gpu(const char* call_name, Direction direction, void* user, std::int64_t count, MPI_Datatype type, void* packed, std::int64_t packed_size,
                               std::int64_t position, MPI_Comm comm, std::int64_t* bytes) noexcept {
  TypeEntry* entry = known_type(type);
  const Place there = find_place(user, count, entry);
  const auto refuse = [comm](const Error& why) {
    say_not_moved(why);
    return raise(comm);
  };
  if (!there.layout) return there.by_gpu ? std::optional(refuse({"its datatype is not known, or can't be represented"})) : std::nullopt;
  const Errand errand{direction == Direction::pack ? CallKind::pack : CallKind::unpack, Distance::self};
  *bytes = there.layout->size();
  if (!packed || comm == MPI_COMM_NULL || *bytes == 0) return std::nullopt;
  std::byte* at = static_cast<std::byte*>(packed) + position;
  // MPI may find this out while it touches the bytes, or not at all (MPICH 4.0.2).
  if (position < 0 || position > packed_size || packed_size - position < *bytes)
    return there.by_gpu || find_place(packed, 1).by_gpu ? std::optional(raise(comm, MPI_ERR_TRUNCATE)) : std::nullopt;
  const Place here = find_place(at, *bytes);
  if (!there.by_gpu && !here.by_gpu) return std::nullopt;
  const Stopwatch watch(reporting());
  // With device memory there is no leaving the first call on a communicator to MPI.
  runtime().comms.note(comm);

  if (there.by_gpu && reached_together(there, here)) {
    Result<StagingPtr> staging = Staging::make(there, user, comm, errand, Room::of(at, here.memory.kind == cuda::MemoryKind::device));
    if (!staging) return refuse(staging.error());
    if (!move_now(*staging, direction)) return raise(comm);
    if (reporting()) [[unlikely]] note_moved(call_name, (*staging)->way_text(), there.layout, watch.seconds());
    return MPI_SUCCESS;
  }
  // By way of a room: from the one side into it, from there to the other.
  const Result<cuda::DevicePtr> device = cuda::Device::of(there.by_gpu ? there.memory : here.memory);
  const std::shared_ptr<Room> room = Room::make(device ? *device : nullptr, *bytes, false);
  if (!room) return refuse({"no memory for " + std::to_string(*bytes) + " bytes"});
  const auto move_user = [&]() -> Result<cuda::Done> {
    if (!there.by_gpu) return move_on_host(direction, user, count, entry, *there.layout, room->data());
    Result<StagingPtr> staging = Staging::make(there, user, comm, errand, room);
    if (!staging) return staging.error();
    if (!move_now(*staging, direction)) return Error{"the copies failed"};
    return cuda::Done{};
  };
  const auto move_packed = [&]() -> Result<cuda::Done> {
    if (!here.by_gpu) {
      const auto size = static_cast<std::size_t>(*bytes);
      direction == Direction::pack ? std::memcpy(at, room->data(), size) : std::memcpy(room->data(), at, size);
      return cuda::Done{};
    }
    Result<StagingPtr> staging = Staging::make(here, at, comm, errand, room);
    if (!staging) return staging.error();
    if (!move_now(*staging, direction == Direction::pack ? Direction::unpack : Direction::pack)) return Error{"the copies failed"};
    return cuda::Done{};
  };
  Result<cuda::Done> ok = direction == Direction::pack ? move_user() : move_packed();
  if (ok) ok = direction == Direction::pack ? move_packed() : move_user();
  if (!ok) return refuse(ok.error());
  if (reporting()) [[unlikely]] note_moved(call_name, "relayed", there.layout, watch.seconds());
  return MPI_SUCCESS;
}

}  // namespace bestride
