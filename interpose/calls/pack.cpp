// SPDX-License-Identifier: Apache-2.0
// MPI_Pack and MPI_Unpack. No message is sent, so Bestride does the whole call if the arguments are valid.
#include <cstring>

#include "base/copy.hpp"
#include "interpose/calls/entry.hpp"
#include "interpose/message/device_pack.hpp"
#include "interpose/message/paranoid.hpp"
#include "interpose/message/report_entry.hpp"
#include "interpose/mpi/quirks.hpp"
#include "interpose/objects/plan_cache.hpp"

namespace bestride::inline interpose {
namespace {

/// The decision for one call of either function.
struct PackingCall {
  Plan* plan = nullptr;  ///< nullptr: any count of the type is one block
  const Packer* packer = nullptr;
  std::int64_t offset = 0;  ///< without a packer: offset of the one block
  std::int64_t bytes = 0;
  bool ours = false;
  const char* reason = "";

  void pack(std::byte* packed, const void* user) const noexcept {
    if (packer)
      packer->pack(packed, user);
    else
      copy_bytes(packed, static_cast<const std::byte*>(user) + offset, static_cast<std::size_t>(bytes));
  }
  void unpack(void* user, const std::byte* packed) const noexcept {
    if (packer)
      packer->unpack(user, packed);
    else
      copy_bytes(static_cast<std::byte*>(user) + offset, packed, static_cast<std::size_t>(bytes));
  }
};

/// `packed_size`, `position`: of the packed buffer; `user`: the other buffer. If not `ours`, MPI does the call and
/// raises its errors.
PackingCall decide(CallKind kind, const void* user, std::int64_t count, TypeEntry* type, const void* packed,
                   std::int64_t packed_size, std::int64_t position, MPI_Comm comm) noexcept {
  PackingCall call;
  const auto forward_because = [&call](const char* why) {
    call.reason = why;
    return call;
  };
  if (count <= 0) return forward_because("nothing to move");
  // An invalid communicator is MPI's error, so a communicator that MPI has not accepted yet is passed to MPI first.
  if (!runtime().comms.find(comm)) return forward_because("new communicator");
  const Layout* layout;
  if (type->state() == TypeEntry::State::contiguous) {
    layout = &type->element();
    if (__builtin_mul_overflow(count, layout->size(), &call.bytes)) return forward_because("bounds");
  } else {
    call.plan = find_plan(*type, count);
    if (!call.plan) return forward_because("first use");
    if (!call.plan->layout()) return forward_because("opaque");
    layout = call.plan->layout().get();
    call.bytes = layout->size();
    if (call.bytes == 0) return forward_because("nothing to move");
  }
  call.offset = layout->offset();
  if (!packed || position < 0 || position > packed_size || packed_size - position < call.bytes)
    return forward_because("bounds");
  if (!address_is_plausible(user, *layout)) return forward_because("address");
  // One block is one memcpy, here and in MPI; in MPI it comes after 10 to 60 ns of checks and dispatch.
  const std::optional<Strategy>& forced = runtime().options().forced;
  const Strategy chosen = !layout->contiguous()         ? call.plan->choose(kind, Distance::self)
                          : forced == Strategy::forward ? Strategy::forward
                                                        : Strategy::pack;
  if (chosen != Strategy::pack) return forward_because(forced ? "forced" : "model");
  if (!layout->contiguous() && !(call.packer = call.plan->packer())) return forward_because("memory");
  call.ours = true;
  return call;
}

/// True for types that are unknown or for which packing by Bestride gains nothing.
bool is_forwarded(const TypeEntry* type) noexcept {
  return !type || (type->forward_only() && type->state() != TypeEntry::State::contiguous);
}

void record_packing(CallId id, const PackingCall& call, double seconds) noexcept {
  record(id, call.plan, call.ours ? Strategy::pack : Strategy::forward, call.reason, seconds);
}

template <Calls& via, auto slot, class Count>
int pack(CallId id, const void* user, Count count, MPI_Datatype type, void* packed, Count packed_size, Count* position,
         MPI_Comm comm) {
  if (gpu_runtime_detected() && position) [[unlikely]] {
    std::int64_t bytes = 0;
    if (const auto error = pack_on_gpu(name(id), Direction::pack, const_cast<void*>(user), count, type, packed,
                                       packed_size, *position, comm, &bytes)) {
      if (*error == MPI_SUCCESS) *position += static_cast<Count>(bytes);
      return *error;
    }
  }
  TypeEntry* entry = runtime().types.find(type);
  if (is_forwarded(entry) || !position) [[likely]] {
    if (reporting()) [[unlikely]]
      record_forwarded(id, count, type);
    return (via.*slot)(user, count, type, packed, packed_size, position, comm);
  }
  const Stopwatch watch(reporting());
  const PackingCall call = decide(CallKind::pack, user, count, entry, packed, packed_size, *position, comm);
  int error = MPI_SUCCESS;
  if (call.ours) {
    auto* at = static_cast<std::byte*>(packed) + *position;
    call.pack(at, user);
    if (runtime().options().paranoid) check_packed(at, call.bytes, user, count, type);
    *position += static_cast<Count>(call.bytes);
  } else {
    error = (via.*slot)(user, count, type, packed, packed_size, position, comm);
    if (error == MPI_SUCCESS) runtime().comms.add_valid(comm);
  }
  if (reporting()) [[unlikely]]
    record_packing(id, call, watch.seconds());
  return error;
}

template <Calls& via, auto slot, class Count>
int unpack(CallId id, const void* packed, Count packed_size, Count* position, void* user, Count count,
           MPI_Datatype type, MPI_Comm comm) {
  if (gpu_runtime_detected() && position) [[unlikely]] {
    std::int64_t bytes = 0;
    if (const auto error = pack_on_gpu(name(id), Direction::unpack, user, count, type, const_cast<void*>(packed),
                                       packed_size, *position, comm, &bytes)) {
      if (*error == MPI_SUCCESS) *position += static_cast<Count>(bytes);
      return *error;
    }
  }
  TypeEntry* entry = runtime().types.find(type);
  // Returns success if all arguments are known to be valid.
  if (quirks::unpack_divides_by_size && entry && entry->bytes() == 0 && position && *position >= 0 &&
      *position <= packed_size && count >= 0 && runtime().comms.find(comm))
    return MPI_SUCCESS;
  if (is_forwarded(entry) || !position) [[likely]] {
    if (reporting()) [[unlikely]]
      record_forwarded(id, count, type);
    return (via.*slot)(packed, packed_size, position, user, count, type, comm);
  }
  const Stopwatch watch(reporting());
  const PackingCall call = decide(CallKind::unpack, user, count, entry, packed, packed_size, *position, comm);
  int error = MPI_SUCCESS;
  if (call.ours) {
    const auto* at = static_cast<const std::byte*>(packed) + *position;
    call.unpack(user, at);
    if (runtime().options().paranoid) check_unpacked(const_cast<std::byte*>(at), call.bytes, user, count, type);
    *position += static_cast<Count>(call.bytes);
  } else {
    error = (via.*slot)(packed, packed_size, position, user, count, type, comm);
    if (error == MPI_SUCCESS) runtime().comms.add_valid(comm);
  }
  if (reporting()) [[unlikely]]
    record_packing(id, call, watch.seconds());
  return error;
}

}  // namespace
}  // namespace bestride::inline interpose

// These calls are local, so nothing has to be done before them.
#define BESTRIDE_LOCAL_ENTRY(name, body, parameters, arguments) \
  BESTRIDE_DEFINE_ENTRIES(name, BESTRIDE_LOCAL_ENTRY_OF, body, parameters, arguments)
#define BESTRIDE_LOCAL_ENTRY_OF(entry, calls, name, body, parameters, arguments) \
  extern "C" int entry parameters {                                              \
    using namespace bestride;                                                    \
    return body<calls, &Calls::name>(CallId::name, BESTRIDE_UNWRAP arguments);   \
  }
#define BESTRIDE_PACK_ENTRIES(suffix, Count)                                                                   \
  BESTRIDE_LOCAL_ENTRY(                                                                                        \
      Pack##suffix, pack,                                                                                      \
      (const void* in, Count count, MPI_Datatype type, void* out, Count size, Count* position, MPI_Comm comm), \
      (in, count, type, out, size, position, comm))                                                            \
  BESTRIDE_LOCAL_ENTRY(                                                                                        \
      Unpack##suffix, unpack,                                                                                  \
      (const void* in, Count size, Count* position, void* out, Count count, MPI_Datatype type, MPI_Comm comm), \
      (in, size, position, out, count, type, comm))

BESTRIDE_PACK_ENTRIES(, int)
BESTRIDE_PACK_ENTRIES(_c, MPI_Count)
