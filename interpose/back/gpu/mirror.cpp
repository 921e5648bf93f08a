// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/gpu/mirror.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "interpose/back/fail.hpp"
#include "interpose/back/gpu/together.hpp"
#include "interpose/back/runtime.hpp"
#include "kernels/cuda/device.hpp"

namespace bestride {
namespace {

/// From here on a span is mapped on its own: its gaps then are pages without memory, whatever the system's limits on promises.
constexpr std::int64_t mapped_from = std::int64_t{16} << 20;
constexpr std::int64_t line = 64;

}  // namespace

HostSpan::HostSpan(HostSpan&& other) noexcept
    : lease_(std::move(other.lease_)), data_(std::exchange(other.data_, nullptr)), mapped_(std::exchange(other.mapped_, 0)) {}

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
  if (fail_here(FailPoint::lease)) return false;
  if (bytes < mapped_from) {
    lease_ = Lease(runtime().pool, bytes);
    data_ = reinterpret_cast<char*>(lease_.data());
    return data_ != nullptr;
  }
  void* mapped = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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

Result<Mirror::Way> Mirror::make_way(const Place& place, void* user, MPI_Comm comm, CallKind kind,
                                     const std::shared_ptr<Room>& shared, std::int64_t at) {
  Way way;
  if (!place.layout) return way;
  Place there = place;
  // A part of the region that the CPU reaches, of which another is the device's: block by block, as memory of several kinds.
  if (!there.by_gpu) there.memory.kind = cuda::MemoryKind::mixed;
  Result<StagingPtr> staging = shared ? Staging::make(there, user, comm, {kind, Distance::node}, shared, at) : Staging::make_on_host(there, user, comm, kind);
  if (!staging) return staging.error();
  if (!shared) way.packer = std::make_unique<const Packer>(there.layout, runtime().options().packer);
  way.staging = std::move(*staging);
  return way;
}

Result<cuda::Done> Mirror::prepare(const Region& region, MPI_Comm comm) noexcept {
  try {
    auto* user = const_cast<void*>(region.user);
    // Where the bytes lie is asked for each way: MPI may read a part of what it writes.
    const auto place_of_some = [user](const LayoutPtr& layout) { return layout && layout->root() ? find_place(user, layout) : Place{}; };
    const Place reads = place_of_some(region.reads), writes = place_of_some(region.writes);
    const Layout* first = reads.layout ? reads.layout.get() : writes.layout.get();
    const Layout* second = writes.layout ? writes.layout.get() : first;
    if (!first) return Error{"the memory is gone"};
    const std::int64_t low = std::min(first->low(), second->low()), high = std::max(first->high(), second->high());
    // As far from a cache line's begin as the user's bytes, so that an operation finds its operands as aligned as before.
    const std::int64_t off = static_cast<std::int64_t>((reinterpret_cast<std::uintptr_t>(user) + static_cast<std::uintptr_t>(low)) % line);
    const std::int64_t bytes = high - low + off;
    std::shared_ptr<Room> room;
    char* memory = nullptr;
    const cuda::Memory& where = reads.layout ? reads.memory : writes.memory;
    if (first->contiguous() && second->contiguous() && where.kind == cuda::MemoryKind::device) {
      Result<cuda::DevicePtr> device = cuda::Device::of(where);
      if (!device) return device.error();
      room = Room::make(*device, bytes, false);
      if (room) memory = reinterpret_cast<char*>(room->data());
    } else if (span_.take(bytes)) {
      memory = span_.data();
    }
    if (!memory) return Error{"no memory for " + std::to_string(bytes) + " bytes of a collective"};
    for (const auto& [way, place] : {std::pair(&reads_, &reads), std::pair(&writes_, &writes)}) {
      const CallKind kind = way == &reads_ ? CallKind::isend : CallKind::irecv;
      Result<Way> made = make_way(*place, user, comm, kind, room, place->layout ? place->layout->low() - low + off : 0);
      if (!made) return made.error();
      *way = std::move(*made);
    }
    address_ = memory + off - low;
    return cuda::Done{};
  } catch (...) {
    return Error{"out of memory"};
  }
}

bool Mirror::bring_in() noexcept {
  if (!reads_.staging) return true;
  Together at_once;
  Together::move(reads_.staging, cuda::Direction::pack, 0, reads_.staging->size());
  if (at_once.conclude()) return false;
  if (reads_.packer) reads_.packer->unpack(address_, reads_.staging->packed());
  return true;
}

void Mirror::bring_out() noexcept {
  if (!writes_.staging) return;
  if (writes_.packer) writes_.packer->pack(writes_.staging->packed(), address_);
  Together::move(writes_.staging, cuda::Direction::unpack, 0, writes_.staging->size());
}

}  // namespace bestride
