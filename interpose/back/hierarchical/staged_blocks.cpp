// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/hierarchical/staged_blocks.hpp"

#include "interpose/back/gpu/regions.hpp"
#include "interpose/back/gpu/together.hpp"

namespace bestride {

StagedPlace StagedBlocks::add(const void* buffer, std::span<const Range> blocks, MPI_Datatype type, Access access, int only, const Coding* coding) {
  if (!gpu_in_play()) [[likely]] return {};
  Runs runs(buffer);
  for (const Range& block : blocks) runs.add_element(block.bytes(), block.first, type, Use::read);
  const Region region = runs.region();
  if (!region.reads && !region.unknown) return {};
  const Place place = find_place(buffer, region.reads);
  if (!place.by_gpu) return {};
  if (!place.layout) throw Error{"its datatype can't be represented"};
  const std::int64_t element = known_type(type)->size();
  Range read{0, access == Access::written ? 0 : place.layout->size()};
  if (access == Access::both && only >= 0) {
    for (int rank = 0; rank < only; ++rank) read.first += blocks[static_cast<std::size_t>(rank)].bytes() * element;
    read.last = read.first + blocks[static_cast<std::size_t>(only)].bytes() * element;
  }
  void* user = const_cast<void*>(buffer);
  std::unique_ptr<DeviceCodes> codes;
  if (coding) {
    std::vector<std::int64_t> bytes;
    for (const Range& block : blocks) bytes.push_back(block.bytes() * element);
    codes = DeviceCodes::make(place, user, comm_, bytes, access, only, *coding);
  }
  Result<StagingPtr> staging =
      codes ? codes->plain() : Staging::make_on_host(place, user, comm_, access == Access::written ? CallKind::irecv : CallKind::isend);
  if (!staging) throw staging.error();
  groups_.push_back({*staging, read, access != Access::read, std::move(codes)});
  return {(*staging)->packed(), groups_.back().codes.get()};
}

void StagedBlocks::bring_in() const noexcept {
  for (const Group& group : groups_)
    if (group.read.bytes() > 0 && !(group.codes && group.codes->bring_in()))
      Together::move(group.staging, cuda::Direction::pack, group.read.first, group.read.last);
}

void StagedBlocks::bring_out() const noexcept {
  for (const Group& group : groups_)
    if (group.written && !(group.codes && group.codes->bring_out())) Together::move(group.staging, cuda::Direction::unpack, 0, group.staging->size());
}

bool StagedBlocks::refused() const noexcept {
  for (const Group& group : groups_)
    if (group.read.bytes() > 0 && group.staging->failed()) return true;
  return false;
}

}  // namespace bestride
