// SPDX-License-Identifier: Apache-2.0
#include "interpose/message/buffer_regions.hpp"

#include "interpose/device/buffer_location.hpp"

namespace bestride::inline interpose {

void BufferRegionBuilder::add(std::int64_t count, std::int64_t displacement, MPI_Datatype type, BufferUse use) {
  if (count < 0 || type == MPI_DATATYPE_NULL) sound_ = false;
  if (count <= 0 || !sound_ || host_ || region_.unknown) return;
  TypeEntry* entry = find_or_add_type(type);
  if (checks_first_byte_ && entry && entry->decoded_state() != TypeEntry::State::opaque) {
    checks_first_byte_ = false;
    const BufferLocation location = locate_buffer(
        static_cast<const char*>(region_.user) + displacement + entry->element().offset(), std::int64_t{1});
    host_ = location.memory.kind == cuda::MemoryKind::host || location.memory.kind == cuda::MemoryKind::pinned;
    if (host_) return;
  }
  const LayoutPtr layout = entry ? entry->layout(count) : nullptr;
  if (!layout) {
    region_.unknown = true;
    return;
  }
  if (!layout->root()) return;
  if (entry->state() != TypeEntry::State::contiguous) region_.plain = false;
  const Placed placed{layout->offset() + displacement, layout->root_pointer()};
  if (use != BufferUse::written) reads_.push_back(placed);
  if (use != BufferUse::read) writes_.push_back(placed);
}

void BufferRegionBuilder::add_element(std::int64_t count, std::int64_t displacement, MPI_Datatype type, BufferUse use) {
  if (count < 0 || type == MPI_DATATYPE_NULL) sound_ = false;
  if (count <= 0 || !sound_ || host_ || region_.unknown) return;
  TypeEntry* entry = find_or_add_type(type);
  std::int64_t bytes = 0;
  if (!entry || entry->decoded_state() == TypeEntry::State::opaque ||
      __builtin_mul_overflow(displacement, entry->extent(), &bytes)) {
    region_.unknown = true;
    return;
  }
  add(count, bytes, type, use);
}

BufferRegion BufferRegionBuilder::region() {
  if (!sound_) return {region_.user};
  const auto all = [this](const std::vector<Placed>& parts) -> LayoutPtr {
    if (parts.empty() || region_.unknown) return nullptr;
    const Built built = make_sequence(parts);
    if (!built) region_.unknown = true;
    return built ? intern(*built) : nullptr;
  };
  region_.reads = all(reads_);
  region_.writes = all(writes_);
  return region_;
}

BufferRegion region_of(const void* buffer, std::int64_t count, MPI_Datatype type, BufferUse use) noexcept {
  try {
    BufferRegionBuilder runs(buffer);
    runs.add(count, 0, type, use);
    return runs.region();
  } catch (...) {
    return {.user = buffer, .unknown = true};
  }
}

}  // namespace bestride::inline interpose
