// SPDX-License-Identifier: Apache-2.0
#pragma once
// The five collective operations of a step. Each is an object that is started and finished, in the form that the
// options select.
#include <mpi.h>

#include <functional>
#include <string>

#include "options.hpp"

namespace zero_step {

/// One collective call on fixed buffers, repeatable. All ranks must start and finish the operations in the same order.
class Operation {
 public:
  using Now = std::function<int()>;
  using Later = std::function<int(MPI_Request*)>;

  /// `make` initializes the persistent request; it is called here if the form is persistent.
  Operation(Form form, Now now, Later start, const Later& make);
  Operation(Operation&& other) noexcept;
  Operation& operator=(Operation&&) = delete;
  ~Operation();

  void start();   ///< the blocking form does all its work here
  void finish();  ///< does nothing if the operation was not started

 private:
  Form form_;
  Now now_;
  Later later_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool running_ = false;
};

Operation make_allgather(Form form, const void* share, void* all, int count, MPI_Datatype type);
Operation make_reduce_scatter(Form form, const void* all, void* share, int count, MPI_Datatype type);
/// In place; the maximum.
Operation make_allreduce_max(Form form, double* value);
/// From rank 0.
Operation make_broadcast(Form form, double* value);

}  // namespace zero_step
