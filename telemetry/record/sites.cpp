// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/sites.hpp"

#include <elf.h>
#include <link.h>
#include <unwind.h>

#include <cstdio>
#include <cstring>

#include "telemetry/record/mapped_libraries.hpp"

namespace bestride::inline telemetry {
namespace {

/// Of the frames of the MPI library's layers, in bytes.
constexpr std::uint64_t most_distance = 64 << 10;

/// The loaded object that contains an address.
struct Module {
  std::uint64_t address;  ///< looked for
  std::uint64_t load_address = 0;
  const char* path = nullptr;  ///< "" is the program
  const unsigned char* build_id = nullptr;
  std::uint32_t build_id_bytes = 0;
};

void find_build_id(const dl_phdr_info& info, Module& module) noexcept {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const unsigned char*>(info.dlpi_addr + header.p_vaddr);
    const auto* const end = at + header.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const unsigned char* const name = at + sizeof note;
      const unsigned char* const content = name + (note.n_namesz + 3) / 4 * 4;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
        module.build_id = content;
        module.build_id_bytes = note.n_descsz < 20 ? note.n_descsz : 20;
        return;
      }
      at = content + (note.n_descsz + 3) / 4 * 4;
    }
  }
}

int contains(dl_phdr_info* info, std::size_t, void* wanted) noexcept {
  Module& module = *static_cast<Module*>(wanted);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const std::uint64_t begin = info->dlpi_addr + header.p_vaddr;
    if (header.p_type != PT_LOAD || module.address < begin || module.address >= begin + header.p_memsz) continue;
    module.load_address = info->dlpi_addr;
    module.path = info->dlpi_name;
    find_build_id(*info, module);
    return 1;
  }
  return 0;
}

bool is_in_mpi_library(std::uint64_t address) noexcept {
  Module module{.address = address};
  return dl_iterate_phdr(contains, &module) && module.path && is_mpi_library(module.path);
}

struct Outer {
  const char* const frame;  ///< of the call whose program is looked for
  std::uint32_t distance = 0;
};

/// Ends at the first frame above `frame` that is not in the MPI library.
_Unwind_Reason_Code look_for_program(_Unwind_Context* context, void* outer) noexcept {
  Outer& found = *static_cast<Outer*>(outer);
  // The stack pointer in this frame: its callee's return address lies right below it.
  const char* const top = reinterpret_cast<const char*>(_Unwind_GetCFA(context));
  if (top <= found.frame || is_in_mpi_library(_Unwind_GetIP(context))) return _URC_NO_REASON;
  std::uint64_t stored;
  std::memcpy(&stored, top - sizeof stored, sizeof stored);
  const auto distance = static_cast<std::uint64_t>(top - sizeof stored - found.frame);
  if (stored == _Unwind_GetIP(context) && distance < most_distance)
    found.distance = static_cast<std::uint32_t>(distance);
  return _URC_END_OF_STACK;
}

/// How far above caller.frame the return address from the MPI library into the program lies; 0: not known.
std::uint32_t distance_to_program([[maybe_unused]] const SiteTable::Caller& caller) noexcept {
#if defined(__x86_64__)
  Outer outer{static_cast<const char*>(caller.frame)};
  _Unwind_Backtrace(look_for_program, &outer);
  return outer.distance;
#else
  return 0;  // return addresses are not at a fixed place in their frames
#endif
}

struct Stack {
  static constexpr unsigned most = 64;
  std::uint64_t addresses[most];
  unsigned size = 0;
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* to) noexcept {
  Stack& stack = *static_cast<Stack*>(to);
  int before_instruction = 0;
  const std::uint64_t address = _Unwind_GetIPInfo(context, &before_instruction);
  if (address == 0 || stack.size == Stack::most) return _URC_END_OF_STACK;
  stack.addresses[stack.size++] = before_instruction ? address : address - 1;  // the call, not what follows it
  return _URC_NO_REASON;
}

}  // namespace

void SiteTable::add_time(SiteRecord& record, std::uint64_t ticks) noexcept {
  if (ticks == 0) return;
  record.ticks.add(ticks);
  if (ticks > record.most_ticks.get()) record.most_ticks.set(ticks);
  record.histogram[duration_class(ticks)].add(1);
}

std::uint64_t SiteTable::program_address(const Caller& caller) const noexcept {
  const auto address = reinterpret_cast<std::uint64_t>(caller.return_address);
  for (unsigned i = hash(address);; i = (i + 1) % slots) {
    const std::uint64_t key = table_[i].key.load(std::memory_order_acquire);
    if (key != address && key != 0) continue;
    const std::uint32_t distance = key == 0 ? 0 : table_[i].distance.load(std::memory_order_acquire);
    if (distance == 0) return address;
    std::uint64_t outer;
    std::memcpy(&outer, static_cast<const char*>(caller.frame) + distance, sizeof outer);
    return outer;
  }
}

std::uint32_t SiteTable::module_of(std::uint64_t address, std::uint64_t* load_address) noexcept {
  Module module{.address = address};
  if (!dl_iterate_phdr(contains, &module)) return no_index;
  *load_address = module.load_address;
  const std::uint32_t used = file_.header.modules.get();
  for (std::uint32_t i = 0; i < used; ++i)
    if (file_.modules[i].load_address == module.load_address &&
        std::memcmp(file_.modules[i].build_id, module.build_id ? module.build_id : file_.modules[i].build_id,
                    module.build_id_bytes) == 0)
      return i;
  if (used == max_modules) return no_index;
  ModuleRecord& record = file_.modules[used];
  record.load_address = module.load_address;
  record.build_id_bytes = module.build_id_bytes;
  if (module.build_id) std::memcpy(record.build_id, module.build_id, module.build_id_bytes);
  const char* const path = *module.path ? module.path : file_.header.executable;
  const std::size_t length = std::strlen(path);
  std::snprintf(record.path, sizeof record.path, "%s",
                length < sizeof record.path ? path : path + (length - sizeof record.path + 1));
  file_.header.modules.atomic().store(used + 1, std::memory_order_release);
  return used;
}

std::uint32_t SiteTable::frame_of_stack() noexcept {
  Stack stack;
  _Unwind_Backtrace(add_frame, &stack);
  std::uint32_t frame = no_index;
  // From the outermost frame, so that stacks with the same callers share their frames.
  for (unsigned i = stack.size; i-- > 0;) {
    std::uint64_t load_address = 0;
    const std::uint32_t module = module_of(stack.addresses[i], &load_address);
    if (load_address == skipped_ && module != no_index) continue;
    const std::uint64_t address = stack.addresses[i] - load_address;
    const std::uint32_t used = file_.header.frames.get();
    std::uint32_t found = 0;
    while (found < used && (file_.frames[found].address != address || file_.frames[found].module != module ||
                            file_.frames[found].caller != frame))
      ++found;
    if (found == used) {
      if (used == max_frames) return frame;
      file_.frames[used].address = address;
      file_.frames[used].module = module;
      file_.frames[used].caller = frame;
      file_.header.frames.atomic().store(used + 1, std::memory_order_release);
    }
    frame = found;
  }
  return frame;
}

std::uint32_t SiteTable::make_site(std::uint64_t address, std::uint16_t function) noexcept {
  const std::uint32_t used = file_.header.sites.get();
  if (used == max_sites) {
    file_.header.sites_dropped.add(1);
    return no_index;
  }
  SiteRecord& site = file_.sites[used];
  std::uint64_t load_address = 0;
  const std::uint32_t module = module_of(address - 1, &load_address);
  site.address.set(address - 1 - load_address);
  site.module.set(static_cast<std::uint16_t>(module));
  site.function.set(function);
  site.frame.set(frame_of_stack());
  file_.header.sites.atomic().store(used + 1, std::memory_order_release);
  return used;
}

std::uint32_t SiteTable::insert(std::uint64_t address, std::uint16_t function, std::uint32_t distance) noexcept {
  unsigned i = hash(address);
  for (; table_[i].key.load(std::memory_order_relaxed) != 0; i = (i + 1) % slots)
    if (table_[i].key.load(std::memory_order_relaxed) == address) return table_[i].value;
  if (entries_ == 2 * max_sites) {  // the table stays at most half full
    file_.header.sites_dropped.add(1);
    return no_index;
  }
  ++entries_;
  table_[i].value = distance == 0 ? make_site(address, function) : no_index;
  table_[i].distance.store(distance, std::memory_order_relaxed);
  table_[i].key.store(address, std::memory_order_release);
  return table_[i].value;
}

std::uint32_t SiteTable::add(const Caller& caller, std::uint16_t function) noexcept {
  const auto address = reinterpret_cast<std::uint64_t>(caller.return_address);
  const std::uint32_t distance = is_in_mpi_library(address) ? distance_to_program(caller) : 0;
  {
    const std::lock_guard lock(mutex_);
    if (const std::uint32_t site = insert(address, function, distance); distance == 0) return site;
  }
  return find_outer(caller, distance, function);
}

std::uint32_t SiteTable::find_outer(const Caller& caller, std::uint32_t distance, std::uint16_t function) noexcept {
  std::uint64_t address;
  std::memcpy(&address, static_cast<const char*>(caller.frame) + distance, sizeof address);
  for (unsigned i = hash(address);; i = (i + 1) % slots) {
    const std::uint64_t key = table_[i].key.load(std::memory_order_acquire);
    if (key == address) return table_[i].value;
    if (key != 0) continue;
    const bool fixed = distance_to_program(caller) == distance;
    const std::lock_guard lock(mutex_);
    return fixed ? insert(address, function, 0)
                 : give_up_outer(reinterpret_cast<std::uint64_t>(caller.return_address), function);
  }
}

/// Frames of this layer have no fixed size, so all its calls are one place from now on.
std::uint32_t SiteTable::give_up_outer(std::uint64_t address, std::uint16_t function) noexcept {
  unsigned i = hash(address);
  while (table_[i].key.load(std::memory_order_relaxed) != address) i = (i + 1) % slots;
  if (table_[i].distance.load(std::memory_order_relaxed) != 0) {
    table_[i].value = make_site(address, function);
    table_[i].distance.store(0, std::memory_order_release);
  }
  return table_[i].value;
}

}  // namespace bestride::inline telemetry
