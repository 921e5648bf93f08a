// SPDX-License-Identifier: Apache-2.0
#include "interpose/device/host_shadow.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "interpose/device/transfer_batch.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/objects/runtime.hpp"
#include "kernels/cuda/device/device.hpp"

namespace bestride::inline interpose {
namespace {

/// A span of at least this many bytes is mapped separately: pages in its gaps take no memory, and the system's
/// overcommit limits do not apply.
constexpr std::int64_t mapped_from = std::int64_t{16} << 20;
constexpr std::int64_t line = 64;

}  // namespace

HostSpan::HostSpan(HostSpan&& other) noexcept
    : lease_(std::move(other.lease_)),
      data_(std::exchange(other.data_, nullptr)),
      mapped_(std::exchange(other.mapped_, 0)) {}

HostSpan& HostSpan::operator=(HostSpan&& other) noexcept {
  if (this != &other) {
    release();
    lease_ = std::move(other.lease_);
    data_ = std::exchange(other.data_, nullptr);
    mapped_ = std::exchange(other.mapped_, 0);
  }
  return *this;
}

bool HostSpan::take(std::int64_t bytes) noexcept {
  release();
  if (inject_failure(FailPoint::lease)) return false;
  if (bytes < mapped_from) {
    lease_ = BufferLease(runtime().pool, bytes);
    data_ = reinterpret_cast<char*>(lease_.data());
    return data_ != nullptr;
  }
  void* mapped = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return false;
  data_ = static_cast<char*>(mapped);
  mapped_ = static_cast<std::size_t>(bytes);
  return true;
}

void HostSpan::release() noexcept {
  if (mapped_ != 0) munmap(data_, mapped_);
  lease_.release();
  data_ = nullptr;
  mapped_ = 0;
}

Result<HostShadow::ShadowDirection> HostShadow::make_direction(const BufferLocation& location, void* user,
                                                               MPI_Comm comm, CallKind kind,
                                                               const std::shared_ptr<StagingBuffer>& shared,
                                                               std::int64_t at) {
  ShadowDirection direction;
  if (!location.layout) return direction;
  BufferLocation there = location;
  // This part of the region is in host memory while the other part is in device memory: it is moved block by block, as
  // memory of mixed kinds.
  if (!there.needs_device) there.memory.kind = cuda::MemoryKind::mixed;
  Result<StagingPtr> staging = shared ? Staging::make(there, user, comm, {kind, Distance::node}, shared, at)
                                      : Staging::make_on_host(there, user, comm, kind);
  if (!staging) return staging.error();
  if (!shared) direction.packer = std::make_unique<const Packer>(there.layout, runtime().options().packer);
  direction.staging = std::move(*staging);
  return direction;
}

Result<cuda::Done> HostShadow::prepare(const BufferRegion& region, MPI_Comm comm) noexcept {
  try {
    auto* user = const_cast<void*>(region.user);
    // The location is determined for each direction, because MPI may read only a part of what it writes.
    const auto place_of_some = [user](const LayoutPtr& layout) {
      return layout && layout->root() ? locate_buffer(user, layout) : BufferLocation{};
    };
    const BufferLocation reads = place_of_some(region.reads), writes = place_of_some(region.writes);
    const Layout* first = reads.layout ? reads.layout.get() : writes.layout.get();
    const Layout* second = writes.layout ? writes.layout.get() : first;
    if (!first) return Error{"the memory is gone"};
    const std::int64_t low = std::min(first->low(), second->low()), high = std::max(first->high(), second->high());
    // Keep the offset from the start of a cache line, so that an operation finds its operands with the same alignment.
    const std::int64_t off =
        static_cast<std::int64_t>((reinterpret_cast<std::uintptr_t>(user) + static_cast<std::uintptr_t>(low)) % line);
    const std::int64_t bytes = high - low + off;
    std::shared_ptr<StagingBuffer> staging_buffer;
    char* memory = nullptr;
    const cuda::Memory& where = reads.layout ? reads.memory : writes.memory;
    if (first->contiguous() && second->contiguous() && where.kind == cuda::MemoryKind::device) {
      Result<cuda::DevicePtr> device = cuda::Device::of(where);
      if (!device) return device.error();
      staging_buffer = StagingBuffer::make(*device, bytes, false);
      if (staging_buffer) memory = reinterpret_cast<char*>(staging_buffer->data());
    } else if (span_.take(bytes)) {
      memory = span_.data();
    }
    if (!memory) return Error{"no memory for " + std::to_string(bytes) + " bytes of a collective"};
    for (const auto& [direction, location] : {std::pair(&reads_, &reads), std::pair(&writes_, &writes)}) {
      const CallKind kind = direction == &reads_ ? CallKind::isend : CallKind::irecv;
      Result<ShadowDirection> made = make_direction(*location, user, comm, kind, staging_buffer,
                                                    location->layout ? location->layout->low() - low + off : 0);
      if (!made) return made.error();
      *direction = std::move(*made);
    }
    address_ = memory + off - low;
    return cuda::Done{};
  } catch (...) {
    return Error{"out of memory"};
  }
}

bool HostShadow::copy_in() noexcept {
  if (!reads_.staging) return true;
  TransferBatch at_once;
  TransferBatch::move(reads_.staging, Direction::pack, 0, reads_.staging->size());
  if (at_once.flush()) return false;
  if (reads_.packer) reads_.packer->unpack(address_, reads_.staging->packed());
  return true;
}

void HostShadow::copy_out() noexcept {
  if (!writes_.staging) return;
  if (writes_.packer) writes_.packer->pack(writes_.staging->packed(), address_);
  TransferBatch::move(writes_.staging, Direction::unpack, 0, writes_.staging->size());
}

}  // namespace bestride::inline interpose
