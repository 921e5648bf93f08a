// SPDX-License-Identifier: Apache-2.0
// Gather, scatter, allgather and alltoall, with equal and with varying blocks, blocking and nonblocking. Each direction
// is respelled if that is predicted to pay. Not here: broadcasts, which MPICH packs as a whole, so that respelling
// gains nothing (docs/strategies.md); reductions, because the operation is called with the datatype; and the persistent
// forms (quirks::persistent_collectives_free_types).
#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <tuple>

#include "interpose/calls/collective_entry.hpp"
#include "interpose/collectives/dispatch_moved.hpp"
#include "interpose/collectives/left_reason.hpp"
#include "interpose/message/collective_exchange.hpp"
#include "interpose/message/report_entry.hpp"
#include "interpose/message/respelled_blocks.hpp"
#include "interpose/message/shadowed_collective.hpp"
#include "interpose/mpi/quirks.hpp"

namespace bestride::inline interpose {
namespace {

/// One call, and which of its directions are respelled.
template <class GivenOut, class GivenIn>
class CollectiveCall {
 public:
  CollectiveCall(const GivenOut& out, const GivenIn& in) noexcept
      : given_out_(out), given_in_(in), out_(out), in_(in) {}

  /// True if MPI is given other arguments than the user's. `out`, `in`: the types' entries if the direction is
  /// significant and may gain, else nullptr.
  bool prepare(const CommEntry& known, MPI_Comm comm, TypeEntry* out, TypeEntry* in) noexcept {
    if (out && (out->decoded_state() != TypeEntry::State::useful || given_out_.longest(known.size()) < 0))
      out = nullptr;
    if (in && (in->decoded_state() != TypeEntry::State::useful || given_in_.longest(known.size()) < 0)) in = nullptr;
    // It is an error to send and receive the same bytes. If the types are equal, the library detects it by comparing
    // addresses, and which addresses it compares depends on the function. So a call with overlapping buffers of the
    // same type is left unchanged.
    if (out && out == in && overlap(*out, known.size())) return false;
    try {
      if (inject_failure(FailPoint::arrays)) throw std::bad_alloc();
      sends_ = out && out_.prepare(*out, comm, known.size());
      receives_ = in && in_.prepare(*in, comm, known.size());
    } catch (...) {
      warn_once("arrays", "no memory to rewrite a collective's arguments; it is left to the MPI library");
      return sends_ = receives_ = false;
    }
    return sends_ || receives_;
  }
  bool keeps_arguments() const noexcept {
    return (sends_ && GivenOut::has_arrays) || (receives_ && GivenIn::has_arrays);
  }
  template <class Call>
  int call_and_complete(Call call) const {
    return call(sends_ ? out_.arguments() : given_out_.arguments(),
                receives_ ? in_.arguments() : given_in_.arguments());
  }
  void record_in_report(CallId id, double seconds) const noexcept {
    if (out_.endpoint().plan()) record(id, out_.endpoint(), seconds);
    if (in_.endpoint().plan()) record(id, in_.endpoint(), out_.endpoint().plan() ? 0 : seconds);
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

/// Keeps the rewritten counts and displacements of a call until its request is complete, because the library may read
/// them until then.
template <class Work>
struct ArgumentKeeper final : Completion {
  explicit ArgumentKeeper(Work&& given) noexcept : work(std::move(given)) {}
  void fill() noexcept override {}
  void complete(bool, const MPI_Status*) noexcept override {}
  bool wants_status() const noexcept override { return false; }
  Work work;
};

/// Moves from `work`. If there is no memory, reports it, returns nullptr and leaves `work` unchanged.
template <class Work>
ArgumentKeeper<Work>* keep(Work& work) noexcept {
  auto* kept =
      inject_failure(FailPoint::completion) ? nullptr : new (std::nothrow) ArgumentKeeper<Work>(std::move(work));
  if (!kept) warn_once("completion", "no memory for a completion record; such calls are left to the MPI library");
  return kept;
}

template <AtRoot only, class Out, class In>
constexpr Collective collective_of() noexcept {
  if (only == AtRoot::in) return Collective::gather;
  if (only == AtRoot::out) return Collective::scatter;
  if (Out::many) return Collective::alltoall;
  return In::has_arrays ? Collective::allgatherv : Collective::allgather;
}

/// For a call that is left as it is, because the types have no gaps.
template <AtRoot only, class... Tail, class Out, class In>
LeftCall describe(const Out& out, const In& in, int root, MPI_Comm comm) noexcept {
  const CommEntry* const entry = runtime().comms.find(comm);
  const int ranks = entry ? std::max(1, entry->size()) : 1;
  // The direction whose arguments say the most.
  const bool sends = only == AtRoot::neither ? Out::many && out.buffer != MPI_IN_PLACE
                                             : (only == AtRoot::out) == (entry && entry->rank() == root);
  const bool has_block = only != AtRoot::neither && (sends ? !Out::many : !In::many);
  std::int64_t bytes = sends ? bytes_of(out, ranks) : bytes_of(in, ranks);
  constexpr bool same_on_all = !Out::has_arrays && (!In::has_arrays || (only == AtRoot::neither && !Out::many));
  if (has_block && same_on_all) bytes *= ranks;
  return {bytes, left_reason({comm, collective_of<only, Out, In>(), same_on_all ? std::optional(bytes) : std::nullopt,
                              blocking<Tail...>, Out::many && In::many && out.buffer == MPI_IN_PLACE})};
}

/// Calls the library's function.
template <Calls& via, auto slot, AtRoot only, class OutArguments, class InArguments, class... Tail>
[[gnu::always_inline]] inline int call_library(const OutArguments& out, const InArguments& in,
                                               [[maybe_unused]] int root, MPI_Comm comm, Tail... tail) {
  const auto make = [](auto... arguments) { return inside(via.*slot, arguments...); };
  if constexpr (only == AtRoot::neither)
    return std::apply(make, std::tuple_cat(out, in, std::tuple(comm, tail...)));
  else
    return std::apply(make, std::tuple_cat(out, in, std::tuple(root, comm, tail...)));
}

/// A call that is not left to the library at once.
template <Calls& via, auto slot, AtRoot only, class Out, class In, class... Tail>
[[gnu::noinline]] int full_collective(FirstStep first, CallId id, const Out& out, const In& in, int root, MPI_Comm comm,
                                      Tail... tail) {
  const auto call = [&](const auto& out_arguments, const auto& in_arguments) {
    return call_library<via, slot, only>(out_arguments, in_arguments, root, comm, tail...);
  };
  if (first == FirstStep::dispatch)
    if (const std::optional<int> done = dispatch_moved<only>(name(id), out, in, root, comm, tail...)) return *done;
  if constexpr (blocking<Tail...>)
    leave_to_library<via>(comm, collective_of<only, Out, In>(),
                          [&](const CommEntry& entry) { return refuses_moved<only>(entry, out, in, root); });
  if (gpu_runtime_detected()) [[unlikely]]
    if (const std::optional<int> done = call_with_shadowed_blocks<only>(name(id), out, in, root, comm, call, tail...))
      return *done;
  const auto unchanged = [&] {
    return call_and_record(
        name(id), [&] { return call(out.arguments(), in.arguments()); },
        [&] { return describe<only, Tail...>(out, in, root, comm); });
  };
  TypeEntry* out_entry = find_candidate(out.type);
  TypeEntry* in_entry = find_candidate(in.type);
  if (!out_entry && !in_entry) [[likely]]
    return unchanged();
  CommEntry* known = runtime().comms.find(comm);
  if (!known || known->size() < 2 || !(blocking<Tail...> || request_of(tail...))) {
    const int error = unchanged();
    if (error == MPI_SUCCESS) runtime().comms.add_valid(comm);
    return error;
  }
  // Arguments that are not significant on this rank are ignored. For an alltoall with MPI_IN_PLACE, the library copies
  // one packed block at a time.
  const bool at_root = known->rank() == root, in_place = Out::many && In::many && out.buffer == MPI_IN_PLACE;
  if ((only == AtRoot::out && !at_root) || out.buffer == MPI_IN_PLACE) out_entry = nullptr;
  if ((only == AtRoot::in && !at_root) || in.buffer == MPI_IN_PLACE || in_place ||
      (quirks::allgatherv_counts_by_extent && collective_of<only, Out, In>() == Collective::allgatherv))
    in_entry = nullptr;
  const auto may = [&](TypeEntry* entry, const auto& given, CallKind kind) {
    return entry && may_gain(*entry, given.longest(known->size()), kind, MPI_ANY_SOURCE, *known, respelled_only);
  };
  if (!reporting() && !may(out_entry, out, CallKind::send) && !may(in_entry, in, CallKind::receive))
    return call(out.arguments(), in.arguments());

  using Work = CollectiveCall<Out, In>;
  const Stopwatch watch(reporting());
  Work work(out, in);
  std::unique_ptr<ArgumentKeeper<Work>> kept;
  int error;
  if (work.prepare(*known, comm, out_entry, in_entry) &&
      (blocking<Tail...> || !work.keeps_arguments() || (kept = std::unique_ptr<ArgumentKeeper<Work>>(keep(work)))))
    error = kept ? kept->work.call_and_complete(call) : work.call_and_complete(call);
  else
    error = call(out.arguments(), in.arguments());
  if (reporting()) [[unlikely]]
    (kept ? kept->work : work).record_in_report(id, watch.seconds());
  if (kept && error == MPI_SUCCESS) attach(kept.release(), *request_of(tail...));
  return error;
}

template <Calls& via, auto slot, AtRoot only, class Out, class In, class... Tail>
[[gnu::always_inline]] inline int collective(CallId id, const Out& out, const In& in, int root, MPI_Comm comm,
                                             Tail... tail) {
  const auto as_called = [&] {
    return call_library<via, slot, only>(out.arguments(), in.arguments(), root, comm, tail...);
  };
  CommEntry* const entry = runtime().comms.find(comm);
  const FirstStep first = first_step<via, Tail...>(
      comm, entry, collective_of<only, Out, In>(), bytes_moved<only>(entry, out, in, root),
      [&] {
        // A type may be respelled.
        return gpu_runtime_detected() || find_candidate(out.type) || (in.type != out.type && find_candidate(in.type));
      },
      [&](const CommEntry& on) { return refuses_moved<only>(on, out, in, root); });
  if (first == FirstStep::call_library) return as_called();
  return full_collective<via, slot, only>(first, id, out, in, root, comm, tail...);
}
template <Calls& via, auto slot, class Out, class In, class... Tail>
int to_root(CallId id, const Out& out, const In& in, int root, MPI_Comm comm, Tail... tail) {
  return collective<via, slot, AtRoot::in>(id, out, in, root, comm, tail...);
}
template <Calls& via, auto slot, class Out, class In, class... Tail>
int from_root(CallId id, const Out& out, const In& in, int root, MPI_Comm comm, Tail... tail) {
  return collective<via, slot, AtRoot::out>(id, out, in, root, comm, tail...);
}
template <Calls& via, auto slot, class Out, class In, class... Tail>
int among_all(CallId id, const Out& out, const In& in, MPI_Comm comm, Tail... tail) {
  return collective<via, slot, AtRoot::neither>(id, out, in, MPI_PROC_NULL, comm, tail...);
}

}  // namespace
}  // namespace bestride::inline interpose

#define BESTRIDE_GATHER_ENTRY(name, Count, Displacement, rest, rest_names)                                            \
  BESTRIDE_ROOTED(name, to_root, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(OneBlock, Count)), (BESTRIDE_RECEIVE(Count)), \
                  (BESTRIDE_RECEIVED(EqualBlocks, Count)), rest, rest_names)
#define BESTRIDE_GATHERV_ENTRY(name, Count, Displacement, rest, rest_names)                                    \
  BESTRIDE_ROOTED(name, to_root, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(OneBlock, Count)),                     \
                  (BESTRIDE_RECEIVE_V(Count, Displacement)), (BESTRIDE_RECEIVED_V(Count, Displacement)), rest, \
                  rest_names)
#define BESTRIDE_SCATTER_ENTRY(name, Count, Displacement, rest, rest_names)                     \
  BESTRIDE_ROOTED(name, from_root, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(EqualBlocks, Count)), \
                  (BESTRIDE_RECEIVE(Count)), (BESTRIDE_RECEIVED(OneBlock, Count)), rest, rest_names)
#define BESTRIDE_SCATTERV_ENTRY(name, Count, Displacement, rest, rest_names)                                       \
  BESTRIDE_ROOTED(name, from_root, (BESTRIDE_SEND_V(Count, Displacement)), (BESTRIDE_SENT_V(Count, Displacement)), \
                  (BESTRIDE_RECEIVE(Count)), (BESTRIDE_RECEIVED(OneBlock, Count)), rest, rest_names)
#define BESTRIDE_ALLGATHER_ENTRY(name, Count, Displacement, rest, rest_names)                   \
  BESTRIDE_AMONG_ALL(name, among_all, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(OneBlock, Count)), \
                     (BESTRIDE_RECEIVE(Count)), (BESTRIDE_RECEIVED(EqualBlocks, Count)), rest, rest_names)
#define BESTRIDE_ALLGATHERV_ENTRY(name, Count, Displacement, rest, rest_names)                                    \
  BESTRIDE_AMONG_ALL(name, among_all, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(OneBlock, Count)),                   \
                     (BESTRIDE_RECEIVE_V(Count, Displacement)), (BESTRIDE_RECEIVED_V(Count, Displacement)), rest, \
                     rest_names)
#define BESTRIDE_ALLTOALL_ENTRY(name, Count, Displacement, rest, rest_names)                       \
  BESTRIDE_AMONG_ALL(name, among_all, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(EqualBlocks, Count)), \
                     (BESTRIDE_RECEIVE(Count)), (BESTRIDE_RECEIVED(EqualBlocks, Count)), rest, rest_names)
#define BESTRIDE_ALLTOALLV_ENTRY(name, Count, Displacement, rest, rest_names)                                         \
  BESTRIDE_AMONG_ALL(name, among_all, (BESTRIDE_SEND_V(Count, Displacement)), (BESTRIDE_SENT_V(Count, Displacement)), \
                     (BESTRIDE_RECEIVE_V(Count, Displacement)), (BESTRIDE_RECEIVED_V(Count, Displacement)), rest,     \
                     rest_names)

BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_GATHER_ENTRY, Gather, Igather)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_GATHERV_ENTRY, Gatherv, Igatherv)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_SCATTER_ENTRY, Scatter, Iscatter)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_SCATTERV_ENTRY, Scatterv, Iscatterv)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_ALLGATHER_ENTRY, Allgather, Iallgather)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_ALLGATHERV_ENTRY, Allgatherv, Iallgatherv)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_ALLTOALL_ENTRY, Alltoall, Ialltoall)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_ALLTOALLV_ENTRY, Alltoallv, Ialltoallv)
