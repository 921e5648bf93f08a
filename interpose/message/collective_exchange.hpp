// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the entries of collectives. The blocking, nonblocking and persistent forms differ in the arguments after
// the communicator (none; a request; an info and a request). These arguments decide when the completion of the call
// runs.
#include <mpi.h>

#include <initializer_list>
#include <memory>
#include <new>
#include <tuple>

#include "base/message.hpp"
#include "interpose/device/mpi_errors.hpp"
#include "interpose/device/transfer_batch.hpp"
#include "interpose/message/completion.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/objects/plan_cache.hpp"

namespace bestride::inline interpose {

inline MPI_Request* request_of() noexcept { return nullptr; }
inline MPI_Request* request_of(MPI_Request* request) noexcept { return request; }
inline MPI_Request* request_of(MPI_Info, MPI_Request* request) noexcept { return request; }

template <class... Tail>
constexpr bool persistent = sizeof...(Tail) == 2;
template <class... Tail>
constexpr bool blocking = sizeof...(Tail) == 0;

/// The completion of a collective: `Out` and `In` are its two directions.
template <class Out, class In>
struct CollectiveCompletion final : Completion {
  Out out;
  In in;
  void fill() noexcept override { out.fill(); }
  void complete(bool good, const MPI_Status*) noexcept override {
    if (good) in.complete();
    if (!persistent) {
      out.release();
      in.release();
    }
  }
  bool wants_status() const noexcept override { return false; }
  bool failed() const noexcept override { return out.failed() || in.failed(); }
  int raise_error() const override { return out.failed() ? out.raise_error() : in.raise_error(); }
};

/// Makes the call with the rewritten arguments. The completion runs after a blocking call; otherwise it is attached to
/// the request. Takes ownership of `given`, which lives until the library is done with the request, because the library
/// may read the rewritten arrays until then.
template <class Work, class Call, class... Tail>
int call_and_complete(Work* given, Call call, Tail... tail) {
  std::unique_ptr<Work> exchange(given);
  exchange->persistent = persistent<Tail...>;
  exchange->pending = !exchange->persistent;
  if (!exchange->persistent) {
    TransferBatch batch;
    exchange->fill();
  }
  if (exchange->failed()) return exchange->raise_error();
  int error = call(*exchange);
  if (error != MPI_SUCCESS) return error;
  if constexpr (blocking<Tail...>) {
    TransferBatch batch;
    exchange->complete(true, nullptr);
    if (const TransferPart* lost = batch.flush()) [[unlikely]]
      error = raise_error(lost->staging->comm());
  } else {
    attach(exchange.release(), *request_of(tail...));
  }
  return error;
}

/// A new exchange for which `prepare` returned true, or nullptr. *no_memory is set to true if memory is missing.
template <class Work, class Prepare>
Work* try_exchange(Prepare prepare, bool* no_memory) noexcept {
  auto* exchange = inject_failure(FailPoint::arrays) ? nullptr : new (std::nothrow) Work;
  try {
    if (!exchange) throw std::bad_alloc();
    if (prepare(*exchange)) return exchange;
  } catch (...) {
    *no_memory = true;
    warn_once("arrays", "no memory to rewrite a collective's arguments; it is left to the MPI library");
  }
  delete exchange;
  return nullptr;
}

/// A collective in any form. If `may_gain`, prepare(work) decides whether call(work) is made with rewritten arguments.
/// Otherwise forward() makes the call unchanged. If memory is missing, refuse() is called first: it does what
/// refuse_device_memory() does, for every buffer of the call.
template <class Work, class Prepare, class Call, class Forward, class Refuse, class... Tail>
int exchange_or_forward(bool may_gain, MPI_Comm comm, Prepare prepare, Call call, Forward forward, Refuse refuse,
                        Tail... tail) {
  bool no_memory = false;
  if (may_gain && (blocking<Tail...> || request_of(tail...)))
    if (Work* exchange = try_exchange<Work>(prepare, &no_memory)) return call_and_complete(exchange, call, tail...);
  if (no_memory)
    if (const int error = refuse(); error != MPI_SUCCESS) return error;
  const int error = forward();
  if (error == MPI_SUCCESS) runtime().comms.add_valid(comm);
  return error;
}

/// The neighbors of `comm`, or nullptr if it is not known to be a valid communicator with a topology.
inline const Neighbors* neighbors_of(MPI_Comm comm) noexcept {
  CommEntry* entry = runtime().comms.find(comm);
  if (!entry) return nullptr;
  const Neighbors& neighbors = entry->neighbors();
  return neighbors.known ? &neighbors : nullptr;
}

/// False if the MPI library takes longer with packed blocks of neighbors than with their datatypes, whatever they gain
/// as messages: 1.1 to 1.35 times as long with Intel MPI 2021.18 (bench/figures_one_node.md). Other libraries that are
/// no MPICH were not measured.
inline bool packed_neighbor_blocks_gain() noexcept { return runtime().library() != OneNodeLibrary::other; }

/// Call before an unchanged call is forwarded because memory is missing. Returns MPI_SUCCESS, or the error, already
/// raised, if a buffer is device memory that MPI can't access. The given elements of each buffer stand for the whole
/// buffer.
inline int refuse_device_memory(MPI_Comm comm,
                                std::initializer_list<std::tuple<const void*, std::int64_t, MPI_Datatype>> buffers) {
  if (!gpu_runtime_detected() || gpu_aware()) [[likely]]
    return MPI_SUCCESS;
  for (const auto& [buffer, count, type] : buffers)
    if (locate_buffer(buffer, count, find_or_add_type(type)).needs_device) {
      report_transfer_failure({"no memory to rewrite a collective's arguments"});
      return raise_error(comm);
    }
  return MPI_SUCCESS;
}

/// The traits of a collective between all ranks. What one member sends is received by other members in pieces that
/// depend on the library's algorithm, so nothing is packed.
inline constexpr CallTraits respelled_only{.packing = false};

/// True if the plan may give MPI other arguments for `count` elements of this type. Entries ask this before they
/// prepare anything, because some calls cost little more than the preparation. `peer`: a rank of `comm`, or
/// MPI_PROC_NULL.
inline bool may_gain(TypeEntry& type, std::int64_t count, CallKind kind, int peer, CommEntry& comm,
                     CallTraits traits) noexcept {
  if (count <= 0 || peer == MPI_PROC_NULL) return false;
  Plan* plan = find_plan(type, count);
  return plan && !plan->forward_only() &&
         plan->choose(in_exchange(kind), comm.to(peer), traits.packing ? Packing::possible : Packing::never) !=
             Strategy::forward;
}

}  // namespace bestride::inline interpose
