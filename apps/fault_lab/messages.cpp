// SPDX-License-Identifier: Apache-2.0
// Forms of the ring's exchange in which a message can be missing in a way of its own. In the step of such a fault all
// ranks exchange in this form. With the clean kind of the form the rank of the fault is only late.
#include <unistd.h>

#include <array>

#include "phases.hpp"

namespace fault_lab {
namespace {

enum MessageTag { ring_tag = 1, extra_tag = 2, other_tag = 3, forgotten_tag = 4 };

class Exchange {
 public:
  Exchange(Job& all, Kind fault)
      : job(all),
        fault_kind(fault),
        culprit(all.plan.rank),
        next(neighbor(1)),
        previous(neighbor(-1)),
        after_culprit((culprit + 1) % job.ranks),
        second_after_culprit((culprit + 2) % job.ranks),
        count(int(all.words())),
        sent(all.message(all.rank, 0, all.words())),
        received(all.words()) {}

  /// On the culprit: true if it makes the fault. If it is only late, it sleeps here.
  bool fails() {
    if (job.plan.kind == fault_kind) return job.trigger(fault_kind);
    if (job.trigger(job.plan.kind)) usleep(unsigned(1e6 * job.options.pause_seconds));
    return false;
  }

  int neighbor(int distance) const { return (job.rank + distance + job.ranks) % job.ranks; }
  void send_to(int to, int tag, MPI_Comm comm) { MPI_Send(sent.data(), count, MPI_UINT64_T, to, tag, comm); }
  void send() { send_to(next, ring_tag, job.first); }
  MPI_Request start_send() {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(sent.data(), count, MPI_UINT64_T, next, ring_tag, job.first, &request);
    return request;
  }
  void receive_from(int from, int tag) {
    MPI_Recv(received.data(), count, MPI_UINT64_T, from, tag, job.first, MPI_STATUS_IGNORE);
  }
  void receive() { receive_from(previous, ring_tag); }
  MPI_Request start_receive() {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(received.data(), count, MPI_UINT64_T, previous, ring_tag, job.first, &request);
    return request;
  }
  void send_empty(int to, int tag) { MPI_Send(nullptr, 0, MPI_BYTE, to, tag, job.first); }
  void receive_empty(int from, int tag) { MPI_Recv(nullptr, 0, MPI_BYTE, from, tag, job.first, MPI_STATUS_IGNORE); }
  /// Receives before it sends, except the culprit, which leaves its message out or sends it late.
  void shift_without_message() {
    MPI_Request request = start_receive();
    if (!fails()) send();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }

  Job& job;
  const Kind fault_kind;
  const int culprit, next, previous, after_culprit, second_after_culprit, count;
  Words sent, received;
};

/// Sparse data exchange (Hoefler et al., PPoPP 2010): a barrier that each rank enters when its messages have been
/// received ends the receives.
void sparse_exchange(Exchange& x, int expected, bool skips_barrier) {
  MPI_Request send = MPI_REQUEST_NULL, barrier = MPI_REQUEST_NULL;
  MPI_Issend(x.sent.data(), x.count, MPI_UINT64_T, x.next, ring_tag, x.job.farm, &send);
  for (int taken = 0, entered = 0, over = 0; !over;) {
    int found = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, ring_tag, x.job.farm, &found, &status);
    if (found) {
      MPI_Recv(x.received.data(), x.count, MPI_UINT64_T, status.MPI_SOURCE, ring_tag, x.job.farm, MPI_STATUS_IGNORE);
      ++taken;
    }
    if (entered) {
      MPI_Test(&barrier, &over, MPI_STATUS_IGNORE);
    } else if (taken >= expected) {
      int complete = 0;
      MPI_Testall(1, &send, &complete, MPI_STATUSES_IGNORE);
      if (complete && skips_barrier) return;
      if (complete) MPI_Ibarrier(x.job.farm, &barrier), entered = 1;
    }
  }
}
void nbx_message_too_many(Exchange& x) { sparse_exchange(x, x.fails() ? 2 : 1, false); }
void nbx_left(Exchange& x) { sparse_exchange(x, 1, x.fails()); }

/// A request that the program has forgotten is pending while it polls another one.
void forgotten_request(Exchange& x) {
  MPI_Request forgotten = MPI_REQUEST_NULL;
  MPI_Irecv(nullptr, 0, MPI_BYTE, x.next, forgotten_tag, x.job.first, &forgotten);
  MPI_Request request = x.start_receive();
  if (!x.fails()) x.send();
  for (int complete = 0; !complete;) MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
  MPI_Cancel(&forgotten);
  MPI_Wait(&forgotten, MPI_STATUS_IGNORE);
}

/// The rank behind the culprit receives the culprit's message first; another rank is blocked in its send to it.
void blocked_sender(Exchange& x) {
  if (x.job.rank == x.after_culprit) {
    x.send();
    x.receive();
    x.receive_empty(x.second_after_culprit, extra_tag);
    return;
  }
  MPI_Request request = x.start_receive();
  if (!x.fails()) x.send();
  if (x.job.rank == x.second_after_culprit) MPI_Ssend(nullptr, 0, MPI_BYTE, x.after_culprit, extra_tag, x.job.first);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/// The rank behind the culprit has sent one message, which is received last, and sends the next one when it has that of
/// the culprit.
void early_message(Exchange& x) {
  if (x.job.rank == x.after_culprit) {
    x.send_empty(x.next, extra_tag);
    x.receive();
    x.send();
  } else if (x.job.rank == x.second_after_culprit) {
    x.receive();
    x.receive_empty(x.previous, extra_tag);
    x.send();
  } else {
    x.shift_without_message();
  }
}

/// The culprit makes many calls after the message with another tag before its receiver waits for it.
void old_wrong_tag(Exchange& x) {
  constexpr int messages = 60;
  MPI_Request request = x.job.rank == x.after_culprit ? MPI_REQUEST_NULL : x.start_receive();
  x.send_to(x.next, x.fails() ? other_tag : ring_tag, x.job.first);
  if (x.job.rank == x.culprit)
    for (int i = 0; i < messages; ++i) x.send_empty(x.next, extra_tag);
  if (x.job.rank == x.after_culprit) {
    for (int i = 0; i < messages; ++i) x.receive_empty(x.culprit, extra_tag);
    x.receive();
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void wrong_communicator(Exchange& x) {
  MPI_Request request = x.start_receive();
  x.send_to(x.next, ring_tag, x.fails() ? x.job.second : x.job.first);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void wrong_source(Exchange& x) {
  x.send();
  x.receive_from(x.fails() ? x.next : x.previous, ring_tag);
}

void receive_too_many(Exchange& x) {
  x.send();
  x.receive();
  if (x.fails()) x.receive();
}

void wrong_destination(Exchange& x) {
  MPI_Sendrecv(x.sent.data(), x.count, MPI_UINT64_T, x.fails() ? x.neighbor(2) : x.next, ring_tag, x.received.data(),
               x.count, MPI_UINT64_T, x.previous, ring_tag, x.job.first, MPI_STATUS_IGNORE);
}

void request_not_started(Exchange& x) {
  std::array<MPI_Request, 2> requests{};
  MPI_Recv_init(x.received.data(), x.count, MPI_UINT64_T, x.previous, ring_tag, x.job.first, &requests[0]);
  MPI_Send_init(x.sent.data(), x.count, MPI_UINT64_T, x.next, ring_tag, x.job.first, &requests[1]);
  MPI_Start(&requests[0]);
  if (!x.fails()) MPI_Start(&requests[1]);
  for (MPI_Request& request : requests) MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_Request_free(&request);
}

/// One call after the other completes any of two requests.
void any_of_requests(Exchange& x) {
  std::array<MPI_Request, 2> requests{x.start_receive(), MPI_REQUEST_NULL};
  if (!x.fails()) requests[1] = x.start_send();
  for (int complete = 0; requests[0] != MPI_REQUEST_NULL || requests[1] != MPI_REQUEST_NULL;) {
    std::array<int, 2> indices{};
    switch (x.job.plan.variant % 4) {
      case 0: MPI_Waitany(2, requests.data(), indices.data(), MPI_STATUS_IGNORE); break;
      case 1: MPI_Waitsome(2, requests.data(), &complete, indices.data(), MPI_STATUSES_IGNORE); break;
      case 2: MPI_Testany(2, requests.data(), indices.data(), &complete, MPI_STATUS_IGNORE); break;
      default: MPI_Testsome(2, requests.data(), &complete, indices.data(), MPI_STATUSES_IGNORE);
    }
  }
}

void probed_message(Exchange& x) {
  if (!x.fails()) x.send();
  MPI_Message message = MPI_MESSAGE_NULL;
  int found = 0;
  switch (x.job.plan.variant % 4) {
    case 0: MPI_Probe(x.previous, ring_tag, x.job.first, MPI_STATUS_IGNORE); break;
    case 1: MPI_Mprobe(x.previous, ring_tag, x.job.first, &message, MPI_STATUS_IGNORE); break;
    case 2:
      while (!found) MPI_Iprobe(x.previous, ring_tag, x.job.first, &found, MPI_STATUS_IGNORE);
      break;
    default:
      while (!found) MPI_Improbe(x.previous, ring_tag, x.job.first, &found, &message, MPI_STATUS_IGNORE);
  }
  if (message != MPI_MESSAGE_NULL)
    MPI_Mrecv(x.received.data(), x.count, MPI_UINT64_T, &message, MPI_STATUS_IGNORE);
  else
    x.receive();
}

/// MPI_Issend, because MPI libraries report MPI_Ssend to the rank itself as an error.
void send_to_itself(Exchange& x) {
  std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  if (!x.fails()) MPI_Irecv(nullptr, 0, MPI_BYTE, x.job.rank, extra_tag, x.job.first, &requests[0]);
  MPI_Issend(nullptr, 0, MPI_BYTE, x.job.rank, extra_tag, x.job.first, &requests[1]);
  MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
  x.send();
  x.receive();
}

/// The culprit tests its receive while it computes. The sender first receives the culprit's message.
void overlapped_computation(Exchange& x) {
  MPI_Request request = x.start_receive();
  if (x.job.trigger(x.job.plan.kind)) {
    int complete = 0;
    const double end = MPI_Wtime() + x.job.options.pause_seconds;
    while (MPI_Wtime() < end) {
      x.job.computation.run(5e-4);
      if (!complete) MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
    }
    x.send_empty(x.previous, extra_tag);
  }
  if (x.next == x.culprit) x.receive_empty(x.culprit, extra_tag);
  x.send();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/// The culprit looks for a message and for other events, of which one lets it go on.
void event_loop(Exchange& x) {
  if (x.job.trigger(x.job.plan.kind)) {
    int found = 0;
    for (const double end = MPI_Wtime() + x.job.options.pause_seconds; MPI_Wtime() < end; usleep(1000))
      MPI_Iprobe(MPI_ANY_SOURCE, extra_tag, x.job.first, &found, MPI_STATUS_IGNORE);
  }
  MPI_Request request = x.start_receive();
  x.send();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

struct Form {
  Kind fault, late;
  void (*run)(Exchange&);
};
constexpr Form forms[] = {
    {Kind::nbx_message_too_many, Kind::nbx_late, nbx_message_too_many},
    {Kind::nbx_left, Kind::nbx_late, nbx_left},
    {Kind::forgotten_request, Kind::forgotten_request_late, forgotten_request},
    {Kind::blocked_sender, Kind::blocked_sender_late, blocked_sender},
    {Kind::early_message, Kind::early_message_late, early_message},
    {Kind::old_wrong_tag, Kind::old_tag_late, old_wrong_tag},
    {Kind::wrong_communicator, Kind::shift_late, wrong_communicator},
    {Kind::wrong_source, Kind::receive_late, wrong_source},
    {Kind::receive_too_many, Kind::receive_late, receive_too_many},
    {Kind::wrong_destination, Kind::exchange_late, wrong_destination},
    {Kind::request_not_started, Kind::request_started_late, request_not_started},
    {Kind::any_of_requests, Kind::any_of_requests_late, any_of_requests},
    {Kind::probed_message, Kind::probed_message_late, probed_message},
    {Kind::send_to_itself, Kind::send_to_itself_late, send_to_itself},
    {Kind::overlapped_computation, Kind::overlapped_computation, overlapped_computation},
    {Kind::event_loop, Kind::event_loop, event_loop},
};

}  // namespace

bool exchange_in_other_form(Job& job) {
  if (!job.now(job.plan.kind)) return false;
  for (const Form& form : forms) {
    if (job.plan.kind != form.fault && job.plan.kind != form.late) continue;
    Exchange exchange(job, form.fault);
    form.run(exchange);
    job.check("the ring's message", exchange.received.data(), job.message(exchange.previous, 0, job.words()));
    return true;
  }
  return false;
}

}  // namespace fault_lab
