// SPDX-License-Identifier: Apache-2.0
#include "interpose/message/device_pack.hpp"

#include <cstring>

#include "interpose/device/mpi_errors.hpp"
#include "interpose/device/transfer_batch.hpp"
#include "interpose/message/report_entry.hpp"
#include "interpose/objects/plan_cache.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {
namespace {

bool move_now(const StagingPtr& staging, Direction direction) noexcept {
  TransferBatch batch;
  TransferBatch::move(staging, direction, 0, staging->size());
  return !batch.flush();
}

/// True if kernels that can access the user's memory can access the packed bytes, too.
bool reached_by_one_kernel(const BufferLocation& user, const BufferLocation& packed) noexcept {
  switch (packed.memory.kind) {
    case cuda::MemoryKind::pinned: return packed.memory.to_device == 0;
    case cuda::MemoryKind::managed:
    case cuda::MemoryKind::device:
      return user.memory.kind != cuda::MemoryKind::mixed && packed.memory.context &&
             packed.memory.context_id == user.memory.context_id;
    default: return false;
  }
}

/// Moves between the user's buffer and the packed bytes on the CPU.
Result<cuda::Done> move_on_host(Direction direction, void* user, std::int64_t count, TypeEntry* type,
                                const Layout& layout, std::byte* packed) noexcept {
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

std::optional<int> pack_on_gpu(const char* call_name, Direction direction, void* user, std::int64_t count,
                               MPI_Datatype type, void* packed, std::int64_t packed_size, std::int64_t position,
                               MPI_Comm comm, std::int64_t* bytes) noexcept {
  TypeEntry* entry = find_or_add_type(type);
  const BufferLocation there = locate_buffer(user, count, entry);
  const auto refuse = [comm](const Error& why) {
    report_transfer_failure(why);
    return raise_error(comm);
  };
  if (!there.layout)
    return there.needs_device ? std::optional(refuse({"its datatype is not known, or can't be represented"}))
                              : std::nullopt;
  const TransferPurpose purpose{direction == Direction::pack ? CallKind::pack : CallKind::unpack, Distance::self};
  *bytes = there.layout->size();
  if (!packed || comm == MPI_COMM_NULL || *bytes == 0) return std::nullopt;
  std::byte* at = static_cast<std::byte*>(packed) + position;
  // MPI may not detect this in time (quirks::pack_overruns).
  if (position < 0 || position > packed_size || packed_size - position < *bytes)
    return there.needs_device || locate_buffer(packed, 1).needs_device
               ? std::optional(raise_error(comm, MPI_ERR_TRUNCATE))
               : std::nullopt;
  const BufferLocation here = locate_buffer(at, *bytes);
  if (!there.needs_device && !here.needs_device) return std::nullopt;
  const Stopwatch watch(reporting());
  // With device memory, the first call on a communicator can't be forwarded to MPI.
  runtime().comms.add_valid(comm);

  if (there.needs_device && reached_by_one_kernel(there, here)) {
    Result<StagingPtr> staging =
        Staging::make(there, user, comm, purpose, StagingBuffer::of(at, here.memory.kind == cuda::MemoryKind::device));
    if (!staging) return refuse(staging.error());
    if (!move_now(*staging, direction)) return raise_error(comm);
    if (reporting()) [[unlikely]]
      record_device_buffer(call_name, (*staging)->method_name(), there.layout, watch.seconds());
    return MPI_SUCCESS;
  }
  // Through a staging buffer: from one buffer into it, from there to the other.
  const Result<cuda::DevicePtr> device = cuda::Device::of(there.needs_device ? there.memory : here.memory);
  const std::shared_ptr<StagingBuffer> staging_buffer = StagingBuffer::make(device ? *device : nullptr, *bytes, false);
  if (!staging_buffer) return refuse({"no memory for " + std::to_string(*bytes) + " bytes"});
  const auto move_user = [&]() -> Result<cuda::Done> {
    if (!there.needs_device) return move_on_host(direction, user, count, entry, *there.layout, staging_buffer->data());
    Result<StagingPtr> staging = Staging::make(there, user, comm, purpose, staging_buffer);
    if (!staging) return staging.error();
    if (!move_now(*staging, direction)) return Error{"the copies failed"};
    return cuda::Done{};
  };
  const auto move_packed = [&]() -> Result<cuda::Done> {
    if (!here.needs_device) {
      const auto size = static_cast<std::size_t>(*bytes);
      direction == Direction::pack ? std::memcpy(at, staging_buffer->data(), size)
                                   : std::memcpy(staging_buffer->data(), at, size);
      return cuda::Done{};
    }
    Result<StagingPtr> staging = Staging::make(here, at, comm, purpose, staging_buffer);
    if (!staging) return staging.error();
    if (!move_now(*staging, direction == Direction::pack ? Direction::unpack : Direction::pack))
      return Error{"the copies failed"};
    return cuda::Done{};
  };
  Result<cuda::Done> ok = direction == Direction::pack ? move_user() : move_packed();
  if (ok) ok = direction == Direction::pack ? move_packed() : move_user();
  if (!ok) return refuse(ok.error());
  if (reporting()) [[unlikely]]
    record_device_buffer(call_name, "relayed", there.layout, watch.seconds());
  return MPI_SUCCESS;
}

}  // namespace bestride::inline interpose
