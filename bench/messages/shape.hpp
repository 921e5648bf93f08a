// SPDX-License-Identifier: Apache-2.0
#pragma once
// A datatype and, computed independently, the bytes that it describes. The driver compares received data with these
// bytes, because the measured library may intercept MPI_Pack, too.
#include <mpi.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace messages {

struct Block {
  std::ptrdiff_t offset;
  std::ptrdiff_t length;
};

/// Copies share the handle; the last one frees it.
class Shape {
 public:
  static Shape named(MPI_Datatype type);
  /// A flat sequence of blocks in type map order. Adjacent blocks may be merged.
  const std::vector<Block>& blocks() const { return blocks_; }
  std::ptrdiff_t extent() const { return extent_; }
  std::ptrdiff_t size() const;
  MPI_Datatype type() const { return handle_->type; }
  void commit() { MPI_Type_commit(&handle_->type); }
  void forget_blocks() { std::vector<Block>().swap(blocks_); }

  /// Strides in elements of this shape's extent.
  Shape vector(int count, int block_length, int stride) const;
  Shape hvector(int count, int block_length, std::ptrdiff_t stride_bytes) const;
  Shape contiguous(int count) const;
  Shape resized(std::ptrdiff_t extent) const;
  Shape indexed_block(int block_length, const std::vector<int>& displacements) const;
  Shape subarray(const std::vector<int>& sizes, const std::vector<int>& subsizes, const std::vector<int>& starts) const;
  static Shape structure(const std::vector<int>& lengths, const std::vector<std::ptrdiff_t>& displacements,
                         const std::vector<Shape>& members);

 private:
  struct Handle {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    bool owned = false;
    ~Handle() {
      if (owned) MPI_Type_free(&type);
    }
  };
  Shape(MPI_Datatype type, bool owned, std::ptrdiff_t extent);
  void append(const Shape& member, std::ptrdiff_t offset, std::ptrdiff_t count);
  void append(Block block);

  std::shared_ptr<Handle> handle_ = std::make_shared<Handle>();
  std::vector<Block> blocks_;
  std::ptrdiff_t extent_ = 0;
};

}  // namespace messages
