// SPDX-License-Identifier: Apache-2.0
#pragma once
// Allocations of the stand-in driver. Device memory has two addresses: programs see one in a range without access
// rights; the bytes lie at the same offset of a second range, which kernels and copies use.
#include <shared_mutex>

#include "tests/fake_cuda/state.hpp"

namespace fake {

enum class Kind : std::uint8_t {
  device,
  pooled,
  pinned,
  registered,
  managed,
  shared
};  // shared: another process' device memory

struct Allocation {
  Kind kind = Kind::device;
  Address base = 0;
  std::size_t size = 0;
  Context* context = nullptr;  ///< null: pooled
  int device = 0;
  std::uint64_t buffer_id = 0;
  int preferred = -2;  ///< managed: as cuMemRangeGetAttribute says
  int last_prefetch = -2;
};

/// Held shared while work runs, alone while allocations change.
std::shared_mutex& memory_mutex();

Code allocate(Kind kind, std::size_t size, Context* context, int device, Address* address);
/// `registered`: existing host memory.
Code register_host(Address address, std::size_t size, Context* context);
/// Frees the allocation that begins at `address`, if it is of one of the kinds (bits 1 << kind).
Code release(Address address, unsigned kinds);
void free_all_of(Context* context);

/// What another process of this machine needs to map a device allocation.
struct Shared {
  int process = 0;
  int file = 0;
  std::uint64_t offset = 0;  ///< of the allocation, in the file
  std::uint64_t size = 0;
};
Code share(Address address, Shared* what);
/// Maps it into `context`; released as Kind::shared.
Code map_shared(const Shared& what, Context* context, Address* address);

/// The allocation that holds an address, or null. Under memory_mutex.
Allocation* allocation_at(Address address);

/// Where the bytes of [address, address + size) are for work of `context`; null if they are not all in one allocation
/// it reaches. `hint`: the last answer, to begin with. Under memory_mutex.
unsigned char* reach(Address address, std::size_t size, const Context* context, const Allocation** hint);
/// For copies: also ordinary host memory, which is anything outside the device range.
unsigned char* reach_for_copy(Address address, std::size_t size, const Context* context);

}  // namespace fake
