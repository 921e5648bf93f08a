// SPDX-License-Identifier: Apache-2.0
// Broadcasts in every form, and the persistent forms of the other collectives that move data: staged where device memory is given. The
// others' blocking and nonblocking forms are in entries_collective.cpp and entries_alltoallw.cpp.
#include <tuple>

#include "interpose/back/gpu/late.hpp"
#include "interpose/back/gpu/late_entry.hpp"
#include "interpose/back/gpu/stage_moved.hpp"
#include "interpose/back/hierarchical/spread.hpp"

namespace bestride {
namespace {

template <auto slot, class Count, class... Tail>
int bcast(void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm, Tail... tail) {
  LibraryForm form = LibraryForm::as_called;
  const bool on_gpu = begin_late();
  if (may_spread()) [[unlikely]]
    if (const std::optional<int> done = spread_bcast(call_name<slot>, &form, buffer, count, type, root, comm, tail...)) return *done;
  if constexpr (blocking<Tail...>) before_library_collective(comm);
  if (on_gpu)
    if (const Members members = members_of(comm); members.known) {
      Region region{buffer};
      if (members.is_root(root))
        region = region_of(buffer, count, type, Use::read);
      else if (members.has_part(root))
        region = region_of(buffer, count, type, Use::written);
      const auto call = [&](const void*, void* staged) { return by_library<slot>(form, staged, count, type, root, comm, tail...); };
      if (const std::optional<int> done = stage(call_name<slot>, {}, region, comm, call, tail...)) return *done;
    }
  return by_library<slot>(form, buffer, count, type, root, comm, tail...);
}

template <auto slot, AtRoot only, class Out, class In, class... Tail>
int moved(const Out& out, const In& in, int root, MPI_Comm comm, Tail... tail) {
  const auto call = [&](const auto& out_arguments, const auto& in_arguments) {
    if constexpr (only == AtRoot::neither)
      return std::apply(next.*slot, std::tuple_cat(out_arguments, in_arguments, std::tuple(comm, tail...)));
    else
      return std::apply(next.*slot, std::tuple_cat(out_arguments, in_arguments, std::tuple(root, comm, tail...)));
  };
  const bool on_gpu = begin_late();
  [[maybe_unused]] LibraryForm form;  // of a persistent call there is one
  if (may_spread()) [[unlikely]]
    if (const std::optional<int> done = spread_moved<only>(call_name<slot>, &form, out, in, root, comm, tail...)) return *done;
  if (on_gpu)
    if (const std::optional<int> done = stage_moved<only>(call_name<slot>, out, in, root, comm, call, tail...)) return *done;
  return call(out.arguments(), in.arguments());
}

template <class Count>
using SentOne = OneBlock<const void*, Count>;
template <class Count>
using SentEqual = EqualBlocks<const void*, Count>;
template <class Count, class At>
using SentVarying = VaryingBlocks<const void*, Count, At>;
template <class Count>
using ReceivedOne = OneBlock<void*, Count>;
template <class Count>
using ReceivedEqual = EqualBlocks<void*, Count>;
template <class Count, class At>
using ReceivedVarying = VaryingBlocks<void*, Count, At>;

template <auto slot, class Count, class... Tail>
int gather(const void* send, Count send_count, MPI_Datatype send_type, void* receive, Count receive_count, MPI_Datatype receive_type, int root,
           MPI_Comm comm, Tail... tail) {
  return moved<slot, AtRoot::in>(SentOne<Count>{send, send_count, send_type}, ReceivedEqual<Count>{receive, receive_count, receive_type}, root,
                                 comm, tail...);
}
template <auto slot, class Count, class At, class... Tail>
int gatherv(const void* send, Count send_count, MPI_Datatype send_type, void* receive, const Count* receive_counts, const At* receive_at,
            MPI_Datatype receive_type, int root, MPI_Comm comm, Tail... tail) {
  return moved<slot, AtRoot::in>(SentOne<Count>{send, send_count, send_type},
                                 ReceivedVarying<Count, At>{receive, receive_counts, receive_at, receive_type}, root, comm, tail...);
}
template <auto slot, class Count, class... Tail>
int scatter(const void* send, Count send_count, MPI_Datatype send_type, void* receive, Count receive_count, MPI_Datatype receive_type, int root,
            MPI_Comm comm, Tail... tail) {
  return moved<slot, AtRoot::out>(SentEqual<Count>{send, send_count, send_type}, ReceivedOne<Count>{receive, receive_count, receive_type}, root,
                                  comm, tail...);
}
template <auto slot, class Count, class At, class... Tail>
int scatterv(const void* send, const Count* send_counts, const At* send_at, MPI_Datatype send_type, void* receive, Count receive_count,
             MPI_Datatype receive_type, int root, MPI_Comm comm, Tail... tail) {
  return moved<slot, AtRoot::out>(SentVarying<Count, At>{send, send_counts, send_at, send_type},
                                  ReceivedOne<Count>{receive, receive_count, receive_type}, root, comm, tail...);
}
template <auto slot, class Count, class... Tail>
int allgather(const void* send, Count send_count, MPI_Datatype send_type, void* receive, Count receive_count, MPI_Datatype receive_type,
              MPI_Comm comm, Tail... tail) {
  return moved<slot, AtRoot::neither>(SentOne<Count>{send, send_count, send_type}, ReceivedEqual<Count>{receive, receive_count, receive_type},
                                      MPI_PROC_NULL, comm, tail...);
}
template <auto slot, class Count, class At, class... Tail>
int allgatherv(const void* send, Count send_count, MPI_Datatype send_type, void* receive, const Count* receive_counts, const At* receive_at,
               MPI_Datatype receive_type, MPI_Comm comm, Tail... tail) {
  return moved<slot, AtRoot::neither>(SentOne<Count>{send, send_count, send_type},
                                      ReceivedVarying<Count, At>{receive, receive_counts, receive_at, receive_type}, MPI_PROC_NULL, comm, tail...);
}
template <auto slot, class Count, class... Tail>
int alltoall(const void* send, Count send_count, MPI_Datatype send_type, void* receive, Count receive_count, MPI_Datatype receive_type,
             MPI_Comm comm, Tail... tail) {
  return moved<slot, AtRoot::neither>(SentEqual<Count>{send, send_count, send_type}, ReceivedEqual<Count>{receive, receive_count, receive_type},
                                      MPI_PROC_NULL, comm, tail...);
}
template <auto slot, class Count, class At, class... Tail>
int alltoallv(const void* send, const Count* send_counts, const At* send_at, MPI_Datatype send_type, void* receive, const Count* receive_counts,
              const At* receive_at, MPI_Datatype receive_type, MPI_Comm comm, Tail... tail) {
  return moved<slot, AtRoot::neither>(SentVarying<Count, At>{send, send_counts, send_at, send_type},
                                      ReceivedVarying<Count, At>{receive, receive_counts, receive_at, receive_type}, MPI_PROC_NULL, comm, tail...);
}
template <auto slot, class Count, class At, class... Tail>
int alltoallw(const void* send, const Count* send_counts, const At* send_at, const MPI_Datatype* send_types, void* receive,
              const Count* receive_counts, const At* receive_at, const MPI_Datatype* receive_types, MPI_Comm comm, Tail... tail) {
  const auto call = [&](const void* staged_send, void* staged_receive) {
    return (next.*slot)(staged_send, send_counts, send_at, send_types, staged_receive, receive_counts, receive_at, receive_types, comm, tail...);
  };
  if (begin_late())
    if (const std::optional<int> done = stage_typed(call_name<slot>, send, send_counts, send_at, send_types, receive, receive_counts, receive_at, receive_types,
                                                    comm, call, tail...))
      return *done;
  return call(send, receive);
}

}  // namespace

std::span<const LateEntry> late_moved() noexcept {
  static const LateEntry all[] = {
#define BESTRIDE_LATE_MOVED(name, body) BESTRIDE_LATE_ENTRY(name, body)
#include "interpose/back/gpu/late.def"
  };
  return all;
}

}  // namespace bestride
