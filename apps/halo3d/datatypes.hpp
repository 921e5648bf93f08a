// SPDX-License-Identifier: Apache-2.0
#pragma once
// Faces, edges and corners as MPI datatypes. There are three spellings of the same type map, because applications use
// different ones and MPI libraries handle them with different efficiency.
#include <mpi.h>

#include <utility>
#include <vector>

#include "field.hpp"

namespace halo3d {

/// Owns one datatype handle.
class Datatype {
 public:
  Datatype() = default;
  explicit Datatype(MPI_Datatype handle) : handle_(handle) {}
  Datatype(Datatype&& other) noexcept : handle_(std::exchange(other.handle_, MPI_DATATYPE_NULL)) {}
  Datatype& operator=(Datatype&& other) noexcept { return std::swap(handle_, other.handle_), *this; }
  ~Datatype() {
    if (handle_ != MPI_DATATYPE_NULL) MPI_Type_free(&handle_);
  }
  MPI_Datatype get() const { return handle_; }
  void commit() { MPI_Type_commit(&handle_); }

 private:
  MPI_Datatype handle_ = MPI_DATATYPE_NULL;
};

/// The cells of one region in one array, or in all arrays at once (base MPI_BOTTOM).
struct FaceType {
  void* base;
  MPI_Aint displacement;  ///< bytes from base
  Datatype type;          ///< committed

  void* address() const { return base == MPI_BOTTOM ? MPI_BOTTOM : static_cast<char*>(base) + displacement; }
  MPI_Aint absolute() const;  ///< displacement relative to MPI_BOTTOM
};

/// A struct with one element of each type at these displacements; not committed.
Datatype struct_of(const std::vector<MPI_Aint>& displacements, const std::vector<MPI_Datatype>& types);

/// One type per message to a neighbor: one in total (Messages::joined) or one per exchanged quantity.
std::vector<FaceType> face_types_of(Field& field, const Region& region, const Options& options);

}  // namespace halo3d
