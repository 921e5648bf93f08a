// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_cuda/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <string>

namespace fake {
namespace {

constexpr std::size_t range = std::size_t{64} << 30;
constexpr std::size_t grain = 512;
constexpr std::size_t page = 4096;
/// What a fresh allocation holds, so that bytes nobody wrote are seen.
constexpr int fresh = 0xA5;
constexpr std::size_t filled = std::size_t{1} << 20;

struct Memory {
  std::map<Address, Allocation> live;
  Address base = 0;  ///< of the range programs see
  std::ptrdiff_t alias = 0;
  int file = -1;  ///< of the bytes, so that other processes can map them
  Memory() {
    // Reserved only: pages come when they are written.
    file = memfd_create("fake_cuda", MFD_CLOEXEC);
    void* seen = mmap(nullptr, range, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (file < 0 || ftruncate(file, static_cast<off_t>(range)) != 0 || seen == MAP_FAILED) return;
    void* bytes = mmap(nullptr, range, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (bytes == MAP_FAILED) return;
    base = reinterpret_cast<Address>(seen);
    alias = static_cast<char*>(bytes) - static_cast<char*>(seen);
  }
  bool device_range(Address address) const { return base != 0 && address >= base && address < base + range; }
  unsigned char* bytes(Address address) const {
    return reinterpret_cast<unsigned char*>(address) + (device_range(address) ? alias : 0);
  }
};
Memory& memory() {
  static Memory* const all = new Memory;
  return *all;
}

/// The lowest gap: so that a freed address is given out again at once, as drivers do.
Address lowest_gap(const Memory& m, std::size_t size) {
  Address at = m.base + grain;
  for (auto it = m.live.lower_bound(m.base); it != m.live.end() && m.device_range(it->first); ++it) {
    if (it->first - at >= size + grain) return at;
    at = (it->first + it->second.size + grain - 1) / grain * grain + grain;  // a grain between: overruns are seen
  }
  return at + size <= m.base + range ? at : 0;
}

/// The pages of an allocation's bytes from a file instead of what is there.
bool map_pages(const Memory& m, const Allocation& of, int file, std::uint64_t offset) {
  const Address first = of.base - of.base % page;
  void* const bytes = m.bytes(first);
  return mmap(bytes, of.base + of.size - first, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file,
              static_cast<off_t>(offset)) == bytes;
}

void forget(Memory& m, std::map<Address, Allocation>::iterator it) {
  const Allocation& gone = it->second;
  if (gone.kind == Kind::pinned || gone.kind == Kind::managed)
    munmap(reinterpret_cast<void*>(gone.base), gone.size);
  else if (gone.kind == Kind::shared)
    map_pages(m, gone, m.file, gone.base - gone.base % page - m.base);
  else if (gone.kind != Kind::registered)
    std::memset(m.bytes(gone.base), 0xDD, std::min(gone.size, filled));
  if (gone.context) --state().live;
  m.live.erase(it);
}

}  // namespace

std::shared_mutex& memory_mutex() {
  static auto* const mutex = new std::shared_mutex;
  return *mutex;
}

Code allocate(Kind kind, std::size_t size, Context* context, int device, Address* address) {
  if (size == 0) return code::invalid_value;
  const std::unique_lock lock(memory_mutex());
  Memory& m = memory();
  Address at = 0;
  if (kind == Kind::device || kind == Kind::pooled) {
    at = lowest_gap(m, size);
    if (at == 0) return code::out_of_memory;
    std::memset(m.bytes(at), fresh, std::min(size, filled));
  } else {
    void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return code::out_of_memory;
    at = reinterpret_cast<Address>(mapped);
    std::memset(mapped, fresh, std::min(size, filled));
  }
  Allocation made;
  made.kind = kind;
  made.base = at;
  made.size = size;
  made.context = kind == Kind::pooled ? nullptr : context;
  made.device = device;
  made.buffer_id = state().next_id++;
  m.live.emplace(at, made);
  if (made.context) ++state().live;
  *address = at;
  return code::success;
}

Code share(Address address, Shared* what) {
  const std::shared_lock lock(memory_mutex());
  const Allocation* found = allocation_at(address);
  if (!found || found->kind != Kind::device) return code::invalid_value;
  *what = {getpid(), memory().file, found->base - memory().base, found->size};
  return code::success;
}

Code map_shared(const Shared& what, Context* context, Address* address) {
  if (what.process == getpid()) return code::invalid_context;  // as the driver
  const std::string path = "/proc/" + std::to_string(what.process) + "/fd/" + std::to_string(what.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return code::invalid_value;
  const std::unique_lock lock(memory_mutex());
  Memory& m = memory();
  // Whole pages of its own, in which it begins where it does in its owner's.
  const std::uint64_t begin = what.offset % page;
  const Address gap = lowest_gap(m, what.size + 3 * page);
  Allocation made;
  made.kind = Kind::shared;
  made.base = (gap + page - 1) / page * page + begin;
  made.size = what.size;
  made.context = context;
  made.device = context->device;
  made.buffer_id = state().next_id++;
  const bool mapped = gap != 0 && map_pages(m, made, file, what.offset - begin);
  close(file);
  if (!mapped) return code::out_of_memory;
  // Nothing else may come to lie in its last page.
  made.size = (begin + what.size + page - 1) / page * page - begin;
  m.live.emplace(made.base, made);
  ++state().live;
  *address = made.base;
  return code::success;
}

Code register_host(Address address, std::size_t size, Context* context) {
  const std::unique_lock lock(memory_mutex());
  Memory& m = memory();
  if (m.device_range(address) || allocation_at(address) || size == 0) return code::invalid_value;
  Allocation made;
  made.kind = Kind::registered;
  made.base = address;
  made.size = size;
  made.context = context;
  made.device = context->device;
  made.buffer_id = state().next_id++;
  m.live.emplace(address, made);
  ++state().live;
  return code::success;
}

Code release(Address address, unsigned kinds) {
  const std::unique_lock lock(memory_mutex());
  Memory& m = memory();
  const auto it = m.live.find(address);
  if (it == m.live.end() || !(kinds >> static_cast<int>(it->second.kind) & 1)) return code::invalid_value;
  forget(m, it);
  return code::success;
}

void free_all_of(Context* context) {
  const std::unique_lock lock(memory_mutex());
  Memory& m = memory();
  for (auto it = m.live.begin(); it != m.live.end();) {
    const auto next = std::next(it);
    if (it->second.context == context ||
        (context->primary && it->second.kind == Kind::pooled && it->second.device == context->device))
      forget(m, it);
    it = next;
  }
}

Allocation* allocation_at(Address address) {
  Memory& m = memory();
  auto it = m.live.upper_bound(address);
  if (it == m.live.begin()) return nullptr;
  --it;
  return address - it->first < it->second.size ? &it->second : nullptr;
}

unsigned char* reach(Address address, std::size_t size, const Context* context, const Allocation** hint) {
  const Allocation* found = *hint;
  if (!found || address < found->base || address - found->base >= found->size) found = *hint = allocation_at(address);
  if (!found || found->size - (address - found->base) < size) return nullptr;
  if ((found->kind == Kind::device || found->kind == Kind::shared) && found->context != context)
    return nullptr;  // no peer access
  if (found->kind == Kind::pooled && found->device != context->device) return nullptr;
  return memory().bytes(address);
}

unsigned char* reach_for_copy(Address address, std::size_t size, const Context* context) {
  if (!memory().device_range(address)) return reinterpret_cast<unsigned char*>(address);
  const Allocation* hint = nullptr;
  return reach(address, size, context, &hint);
}

}  // namespace fake
