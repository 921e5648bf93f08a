// SPDX-License-Identifier: Apache-2.0
// MPI_Pack and MPI_Unpack: no message, so the whole call is ours when the arguments are sound.
#include "interpose/back/entries.hpp"
#include "interpose/back/note.hpp"
#include "interpose/back/paranoid.hpp"
#include "interpose/back/thread_cache.hpp"

namespace bestride {
namespace {

/// What one call of either function comes to.
struct PackingCall {
  Plan* plan = nullptr;
  const Packer* packer = nullptr;
  const char* reason = "";
};

/// `packed_size`, `position`: of the packed buffer; `user`: the other one. False: MPI does it, and raises what there is to raise.
bool decide(CallKind kind, const void* user, std::int64_t count, TypeEntry* type, const void* packed, std::int64_t packed_size,
            std::int64_t position, MPI_Comm comm, PackingCall* call) noexcept {
  const auto leave = [call](const char* why) {
    call->reason = why;
    return false;
  };
  if (count <= 0) return leave("nothing to move");
  // An invalid communicator is MPI's error: one that MPI has not accepted yet is shown to it first.
  if (!runtime().comms.find(comm)) return leave("new communicator");
  Plan* plan = find_plan(*type, count);
  if (!plan) return leave(type->leave_alone() ? "contiguous" : "first use");
  call->plan = plan;
  if (plan->leave_alone()) return leave("contiguous");
  if (!packed || position < 0 || position > packed_size || packed_size - position < plan->bytes()) return leave("bounds");
  if (!address_is_sound(user, *plan->layout())) return leave("address");
  if (plan->choose(kind, Distance::self) != Strategy::pack) return leave(runtime().options().forced ? "forced" : "model");
  call->packer = plan->packer();
  return call->packer ? true : leave("memory");
}

template <auto slot, class Count>
int pack(CallId id, const void* user, Count count, MPI_Datatype type, void* packed, Count packed_size, Count* position,
         MPI_Comm comm) {
  TypeEntry* entry = worth_a_look(type);
  if (!entry || !position) [[likely]] {
    if (reporting()) [[unlikely]] note_left_alone(id, count, type);
    return (next.*slot)(user, count, type, packed, packed_size, position, comm);
  }
  const Stopwatch watch(reporting());
  PackingCall call;
  int error = MPI_SUCCESS;
  if (decide(CallKind::pack, user, count, entry, packed, packed_size, *position, comm, &call)) {
    auto* at = static_cast<std::byte*>(packed) + *position;
    call.packer->pack(at, user);
    if (runtime().options().paranoid) check_packed(at, call.packer->size(), user, count, type);
    *position += static_cast<Count>(call.packer->size());
  } else {
    error = (next.*slot)(user, count, type, packed, packed_size, position, comm);
    if (error == MPI_SUCCESS) runtime().comms.note(comm);
  }
  if (reporting()) [[unlikely]]
    note(id, call.plan, CallKind::pack, call.packer ? Strategy::pack : Strategy::forward, call.reason, watch.seconds());
  return error;
}

template <auto slot, class Count>
int unpack(CallId id, const void* packed, Count packed_size, Count* position, void* user, Count count, MPI_Datatype type,
           MPI_Comm comm) {
  TypeEntry* entry = runtime().types.find(type);
  // MPICH 4.0.2 divides by the type's size here, which may be 0: such a call is answered, not forwarded, once all its
  // arguments are known to be good.
  if (entry && entry->decoded_state() == TypeEntry::State::empty && position && *position >= 0 && *position <= packed_size &&
      count >= 0 && runtime().comms.find(comm))
    return MPI_SUCCESS;
  if (!entry || entry->leave_alone() || !position) [[likely]] {
    if (reporting()) [[unlikely]] note_left_alone(id, count, type);
    return (next.*slot)(packed, packed_size, position, user, count, type, comm);
  }
  const Stopwatch watch(reporting());
  PackingCall call;
  int error = MPI_SUCCESS;
  if (decide(CallKind::unpack, user, count, entry, packed, packed_size, *position, comm, &call)) {
    const auto* at = static_cast<const std::byte*>(packed) + *position;
    call.packer->unpack(user, at);
    if (runtime().options().paranoid)
      check_unpacked(const_cast<std::byte*>(at), call.packer->size(), user, count, type);
    *position += static_cast<Count>(call.packer->size());
  } else {
    error = (next.*slot)(packed, packed_size, position, user, count, type, comm);
    if (error == MPI_SUCCESS) runtime().comms.note(comm);
  }
  if (reporting()) [[unlikely]]
    note(id, call.plan, CallKind::unpack, call.packer ? Strategy::pack : Strategy::forward, call.reason, watch.seconds());
  return error;
}

}  // namespace
}  // namespace bestride

#define BESTRIDE_PACK_ENTRIES(suffix, Count) \
  extern "C" int bestride_entry_Pack##suffix(const void* in, Count count, MPI_Datatype type, void* out, Count size, \
                                             Count* position, MPI_Comm comm) { \
    using namespace bestride; \
    return pack<&Calls::Pack##suffix>(CallId::Pack##suffix, in, count, type, out, size, position, comm); \
  } \
  extern "C" int bestride_entry_Unpack##suffix(const void* in, Count size, Count* position, void* out, Count count, \
                                               MPI_Datatype type, MPI_Comm comm) { \
    using namespace bestride; \
    return unpack<&Calls::Unpack##suffix>(CallId::Unpack##suffix, in, size, position, out, count, type, comm); \
  }

BESTRIDE_PACK_ENTRIES(, int)
#if MPI_VERSION >= 4
BESTRIDE_PACK_ENTRIES(_c, MPI_Count)
#endif
