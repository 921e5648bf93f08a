// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/one_node_wait.hpp"

#include "interpose/collectives/mpi_transport.hpp"
#include "interpose/collectives/pending.hpp"
#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {

void let_others_progress() noexcept {
  int flag = 0;
  if (const Job* all = job())
    real.Iprobe(MPI_ANY_SOURCE, MpiTransport::no_messages_tag, all->private_comm, &flag, MPI_STATUS_IGNORE);
  progress_pending_collectives();
}

}  // namespace bestride::inline interpose
