// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/staged_blocks.hpp"

#include "interpose/device/transfer_batch.hpp"
#include "interpose/message/buffer_regions.hpp"

namespace bestride::inline interpose {

std::byte* StagedBlocks::add(const void* buffer, std::span<const Range> blocks, MPI_Datatype type, Access access,
                             int only) {
  if (!gpu_runtime_detected()) [[likely]]
    return nullptr;
  BufferRegionBuilder runs(buffer);
  for (const Range& block : blocks) runs.add_element(block.length(), block.first, type, BufferUse::read);
  const BufferRegion region = runs.region();
  if (!region.reads && !region.unknown) return nullptr;
  const BufferLocation place = locate_buffer(buffer, region.reads);
  if (!place.needs_device) return nullptr;
  if (!place.layout) throw Error{"its datatype can't be represented"};
  const std::int64_t element = find_or_add_type(type)->size();
  Range read{0, access == Access::written ? 0 : place.layout->size()};
  if (access == Access::both && only >= 0) {
    for (int rank = 0; rank < only; ++rank) read.first += blocks[static_cast<std::size_t>(rank)].length() * element;
    read.last = read.first + blocks[static_cast<std::size_t>(only)].length() * element;
  }
  const Result<StagingPtr> staging = Staging::make_on_host(
      place, const_cast<void*>(buffer), comm_, access == Access::written ? CallKind::irecv : CallKind::isend);
  if (!staging) throw staging.error();
  groups_.push_back({*staging, read, access != Access::read});
  return (*staging)->packed();
}

void StagedBlocks::copy_in() const noexcept {
  for (const Group& group : groups_)
    if (group.read.length() > 0) TransferBatch::move(group.staging, Direction::pack, group.read.first, group.read.last);
}

void StagedBlocks::copy_out() const noexcept {
  for (const Group& group : groups_)
    if (group.written) TransferBatch::move(group.staging, Direction::unpack, 0, group.staging->size());
}

bool StagedBlocks::failed() const noexcept {
  for (const Group& group : groups_)
    if (group.read.length() > 0 && group.staging->failed()) return true;
  return false;
}

}  // namespace bestride::inline interpose
