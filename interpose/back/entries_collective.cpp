// SPDX-License-Identifier: Apache-2.0
// Gather, scatter, allgather and alltoall, with equal and with varying blocks, blocking and nonblocking: each direction is respelled
// where that pays. Not here: broadcasts, which MPICH packs whole, so that respelling gains nothing (docs/strategies.md); reductions,
// whose operation sees the datatype; and the persistent forms, because MPICH 4.0.2 loses count of the references to a derived type
// given to one of them (some crash at the second start without us): a type of ours, which other calls use, would be gone.
#include <algorithm>
#include <new>
#include <tuple>

#include "interpose/back/entries.hpp"
#include "interpose/back/exchange.hpp"
#include "interpose/back/gpu/stage_moved.hpp"
#include "interpose/back/hierarchical/spread.hpp"
#include "interpose/back/note.hpp"
#include "interpose/back/spelled_blocks.hpp"

namespace bestride {
namespace {

/// One call and what of it is respelled.
template <class GivenOut, class GivenIn>
class Collective {
 public:
  Collective(const GivenOut& out, const GivenIn& in) noexcept : given_out_(out), given_in_(in), out_(out), in_(in) {}

  /// True if MPI is handed other arguments than the user's. `out`, `in`: the types' entries where the direction is significant and may
  /// gain, else nullptr.
  bool prepare(const CommEntry& known, MPI_Comm comm, TypeEntry* out, TypeEntry* in) noexcept {
    if (out && (out->decoded_state() != TypeEntry::State::useful || given_out_.longest(known.size()) < 0)) out = nullptr;
    if (in && (in->decoded_state() != TypeEntry::State::useful || given_in_.longest(known.size()) < 0)) in = nullptr;
    // The same bytes sent and received are an error that the library finds by comparing addresses, where the types are equal. Which
    // addresses, differs from call to call: what lies in one place is left alone.
    if (out && out == in && overlap(*out, known.size())) return false;
    try {
      if (fail_here(FailPoint::arrays)) throw std::bad_alloc();
      sends_ = out && out_.prepare(*out, comm, known.size());
      receives_ = in && in_.prepare(*in, comm, known.size());
    } catch (...) {
      say_once("arrays", "no memory to rewrite a collective's arguments; it is left to the MPI library");
      return sends_ = receives_ = false;
    }
    return sends_ || receives_;
  }
  bool keeps_arrays() const noexcept { return (sends_ && GivenOut::has_arrays) || (receives_ && GivenIn::has_arrays); }
  template <class Call>
  int carry_out(Call call) const {
    return call(sends_ ? out_.arguments() : given_out_.arguments(), receives_ ? in_.arguments() : given_in_.arguments());
  }
  void note_in_report(CallId id, double seconds) const noexcept {
    if (out_.side().plan()) note(id, out_.side(), seconds);
    if (in_.side().plan()) note(id, in_.side(), out_.side().plan() ? 0 : seconds);
  }

 private:
  bool overlap(const TypeEntry& type, int ranks) const noexcept {
    const std::intptr_t sent = reinterpret_cast<std::intptr_t>(given_out_.buffer);
    const std::intptr_t received = reinterpret_cast<std::intptr_t>(given_in_.buffer);
    const std::int64_t element = std::max(type.extent(), type.size());
    return sent == received || (sent < received ? (received - sent) / element < given_out_.reach(ranks)
                                                : (sent - received) / element < given_in_.reach(ranks));
  }

  GivenOut given_out_;
  GivenIn given_in_;
  RespelledBlocks<GivenOut> out_;
  RespelledBlocks<GivenIn> in_;
  bool sends_ = false, receives_ = false;
};

/// Keeps a call's rewritten counts and displacements until its request is done with: the library may read them until then.
template <class Work>
struct Kept final : Owed {
  explicit Kept(Work&& given) noexcept : work(std::move(given)) {}
  void fill() noexcept override {}
  void settle(bool, const MPI_Status*) noexcept override {}
  bool wants_status() const noexcept override { return false; }
  Work work;
};

/// nullptr: no memory, which is said.
template <class Work>
Kept<Work>* keep(Work&& work) noexcept {
  auto* kept = fail_here(FailPoint::owed) ? nullptr : new (std::nothrow) Kept<Work>(std::move(work));
  if (!kept) say_once("owed", "no memory to remember what a request owes; such calls are left to the MPI library");
  return kept;
}

template <auto slot, AtRoot only, class Out, class In, class... Tail>
int collective(CallId id, const Out& out, const In& in, int root, MPI_Comm comm, Tail... tail) {
  LibraryForm form = LibraryForm::as_called;
  const auto call = [&](const auto& out_arguments, const auto& in_arguments) {
    const auto make = [&form](auto... arguments) { return by_library<slot>(form, arguments...); };
    if constexpr (only == AtRoot::neither)
      return std::apply(make, std::tuple_cat(out_arguments, in_arguments, std::tuple(comm, tail...)));
    else
      return std::apply(make, std::tuple_cat(out_arguments, in_arguments, std::tuple(root, comm, tail...)));
  };
  if (may_spread()) [[unlikely]]
    if (const std::optional<int> done = spread_moved<only>(name(id), &form, out, in, root, comm, tail...)) return *done;
  if constexpr (blocking<Tail...>) before_library_collective(comm);
  if (gpu_in_play()) [[unlikely]]
    if (const std::optional<int> done = stage_moved<only>(name(id), out, in, root, comm, call, tail...)) return *done;
  TypeEntry* out_entry = worth_a_look(out.type);
  TypeEntry* in_entry = worth_a_look(in.type);
  if (!out_entry && !in_entry) [[likely]] {
    if (reporting()) [[unlikely]] note_left_alone(id, 0, out.type);
    return call(out.arguments(), in.arguments());
  }
  CommEntry* known = runtime().comms.find(comm);
  if (!known || known->size() < 2 || !(blocking<Tail...> || request_of(tail...))) {
    const int error = call(out.arguments(), in.arguments());
    if (error == MPI_SUCCESS) runtime().comms.note(comm);
    return error;
  }
  // Arguments that are not significant here are not looked at. In place of both directions (alltoall) the library moves a block at
  // a time by a packed copy.
  const bool at_root = known->rank() == root, in_place = Out::many && In::many && out.buffer == MPI_IN_PLACE;
  if ((only == AtRoot::out && !at_root) || out.buffer == MPI_IN_PLACE) out_entry = nullptr;
  if ((only == AtRoot::in && !at_root) || in.buffer == MPI_IN_PLACE || in_place) in_entry = nullptr;
  const auto may = [&](TypeEntry* entry, const auto& given, CallKind kind) {
    return entry && may_gain(*entry, given.longest(known->size()), kind, MPI_ANY_SOURCE, *known, respelled_only);
  };
  if (!reporting() && !may(out_entry, out, CallKind::send) && !may(in_entry, in, CallKind::receive))
    return call(out.arguments(), in.arguments());

  using Work = Collective<Out, In>;
  const Stopwatch watch(reporting());
  Work work(out, in);
  Kept<Work>* kept = nullptr;
  int error;
  if (work.prepare(*known, comm, out_entry, in_entry) && (blocking<Tail...> || !work.keeps_arrays() || (kept = keep(std::move(work)))))
    error = kept ? kept->work.carry_out(call) : work.carry_out(call);
  else
    error = call(out.arguments(), in.arguments());
  if (reporting()) [[unlikely]] (kept ? kept->work : work).note_in_report(id, watch.seconds());
  if (kept) {
    if (error == MPI_SUCCESS)
      hang(kept, *request_of(tail...));
    else
      delete kept;
  }
  return error;
}

template <auto slot, class Out, class In, class... Tail>
int to_root(CallId id, const Out& out, const In& in, int root, MPI_Comm comm, Tail... tail) {
  return collective<slot, AtRoot::in>(id, out, in, root, comm, tail...);
}
template <auto slot, class Out, class In, class... Tail>
int from_root(CallId id, const Out& out, const In& in, int root, MPI_Comm comm, Tail... tail) {
  return collective<slot, AtRoot::out>(id, out, in, root, comm, tail...);
}
template <auto slot, class Out, class In, class... Tail>
int among_all(CallId id, const Out& out, const In& in, MPI_Comm comm, Tail... tail) {
  return collective<slot, AtRoot::neither>(id, out, in, MPI_PROC_NULL, comm, tail...);
}

}  // namespace
}  // namespace bestride

// A direction's parameters, with one count and with many, and what they are called here.
#define BESTRIDE_SEND(Count) const void *send_buffer, Count send_count, MPI_Datatype send_type
#define BESTRIDE_SENT(Blocks, Count) Blocks<const void*, Count>{send_buffer, send_count, send_type}
#define BESTRIDE_SEND_V(Count, Displacement) \
  const void *send_buffer, const Count *send_counts, const Displacement *send_at, MPI_Datatype send_type
#define BESTRIDE_SENT_V(Count, Displacement) \
  VaryingBlocks<const void*, Count, Displacement>{send_buffer, send_counts, send_at, send_type}
#define BESTRIDE_RECEIVE(Count) void *receive_buffer, Count receive_count, MPI_Datatype receive_type
#define BESTRIDE_RECEIVED(Blocks, Count) Blocks<void*, Count>{receive_buffer, receive_count, receive_type}
#define BESTRIDE_RECEIVE_V(Count, Displacement) \
  void *receive_buffer, const Count *receive_counts, const Displacement *receive_at, MPI_Datatype receive_type
#define BESTRIDE_RECEIVED_V(Count, Displacement) \
  VaryingBlocks<void*, Count, Displacement>{receive_buffer, receive_counts, receive_at, receive_type}

#define BESTRIDE_ROOTED(name, body, send, sent, receive, received, rest, rest_names) \
  BESTRIDE_ENTRY(name, body, \
                 (BESTRIDE_UNWRAP send, BESTRIDE_UNWRAP receive, int root, MPI_Comm comm BESTRIDE_UNWRAP rest), \
                 (BESTRIDE_UNWRAP sent, BESTRIDE_UNWRAP received, root, comm BESTRIDE_UNWRAP rest_names))
#define BESTRIDE_AMONG_ALL(name, send, sent, receive, received, rest, rest_names) \
  BESTRIDE_ENTRY(name, among_all, (BESTRIDE_UNWRAP send, BESTRIDE_UNWRAP receive, MPI_Comm comm BESTRIDE_UNWRAP rest), \
                 (BESTRIDE_UNWRAP sent, BESTRIDE_UNWRAP received, comm BESTRIDE_UNWRAP rest_names))

#define BESTRIDE_GATHER_ENTRY(name, Count, Displacement, rest, rest_names) \
  BESTRIDE_ROOTED(name, to_root, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(OneBlock, Count)), (BESTRIDE_RECEIVE(Count)), \
                  (BESTRIDE_RECEIVED(EqualBlocks, Count)), rest, rest_names)
#define BESTRIDE_GATHERV_ENTRY(name, Count, Displacement, rest, rest_names) \
  BESTRIDE_ROOTED(name, to_root, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(OneBlock, Count)), \
                  (BESTRIDE_RECEIVE_V(Count, Displacement)), (BESTRIDE_RECEIVED_V(Count, Displacement)), rest, rest_names)
#define BESTRIDE_SCATTER_ENTRY(name, Count, Displacement, rest, rest_names) \
  BESTRIDE_ROOTED(name, from_root, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(EqualBlocks, Count)), (BESTRIDE_RECEIVE(Count)), \
                  (BESTRIDE_RECEIVED(OneBlock, Count)), rest, rest_names)
#define BESTRIDE_SCATTERV_ENTRY(name, Count, Displacement, rest, rest_names) \
  BESTRIDE_ROOTED(name, from_root, (BESTRIDE_SEND_V(Count, Displacement)), (BESTRIDE_SENT_V(Count, Displacement)), \
                  (BESTRIDE_RECEIVE(Count)), (BESTRIDE_RECEIVED(OneBlock, Count)), rest, rest_names)
#define BESTRIDE_ALLGATHER_ENTRY(name, Count, Displacement, rest, rest_names) \
  BESTRIDE_AMONG_ALL(name, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(OneBlock, Count)), (BESTRIDE_RECEIVE(Count)), \
                     (BESTRIDE_RECEIVED(EqualBlocks, Count)), rest, rest_names)
#define BESTRIDE_ALLGATHERV_ENTRY(name, Count, Displacement, rest, rest_names) \
  BESTRIDE_AMONG_ALL(name, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(OneBlock, Count)), (BESTRIDE_RECEIVE_V(Count, Displacement)), \
                     (BESTRIDE_RECEIVED_V(Count, Displacement)), rest, rest_names)
#define BESTRIDE_ALLTOALL_ENTRY(name, Count, Displacement, rest, rest_names) \
  BESTRIDE_AMONG_ALL(name, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(EqualBlocks, Count)), (BESTRIDE_RECEIVE(Count)), \
                     (BESTRIDE_RECEIVED(EqualBlocks, Count)), rest, rest_names)
#define BESTRIDE_ALLTOALLV_ENTRY(name, Count, Displacement, rest, rest_names) \
  BESTRIDE_AMONG_ALL(name, (BESTRIDE_SEND_V(Count, Displacement)), (BESTRIDE_SENT_V(Count, Displacement)), \
                     (BESTRIDE_RECEIVE_V(Count, Displacement)), (BESTRIDE_RECEIVED_V(Count, Displacement)), rest, rest_names)

BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_GATHER_ENTRY, Gather, Igather)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_GATHERV_ENTRY, Gatherv, Igatherv)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_SCATTER_ENTRY, Scatter, Iscatter)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_SCATTERV_ENTRY, Scatterv, Iscatterv)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_ALLGATHER_ENTRY, Allgather, Iallgather)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_ALLGATHERV_ENTRY, Allgatherv, Iallgatherv)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_ALLTOALL_ENTRY, Alltoall, Ialltoall)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_ALLTOALLV_ENTRY, Alltoallv, Ialltoallv)
