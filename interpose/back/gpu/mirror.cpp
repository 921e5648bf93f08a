// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/gpu/mirror.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "interpose/back/fail.hpp"
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

Result<cuda::Done> Mirror::prepare(const Region& region) noexcept {
  try {
    user_ = const_cast<void*>(region.user);
    // Where the bytes lie is asked for each way: MPI may read a block of what it writes.
    if (region.reads) reads_ = find_place(user_, region.reads);
    if (region.writes) writes_ = find_place(user_, region.writes);
    const Layout* reads = region.reads && region.reads->root() ? region.reads.get() : nullptr;
    const Layout* writes = region.writes && region.writes->root() ? region.writes.get() : nullptr;
    if (!reads && !writes) return Error{"nothing to mirror"};
    const std::int64_t low = std::min((reads ? reads : writes)->low(), (writes ? writes : reads)->low());
    const std::int64_t high = std::max((reads ? reads : writes)->high(), (writes ? writes : reads)->high());
    // As far from a cache line's begin as the user's bytes, so that an operation finds its operands as aligned as before.
    const std::int64_t off = static_cast<std::int64_t>((reinterpret_cast<std::uintptr_t>(user_) + static_cast<std::uintptr_t>(low)) % line);
    const std::int64_t bytes = high - low + off;
    const bool one_copy = (!reads || reads->contiguous()) && (!writes || writes->contiguous());
    char* memory = nullptr;
    if (one_copy)
      if (Result<cuda::DevicePtr> device = cuda::Device::of((reads ? reads_ : writes_).memory))
        if (Result<cuda::Buffer> pinned = (*device)->pinned(bytes)) {
          pinned_ = std::move(*pinned);
          memory = static_cast<char*>(pinned_.data());
        }
    if (!memory) {
      if (!span_.take(bytes)) return Error{"no memory for a copy of " + std::to_string(bytes) + " bytes in host memory"};
      memory = span_.data();
    }
    address_ = memory + off - low;
    return cuda::Done{};
  } catch (...) {
    return Error{"out of memory"};
  }
}

Result<cuda::Done> Mirror::bring_in() noexcept {
  return address_ && reads_.layout ? copy_to_host(reads_, user_, address_) : Result<cuda::Done>(cuda::Done{});
}

Result<cuda::Done> Mirror::bring_out() noexcept {
  return address_ && writes_.layout ? copy_to_device(writes_, user_, address_) : Result<cuda::Done>(cuda::Done{});
}

}  // namespace bestride
