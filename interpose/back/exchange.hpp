// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the entries of collectives share. The blocking, nonblocking and persistent form of one differ in what stands after the
// communicator (nothing; a request; an info and a request), and that decides when what is owed is settled.
#include <mpi.h>

#include <initializer_list>
#include <new>
#include <tuple>

#include "base/message.hpp"
#include "interpose/back/fail.hpp"
#include "interpose/back/gpu/raise.hpp"
#include "interpose/back/gpu/together.hpp"
#include "interpose/back/owed.hpp"
#include "interpose/back/thread_cache.hpp"

namespace bestride {

inline MPI_Request* request_of() noexcept { return nullptr; }
inline MPI_Request* request_of(MPI_Request* request) noexcept { return request; }
inline MPI_Request* request_of(MPI_Info, MPI_Request* request) noexcept { return request; }

template <class... Tail>
constexpr bool persistent = sizeof...(Tail) == 2;
template <class... Tail>
constexpr bool blocking = sizeof...(Tail) == 0;

/// What a collective owes: `Out` and `In` are its two directions.
template <class Out, class In>
struct Exchange final : Owed {
  Out out;
  In in;
  void fill() noexcept override { out.fill(); }
  void settle(bool good, const MPI_Status*) noexcept override {
    if (good) in.settle();
    if (!persistent) {
      out.release();
      in.release();
    }
  }
  bool wants_status() const noexcept override { return false; }
  bool refused() const noexcept override { return out.refused() || in.refused(); }
  int raise() const noexcept override { return out.refused() ? out.raise() : in.raise(); }
};

/// Makes the call with the exchange's arguments and sees to what it owes. Takes ownership of `exchange`, which lives until the
/// request is done with: the library may read the rewritten arrays until then.
template <class Work, class Call, class... Tail>
int carry_out(Work* exchange, Call call, Tail... tail) {
  exchange->persistent = persistent<Tail...>;
  exchange->pending = !exchange->persistent;
  if (!exchange->persistent) {
    Together together;
    exchange->fill();
  }
  const bool refused = exchange->refused();
  int error = refused ? exchange->raise() : call(*exchange);
  if (error != MPI_SUCCESS || blocking<Tail...>) {
    if (error == MPI_SUCCESS && !refused) {
      Together together;
      exchange->settle(true, nullptr);
      if (const Part* lost = together.conclude()) [[unlikely]] error = raise(lost->staging->comm());
    }
    delete exchange;
  } else {
    hang(exchange, *request_of(tail...));
  }
  return error;
}

/// A new exchange that `prepare` says is worth making, or nullptr. *no_memory: for want of memory.
template <class Work, class Prepare>
Work* try_exchange(Prepare prepare, bool* no_memory = nullptr) noexcept {
  auto* exchange = fail_here(FailPoint::arrays) ? nullptr : new (std::nothrow) Work;
  try {
    if (!exchange) throw std::bad_alloc();
    if (prepare(*exchange)) return exchange;
  } catch (...) {
    if (no_memory) *no_memory = true;
    say_once("arrays", "no memory to rewrite a collective's arguments; it is left to the MPI library");
  }
  delete exchange;
  return nullptr;
}

/// The neighbours of `comm`, or nullptr if it is not known to be a valid communicator with a topology.
inline const Neighbours* neighbours_of(MPI_Comm comm) noexcept {
  // With device memory there is no leaving the first call to MPI.
  if (gpu_in_play() && comm != MPI_COMM_NULL) [[unlikely]] runtime().comms.note(comm);
  CommEntry* entry = runtime().comms.find(comm);
  if (!entry) return nullptr;
  const Neighbours& neighbours = entry->neighbours();
  return neighbours.known ? &neighbours : nullptr;
}

/// A call for which there was no memory is about to be forwarded as it is: MPI_SUCCESS, or, if a buffer is device memory that MPI can't take,
/// the error that is raised instead. Some elements of each buffer stand for all.
inline int refuse_on_gpu(MPI_Comm comm, std::initializer_list<std::tuple<const void*, std::int64_t, MPI_Datatype>> buffers) noexcept {
  if (!gpu_in_play() || gpu_aware()) [[likely]] return MPI_SUCCESS;
  for (const auto& [buffer, count, type] : buffers)
    if (find_place(buffer, count, known_type(type)).by_gpu) {
      say_not_moved({"no memory to rewrite a collective's arguments"});
      return raise(comm);
    }
  return MPI_SUCCESS;
}

/// How a collective between all ranks may be changed: what one member sends is received by others in pieces that follow the
/// library's algorithm, so nothing is packed.
inline constexpr Manner respelled_only{.trusting = false, .packing = false};

/// True if MPI may be handed something else for `count` of this type: the plan's answer, before anything is prepared for it. For calls
/// that cost little more than preparing does. `peer`: as for Side::prepare().
inline bool may_gain(TypeEntry& type, std::int64_t count, CallKind kind, int peer, CommEntry& comm, Manner manner) noexcept {
  if (count <= 0 || peer == MPI_PROC_NULL) return false;
  Plan* plan = find_plan(type, count);
  return plan && !plan->leave_alone() &&
         plan->choose(in_exchange(kind), comm.to(peer), manner.packing ? Packing::careful : Packing::never) != Strategy::forward;
}

}  // namespace bestride
