// SPDX-License-Identifier: Apache-2.0
// Neighbour collectives, blocking, nonblocking and persistent in one: the three forms differ in what stands after the communicator
// (nothing; a request; an info and a request), and that decides when the exchange is settled.
#include <new>
#include <tuple>

#include "base/message.hpp"
#include "interpose/back/entries.hpp"
#include "interpose/back/fail.hpp"
#include "interpose/back/neighbor.hpp"
#include "interpose/back/note.hpp"

namespace bestride {
namespace {

MPI_Request* request_of() noexcept { return nullptr; }
MPI_Request* request_of(MPI_Request* request) noexcept { return request; }
[[maybe_unused]] MPI_Request* request_of(MPI_Info, MPI_Request* request) noexcept { return request; }  // from MPI-4 on

template <class... Tail>
constexpr bool persistent = sizeof...(Tail) == 2;
template <class... Tail>
constexpr bool blocking = sizeof...(Tail) == 0;

/// Makes the call with the exchange's arguments and sees to what it owes. Takes ownership of `exchange`.
template <class Work, class Call, class... Tail>
int carry_out(Work* exchange, Call call, Tail... tail) {
  exchange->persistent = persistent<Tail...>;
  exchange->pending = !exchange->persistent;
  if (!exchange->persistent) exchange->fill();
  const int error = call(*exchange);
  if (error != MPI_SUCCESS || blocking<Tail...>) {
    if (error == MPI_SUCCESS) exchange->settle(true, nullptr);
    delete exchange;
  } else {
    hang(exchange, *request_of(tail...));
  }
  return error;
}

/// A new exchange that `prepare` says is worth making, or nullptr.
template <class Work, class Prepare>
Work* try_exchange(Prepare prepare) noexcept {
  auto* exchange = fail_here(FailPoint::arrays) ? nullptr : new (std::nothrow) Work;
  try {
    if (!exchange) throw std::bad_alloc();
    if (prepare(*exchange)) return exchange;
  } catch (...) {
    say_once("arrays", "no memory to rewrite a neighbour collective; it is left to the MPI library");
  }
  delete exchange;
  return nullptr;
}

template <class Blocks>
void note_all(CallId id, const Blocks& blocks) noexcept {
  for (const auto& side : blocks.sides())
    if (side.plan()) note(id, side, 0);
}

template <class Count>
bool any_worth_a_look(const MPI_Datatype* types, const Count* counts, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i)
    if (worth_a_look(types[i], counts[i])) return true;
  return false;
}

template <auto slot, class Count, class... Tail>
int alltoallw(CallId id, const void* send_buffer, const Count* send_counts, const MPI_Aint* send_at, const MPI_Datatype* send_types,
              void* receive_buffer, const Count* receive_counts, const MPI_Aint* receive_at, const MPI_Datatype* receive_types,
              MPI_Comm comm, Tail... tail) {
  using Work = Exchange<TypedBlocks<Outgoing, Count>, TypedBlocks<Incoming, Count>>;
  Work* exchange = nullptr;
  const Neighbours* neighbours = neighbours_of(comm);
  if (neighbours && send_counts && send_at && send_types && receive_counts && receive_at && receive_types &&
      (blocking<Tail...> || request_of(tail...)) &&
      (any_worth_a_look(send_types, send_counts, neighbours->destinations.size()) ||
       any_worth_a_look(receive_types, receive_counts, neighbours->sources.size())))
    exchange = try_exchange<Work>([&](Work& work) {
      const bool out = work.out.prepare(send_buffer, send_counts, send_at, send_types, neighbours->destinations, comm,
                                        persistent<Tail...>);
      const bool in = work.in.prepare(receive_buffer, receive_counts, receive_at, receive_types, neighbours->sources, comm,
                                      persistent<Tail...>);
      if (reporting()) [[unlikely]] {
        note_all(id, work.out);
        note_all(id, work.in);
      }
      return out || in;
    });
  if (!exchange) {
    const int error = (next.*slot)(send_buffer, send_counts, send_at, send_types, receive_buffer, receive_counts, receive_at,
                                   receive_types, comm, tail...);
    if (error == MPI_SUCCESS) runtime().comms.note(comm);
    return error;
  }
  return carry_out(
      exchange,
      [&](const Work& work) {
        return (next.*slot)(send_buffer, work.out.counts(), work.out.displacements(), work.out.types(), receive_buffer,
                            work.in.counts(), work.in.displacements(), work.in.types(), comm, tail...);
      },
      tail...);
}

/// The send side of an allgather: one message to all.
struct OneMessage {
  Outgoing side;
  void fill() noexcept { side.fill(); }
  void release() noexcept { side.release(); }
};

template <class Count>
bool prepare_one(OneMessage& out, const void* buffer, Count count, MPI_Datatype type, MPI_Comm comm, bool reused) noexcept {
  TypeEntry* entry = worth_a_look(type);
  if (!entry) return false;
  if (reused) entry->expect_reuse();
  return out.side.prepare(buffer, count, entry, MPI_ANY_SOURCE, comm, largest_count<Count>);
}

template <class Work>
void note_packed(CallId id, const Work& work) noexcept {
  note(id, work.plan(), CallKind::send, work ? Strategy::pack : Strategy::forward, "model", 0);
}

/// MPI_Neighbor_alltoall: block i lies i * count elements from the start, on both sides.
template <auto slot, class Count, class... Tail>
int alltoall(CallId id, const void* send_buffer, Count send_count, MPI_Datatype send_type, void* receive_buffer,
             Count receive_count, MPI_Datatype receive_type, MPI_Comm comm, Tail... tail) {
  using Blocks = PackedBlocks<Count, std::int64_t>;
  using Work = Exchange<Blocks, Blocks>;
  Work* exchange = nullptr;
  const Neighbours* neighbours = neighbours_of(comm);
  if (neighbours && (worth_a_look(send_type) || worth_a_look(receive_type)) && (blocking<Tail...> || request_of(tail...)))
    exchange = try_exchange<Work>([&](Work& work) {
      const auto prepare = [&](Blocks& blocks, CallKind kind, const void* base, Count count, MPI_Datatype type,
                               const std::vector<int>& ranks) {
        return blocks.prepare(
            kind, base, [count](std::size_t) { return std::int64_t{count}; },
            [count](std::size_t i) { return static_cast<std::int64_t>(i) * count; }, type, ranks, comm, persistent<Tail...>);
      };
      const bool out = prepare(work.out, CallKind::send, send_buffer, send_count, send_type, neighbours->destinations);
      const bool in = prepare(work.in, CallKind::receive, receive_buffer, receive_count, receive_type, neighbours->sources);
      if (reporting()) [[unlikely]] {
        note_packed(id, work.out);
        note_packed(id, work.in);
      }
      return out || in;
    });
  if (!exchange) {
    const int error = (next.*slot)(send_buffer, send_count, send_type, receive_buffer, receive_count, receive_type, comm, tail...);
    if (error == MPI_SUCCESS) runtime().comms.note(comm);
    return error;
  }
  if (exchange->out) {
    send_buffer = exchange->out.buffer();
    send_count = exchange->out.counts()[0];
    send_type = MPI_BYTE;
  }
  if (exchange->in) {
    receive_buffer = exchange->in.buffer();
    receive_count = exchange->in.counts()[0];
    receive_type = MPI_BYTE;
  }
  return carry_out(
      exchange,
      [&](const Work&) {
        return (next.*slot)(send_buffer, send_count, send_type, receive_buffer, receive_count, receive_type, comm, tail...);
      },
      tail...);
}

template <auto slot, class Count, class Displacement, class... Tail>
int alltoallv(CallId id, const void* send_buffer, const Count* send_counts, const Displacement* send_at, MPI_Datatype send_type,
              void* receive_buffer, const Count* receive_counts, const Displacement* receive_at, MPI_Datatype receive_type,
              MPI_Comm comm, Tail... tail) {
  using Blocks = PackedBlocks<Count, Displacement>;
  using Work = Exchange<Blocks, Blocks>;
  Work* exchange = nullptr;
  const Neighbours* neighbours = neighbours_of(comm);
  if (neighbours && send_counts && send_at && receive_counts && receive_at &&
      (worth_a_look(send_type) || worth_a_look(receive_type)) && (blocking<Tail...> || request_of(tail...)))
    exchange = try_exchange<Work>([&](Work& work) {
      const auto prepare = [&](Blocks& blocks, CallKind kind, const void* base, const Count* counts, const Displacement* at,
                               MPI_Datatype type, const std::vector<int>& ranks) {
        return blocks.prepare(
            kind, base, [counts](std::size_t i) { return std::int64_t{counts[i]}; },
            [at](std::size_t i) { return std::int64_t{at[i]}; }, type, ranks, comm, persistent<Tail...>);
      };
      const bool out = prepare(work.out, CallKind::send, send_buffer, send_counts, send_at, send_type, neighbours->destinations);
      const bool in =
          prepare(work.in, CallKind::receive, receive_buffer, receive_counts, receive_at, receive_type, neighbours->sources);
      if (reporting()) [[unlikely]] {
        note_packed(id, work.out);
        note_packed(id, work.in);
      }
      return out || in;
    });
  if (!exchange) {
    const int error = (next.*slot)(send_buffer, send_counts, send_at, send_type, receive_buffer, receive_counts, receive_at,
                                   receive_type, comm, tail...);
    if (error == MPI_SUCCESS) runtime().comms.note(comm);
    return error;
  }
  return carry_out(
      exchange,
      [&](const Work& work) {
        const auto& [out, in] = std::tie(work.out, work.in);
        return (next.*slot)(out ? out.buffer() : send_buffer, out ? out.counts() : send_counts,
                            out ? out.displacements() : send_at, out ? MPI_BYTE : send_type, in ? in.buffer() : receive_buffer,
                            in ? in.counts() : receive_counts, in ? in.displacements() : receive_at,
                            in ? MPI_BYTE : receive_type, comm, tail...);
      },
      tail...);
}

template <auto slot, class Count, class... Tail>
int allgather(CallId id, const void* send_buffer, Count send_count, MPI_Datatype send_type, void* receive_buffer,
              Count receive_count, MPI_Datatype receive_type, MPI_Comm comm, Tail... tail) {
  using Blocks = PackedBlocks<Count, std::int64_t>;
  using Work = Exchange<OneMessage, Blocks>;
  Work* exchange = nullptr;
  const Neighbours* neighbours = neighbours_of(comm);
  bool out = false;
  if (neighbours && (worth_a_look(send_type) || worth_a_look(receive_type)) && (blocking<Tail...> || request_of(tail...)))
    exchange = try_exchange<Work>([&](Work& work) {
      out = prepare_one(work.out, send_buffer, send_count, send_type, comm, persistent<Tail...>);
      const bool in = work.in.prepare(
          CallKind::receive, receive_buffer, [&](std::size_t) { return std::int64_t{receive_count}; },
          [&](std::size_t i) { return static_cast<std::int64_t>(i) * receive_count; }, receive_type, neighbours->sources, comm,
          persistent<Tail...>);
      if (reporting()) [[unlikely]] {
        note(id, work.out.side, 0);
        note_packed(id, work.in);
      }
      return out || in;
    });
  if (!exchange) {
    const int error = (next.*slot)(send_buffer, send_count, send_type, receive_buffer, receive_count, receive_type, comm, tail...);
    if (error == MPI_SUCCESS) runtime().comms.note(comm);
    return error;
  }
  if (out) {
    send_buffer = exchange->out.side.buffer();
    send_count = static_cast<Count>(exchange->out.side.count());
    send_type = exchange->out.side.type();
  }
  if (exchange->in) {
    receive_buffer = exchange->in.buffer();
    receive_count = exchange->in.counts()[0];
    receive_type = MPI_BYTE;
  }
  return carry_out(
      exchange,
      [&](const Work&) {
        return (next.*slot)(send_buffer, send_count, send_type, receive_buffer, receive_count, receive_type, comm, tail...);
      },
      tail...);
}

template <auto slot, class Count, class Displacement, class... Tail>
int allgatherv(CallId id, const void* send_buffer, Count send_count, MPI_Datatype send_type, void* receive_buffer,
               const Count* receive_counts, const Displacement* receive_at, MPI_Datatype receive_type, MPI_Comm comm,
               Tail... tail) {
  using Work = Exchange<OneMessage, PackedBlocks<Count, Displacement>>;
  Work* exchange = nullptr;
  const Neighbours* neighbours = neighbours_of(comm);
  bool out = false;
  if (neighbours && receive_counts && receive_at && (worth_a_look(send_type) || worth_a_look(receive_type)) &&
      (blocking<Tail...> || request_of(tail...)))
    exchange = try_exchange<Work>([&](Work& work) {
      out = prepare_one(work.out, send_buffer, send_count, send_type, comm, persistent<Tail...>);
      const bool in = work.in.prepare(
          CallKind::receive, receive_buffer, [&](std::size_t i) { return std::int64_t{receive_counts[i]}; },
          [&](std::size_t i) { return std::int64_t{receive_at[i]}; }, receive_type, neighbours->sources, comm,
          persistent<Tail...>);
      if (reporting()) [[unlikely]] {
        note(id, work.out.side, 0);
        note_packed(id, work.in);
      }
      return out || in;
    });
  if (!exchange) {
    const int error = (next.*slot)(send_buffer, send_count, send_type, receive_buffer, receive_counts, receive_at, receive_type,
                                   comm, tail...);
    if (error == MPI_SUCCESS) runtime().comms.note(comm);
    return error;
  }
  if (out) {
    send_buffer = exchange->out.side.buffer();
    send_count = static_cast<Count>(exchange->out.side.count());
    send_type = exchange->out.side.type();
  }
  return carry_out(
      exchange,
      [&](const Work& work) {
        const auto& in = work.in;
        return (next.*slot)(send_buffer, send_count, send_type, in ? in.buffer() : receive_buffer,
                            in ? in.counts() : receive_counts, in ? in.displacements() : receive_at,
                            in ? MPI_BYTE : receive_type, comm, tail...);
      },
      tail...);
}

}  // namespace
}  // namespace bestride

#define BESTRIDE_TAIL(...) __VA_ARGS__
// One form of the five: `pre` and `suffix` around the name, the parameters after the communicator and their names.
#define BESTRIDE_NEIGHBOR_FORM(pre, suffix, Count, Displacement, parameters, arguments) \
  extern "C" int bestride_entry_##pre##allgather##suffix(const void* sb, Count sc, MPI_Datatype st, void* rb, Count rc, \
                                                         MPI_Datatype rt, MPI_Comm comm BESTRIDE_TAIL parameters) { \
    using namespace bestride; \
    return allgather<&Calls::pre##allgather##suffix>(CallId::pre##allgather##suffix, sb, sc, st, rb, rc, rt, \
                                                     comm BESTRIDE_TAIL arguments); \
  } \
  extern "C" int bestride_entry_##pre##allgatherv##suffix(const void* sb, Count sc, MPI_Datatype st, void* rb, const Count* rc, \
                                                          const Displacement* rd, MPI_Datatype rt, \
                                                          MPI_Comm comm BESTRIDE_TAIL parameters) { \
    using namespace bestride; \
    return allgatherv<&Calls::pre##allgatherv##suffix>(CallId::pre##allgatherv##suffix, sb, sc, st, rb, rc, rd, rt, \
                                                       comm BESTRIDE_TAIL arguments); \
  } \
  extern "C" int bestride_entry_##pre##alltoall##suffix(const void* sb, Count sc, MPI_Datatype st, void* rb, Count rc, \
                                                        MPI_Datatype rt, MPI_Comm comm BESTRIDE_TAIL parameters) { \
    using namespace bestride; \
    return alltoall<&Calls::pre##alltoall##suffix>(CallId::pre##alltoall##suffix, sb, sc, st, rb, rc, rt, \
                                                   comm BESTRIDE_TAIL arguments); \
  } \
  extern "C" int bestride_entry_##pre##alltoallv##suffix(const void* sb, const Count* sc, const Displacement* sd, \
                                                         MPI_Datatype st, void* rb, const Count* rc, const Displacement* rd, \
                                                         MPI_Datatype rt, MPI_Comm comm BESTRIDE_TAIL parameters) { \
    using namespace bestride; \
    return alltoallv<&Calls::pre##alltoallv##suffix>(CallId::pre##alltoallv##suffix, sb, sc, sd, st, rb, rc, rd, rt, \
                                                     comm BESTRIDE_TAIL arguments); \
  } \
  extern "C" int bestride_entry_##pre##alltoallw##suffix(const void* sb, const Count* sc, const MPI_Aint* sd, \
                                                         const MPI_Datatype* st, void* rb, const Count* rc, const MPI_Aint* rd, \
                                                         const MPI_Datatype* rt, MPI_Comm comm BESTRIDE_TAIL parameters) { \
    using namespace bestride; \
    return alltoallw<&Calls::pre##alltoallw##suffix>(CallId::pre##alltoallw##suffix, sb, sc, sd, st, rb, rc, rd, rt, \
                                                     comm BESTRIDE_TAIL arguments); \
  }

BESTRIDE_NEIGHBOR_FORM(Neighbor_, , int, int, (), ())
BESTRIDE_NEIGHBOR_FORM(Ineighbor_, , int, int, (, MPI_Request* request), (, request))
#if MPI_VERSION >= 4
BESTRIDE_NEIGHBOR_FORM(Neighbor_, _init, int, int, (, MPI_Info info, MPI_Request* request), (, info, request))
BESTRIDE_NEIGHBOR_FORM(Neighbor_, _c, MPI_Count, MPI_Aint, (), ())
BESTRIDE_NEIGHBOR_FORM(Ineighbor_, _c, MPI_Count, MPI_Aint, (, MPI_Request* request), (, request))
BESTRIDE_NEIGHBOR_FORM(Neighbor_, _init_c, MPI_Count, MPI_Aint, (, MPI_Info info, MPI_Request* request), (, info, request))
#endif
