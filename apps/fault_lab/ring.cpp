// SPDX-License-Identifier: Apache-2.0
#include "phases.hpp"

namespace fault_lab {
namespace {

enum RingTag { usual_tag = 1, unexpected_tag = 2 };

/// One message to the next rank and one from the previous.
struct Shift {
  Job& job;
  int count, next, previous;
  Words sent, received;

  explicit Shift(Job& all)
      : job(all),
        count(int(all.words())),
        next((all.rank + 1) % all.ranks),
        previous((all.rank + all.ranks - 1) % all.ranks),
        sent(all.message(all.rank, 0, all.words())),
        received(all.words()) {}

  void send(int tag) { MPI_Send(sent.data(), count, MPI_UINT64_T, next, tag, job.first); }
  void send_synchronously() { MPI_Ssend(sent.data(), count, MPI_UINT64_T, next, usual_tag, job.first); }
  void receive() { MPI_Recv(received.data(), count, MPI_UINT64_T, previous, usual_tag, job.first, MPI_STATUS_IGNORE); }

  void both_at_once(int tag) {
    MPI_Sendrecv(sent.data(), count, MPI_UINT64_T, next, tag, received.data(), count, MPI_UINT64_T, previous, usual_tag,
                 job.first, MPI_STATUS_IGNORE);
  }
  /// Even ranks send first. With an odd number of ranks the last one and rank 0 both do, which is no cycle.
  void one_after_the_other(int tag) {
    if (job.rank % 2 == 0)
      send(tag), receive();
    else
      receive(), send(tag);
  }
  /// Only the sender to the fault rank is blocked; the fault rank goes on.
  void all_but_one_receive() {
    if (job.trigger(Kind::missing_receive)) {
      send_synchronously();
      received = job.message(previous, 0, job.words());
      return;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(received.data(), count, MPI_UINT64_T, previous, usual_tag, job.first, &request);
    send_synchronously();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
};

}  // namespace

void ring(Job& job) {
  if (exchange_in_other_form(job)) return;
  Shift shift(job);
  if (job.now(Kind::missing_receive)) {
    shift.all_but_one_receive();
  } else if (job.now(Kind::cyclic_sends)) {
    job.trigger(Kind::cyclic_sends);
    shift.send_synchronously();
    shift.receive();
  } else {
    const int tag = job.trigger(Kind::tag_mismatch) ? unexpected_tag : usual_tag;
    if (job.step % 2 == 0 || job.ranks == 1)
      shift.both_at_once(tag);
    else
      shift.one_after_the_other(tag);
  }
  job.check("the ring's message", shift.received.data(), job.message(shift.previous, 0, job.words()));
}

}  // namespace fault_lab
