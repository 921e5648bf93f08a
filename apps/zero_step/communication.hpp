// SPDX-License-Identifier: Apache-2.0
#pragma once
// The five collective operations of a step, each as one thing that is started and finished, in the form that was asked for.
#include <mpi.h>

#include <functional>
#include <string>

#include "options.hpp"

namespace zero_step {

/// One collective call on fixed buffers, repeatable. Started and finished by all ranks in the same order.
class Operation {
 public:
  using Now = std::function<int()>;
  using Later = std::function<int(MPI_Request*)>;

  /// `make` is the persistent form's initialization, called here if that is the form.
  Operation(Form form, Now now, Later start, const Later& make);
  Operation(Operation&& other) noexcept;
  Operation& operator=(Operation&&) = delete;
  ~Operation();

  void start();   ///< the blocking form does everything here
  void finish();  ///< nothing to do if it was not started

 private:
  Form form_;
  Now now_;
  Later later_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool running_ = false;
};

Operation make_allgather(Form form, const void* share, void* all, int count, MPI_Datatype type);
Operation make_reduce_scatter(Form form, const void* all, void* share, int count, MPI_Datatype type);
/// In place, the largest.
Operation make_allreduce_max(Form form, double* value);
/// From rank 0.
Operation make_broadcast(Form form, double* value);

}  // namespace zero_step
