// SPDX-License-Identifier: Apache-2.0
#pragma once
// The datatypes of a calibration point, in the equivalent forms whose costs differ.
#include <mpi.h>

#include <cstdint>
#include <type_traits>

#include "datatype/mpi_calls.hpp"
#include "perfmodel/calibrate/common/sample_plan.hpp"

namespace bestride::inline perfmodel {

/// A committed datatype and the count with which it is sent. Frees the type.
class CountedType {
 public:
  CountedType(MPI_Datatype type, int count) : type_(type), count_(count) {}
  CountedType(CountedType&& other) noexcept : type_(other.type_), count_(other.count_) {
    other.type_ = MPI_DATATYPE_NULL;
  }
  CountedType& operator=(CountedType&&) = delete;
  ~CountedType() {
    if (type_ != MPI_DATATYPE_NULL) MPI_Type_free(&type_);
  }
  MPI_Datatype type() const noexcept { return type_; }
  int count() const noexcept { return count_; }

 private:
  MPI_Datatype type_;
  int count_;
};

/// The bytes of `point` with this leaf, as one element (Engine::split) or as many small elements (Engine::unsplit). All
/// of these datatypes of a point have the same layout. Not for contiguous points; Engine::unsplit not for lists.
CountedType make_type(const Point& point, Engine engine, Leaf leaf);

/// `bytes` contiguous bytes as the equivalent datatype that respell() makes.
CountedType make_respelled_bytes(std::int64_t bytes);

/// The functions that decode() calls, from the MPI library that this program is linked to.
DatatypeCalls linked_calls();

}  // namespace bestride::inline perfmodel
