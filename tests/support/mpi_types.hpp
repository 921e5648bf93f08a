// SPDX-License-Identifier: Apache-2.0
#pragma once
// Builds the MPI datatype of a TypeExpression with MPI's constructors.
#include <mpi.h>

#include "tests/support/expressions.hpp"

namespace bestride::test {

enum class Constructors {
  plain,  ///< MPI_Type_vector etc.; aborts if a number does not fit an int
  large,  ///< MPI_Type_vector_c etc., also for small numbers
};

/// Returns an uncommitted type, which the caller frees. Frees intermediate types. Equal children of a struct have
/// distinct handles. Ends the program if MPI returns an error.
MPI_Datatype build_type(const TypeExpression& type, Constructors constructors = Constructors::plain);

/// The predefined MPI type of a name in a TypeExpression.
MPI_Datatype predefined(std::string_view name);

/// A committed type that is freed at the end of the scope.
class CommittedType {
 public:
  explicit CommittedType(const TypeExpression& type, Constructors constructors = Constructors::plain)
      : handle_(build_type(type, constructors)) {
    MPI_Type_commit(&handle_);
  }
  explicit CommittedType(std::string_view text) : CommittedType(type_from(text)) {}
  ~CommittedType() {
    if (handle_ != MPI_DATATYPE_NULL) MPI_Type_free(&handle_);
  }
  CommittedType(const CommittedType&) = delete;
  CommittedType& operator=(const CommittedType&) = delete;
  operator MPI_Datatype() const { return handle_; }
  /// Frees the type before the end of the scope.
  void free() { MPI_Type_free(&handle_); }

 private:
  MPI_Datatype handle_;
};

}  // namespace bestride::test
