// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/hierarchical/staged_blocks.hpp"

#include "interpose/back/gpu/regions.hpp"
#include "interpose/back/gpu/together.hpp"

namespace bestride {

std::byte* StagedBlocks::add(const void* buffer, std::span<const Range> blocks, MPI_Datatype type, Access access, int only) {
  if (!gpu_in_play()) [[likely]] return nullptr;
  Runs runs(buffer);
  for (const Range& block : blocks) runs.add_element(block.bytes(), block.first, type, Use::read);
  const Region region = runs.region();
  if (!region.reads && !region.unknown) return nullptr;
  const Place place = find_place(buffer, region.reads);
  if (!place.by_gpu) return nullptr;
  if (!place.layout) throw Error{"its datatype can't be represented"};
  Result<StagingPtr> staging = Staging::make_on_host(place, const_cast<void*>(buffer), comm_, access == Access::written ? CallKind::irecv : CallKind::isend);
  if (!staging) throw staging.error();
  const std::int64_t element = known_type(type)->size();
  Range read{0, access == Access::written ? 0 : (*staging)->size()};
  if (access == Access::both && only >= 0) {
    for (int rank = 0; rank < only; ++rank) read.first += blocks[static_cast<std::size_t>(rank)].bytes() * element;
    read.last = read.first + blocks[static_cast<std::size_t>(only)].bytes() * element;
  }
  groups_.push_back({*staging, read, access != Access::read});
  return (*staging)->packed();
}

void StagedBlocks::bring_in() const noexcept {
  for (const Group& group : groups_)
    if (group.read.bytes() > 0) Together::move(group.staging, cuda::Direction::pack, group.read.first, group.read.last);
}

void StagedBlocks::bring_out() const noexcept {
  for (const Group& group : groups_)
    if (group.written) Together::move(group.staging, cuda::Direction::unpack, 0, group.staging->size());
}

bool StagedBlocks::refused() const noexcept {
  for (const Group& group : groups_)
    if (group.read.bytes() > 0 && group.staging->failed()) return true;
  return false;
}

}  // namespace bestride
