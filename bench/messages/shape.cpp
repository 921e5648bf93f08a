// SPDX-License-Identifier: Apache-2.0
#include "shape.hpp"

#include <algorithm>

namespace messages {

Shape::Shape(MPI_Datatype type, bool owned, std::ptrdiff_t extent) : extent_(extent) {
  handle_->type = type;
  handle_->owned = owned;
}

void Shape::append(Block block) {
  if (!blocks_.empty() && blocks_.back().offset + blocks_.back().length == block.offset)
    blocks_.back().length += block.length;
  else
    blocks_.push_back(block);
}

void Shape::append(const Shape& member, std::ptrdiff_t offset, std::ptrdiff_t count) {
  for (std::ptrdiff_t item = 0; item < count; ++item)
    for (const Block& block : member.blocks_) append({offset + item * member.extent_ + block.offset, block.length});
}

std::ptrdiff_t Shape::size() const {
  std::ptrdiff_t total = 0;
  for (const Block& block : blocks_) total += block.length;
  return total;
}

Shape Shape::named(MPI_Datatype type) {
  int size = 0;
  MPI_Type_size(type, &size);
  Shape made(type, false, size);
  made.append({0, size});
  return made;
}

Shape Shape::vector(int count, int block_length, int stride) const {
  MPI_Datatype type;
  MPI_Type_vector(count, block_length, stride, this->type(), &type);
  Shape made(type, true, ((count - 1) * std::ptrdiff_t(stride) + block_length) * extent_);
  for (int block = 0; block < count; ++block)
    made.append(*this, block * std::ptrdiff_t(stride) * extent_, block_length);
  return made;
}

Shape Shape::hvector(int count, int block_length, std::ptrdiff_t stride_bytes) const {
  MPI_Datatype type;
  MPI_Type_create_hvector(count, block_length, stride_bytes, this->type(), &type);
  Shape made(type, true, (count - 1) * stride_bytes + block_length * extent_);
  for (int block = 0; block < count; ++block) made.append(*this, block * stride_bytes, block_length);
  return made;
}

Shape Shape::contiguous(int count) const {
  MPI_Datatype type;
  MPI_Type_contiguous(count, this->type(), &type);
  Shape made(type, true, count * extent_);
  made.append(*this, 0, count);
  return made;
}

Shape Shape::resized(std::ptrdiff_t extent) const {
  MPI_Datatype type;
  MPI_Type_create_resized(this->type(), 0, extent, &type);
  Shape made(type, true, extent);
  made.append(*this, 0, 1);
  return made;
}

Shape Shape::indexed_block(int block_length, const std::vector<int>& displacements) const {
  MPI_Datatype type;
  MPI_Type_create_indexed_block(int(displacements.size()), block_length, displacements.data(), this->type(), &type);
  Shape made(type, true,
             (*std::max_element(displacements.begin(), displacements.end()) + std::ptrdiff_t(block_length)) * extent_);
  for (const int at : displacements) made.append(*this, at * extent_, block_length);
  return made;
}

Shape Shape::subarray(const std::vector<int>& sizes, const std::vector<int>& subsizes,
                      const std::vector<int>& starts) const {
  MPI_Datatype type;
  MPI_Type_create_subarray(int(sizes.size()), sizes.data(), subsizes.data(), starts.data(), MPI_ORDER_C, this->type(),
                           &type);
  std::ptrdiff_t cells = 1;
  for (const int size : sizes) cells *= size;
  Shape made(type, true, cells * extent_);
  std::vector<int> at(sizes.size(), 0);
  const std::size_t last = sizes.size() - 1;
  for (bool more = true; more;) {
    std::ptrdiff_t row = 0;
    for (std::size_t dimension = 0; dimension <= last; ++dimension)
      row = row * sizes[dimension] + starts[dimension] + at[dimension];
    made.append(*this, row * extent_, subsizes[last]);
    more = false;
    for (std::size_t dimension = last; dimension-- > 0 && !more;)
      more = ++at[dimension] < subsizes[dimension] || (at[dimension] = 0);
  }
  return made;
}

Shape Shape::structure(const std::vector<int>& lengths, const std::vector<std::ptrdiff_t>& displacements,
                       const std::vector<Shape>& members) {
  std::vector<MPI_Aint> addresses(displacements.begin(), displacements.end());
  std::vector<MPI_Datatype> types;
  for (const Shape& member : members) types.push_back(member.type());
  MPI_Datatype type;
  MPI_Type_create_struct(int(lengths.size()), lengths.data(), addresses.data(), types.data(), &type);
  std::ptrdiff_t end = 0;
  for (std::size_t at = 0; at < members.size(); ++at)
    end = std::max(end, displacements[at] + lengths[at] * members[at].extent_);
  Shape made(type, true, end);
  for (std::size_t at = 0; at < members.size(); ++at) made.append(members[at], displacements[at], lengths[at]);
  return made;
}

}  // namespace messages
