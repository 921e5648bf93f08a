// SPDX-License-Identifier: Apache-2.0
// MPI_Pack and MPI_Unpack: no message, so the whole call is ours when the arguments are sound.
#include <cstring>

#include "interpose/back/entries.hpp"
#include "interpose/back/gpu/packing.hpp"
#include "interpose/back/note.hpp"
#include "interpose/back/paranoid.hpp"
#include "interpose/back/thread_cache.hpp"

namespace bestride {
namespace {

/// What one call of either function comes to.
struct PackingCall {
  Plan* plan = nullptr;  ///< nullptr: any count of the type is one block
  const Packer* packer = nullptr;
  std::int64_t offset = 0;  ///< without a packer: of the one block
  std::int64_t bytes = 0;
  bool ours = false;
  const char* reason = "";

  void pack(std::byte* packed, const void* user) const noexcept {
    if (packer) packer->pack(packed, user);
    else std::memcpy(packed, static_cast<const std::byte*>(user) + offset, static_cast<std::size_t>(bytes));
  }
  void unpack(void* user, const std::byte* packed) const noexcept {
    if (packer) packer->unpack(user, packed);
    else std::memcpy(static_cast<std::byte*>(user) + offset, packed, static_cast<std::size_t>(bytes));
  }
};

/// `packed_size`, `position`: of the packed buffer; `user`: the other one. Not `ours`: MPI does it, and raises what there is to raise.
PackingCall decide(CallKind kind, const void* user, std::int64_t count, TypeEntry* type, const void* packed, std::int64_t packed_size,
                   std::int64_t position, MPI_Comm comm) noexcept {
  PackingCall call;
  const auto leave = [&call](const char* why) {
    call.reason = why;
    return call;
  };
  if (count <= 0) return leave("nothing to move");
  // An invalid communicator is MPI's error: one that MPI has not accepted yet is shown to it first.
  if (!runtime().comms.find(comm)) return leave("new communicator");
  const Layout* layout;
  if (type->state() == TypeEntry::State::contiguous) {
    layout = &type->element();
    if (__builtin_mul_overflow(count, layout->size(), &call.bytes)) return leave("bounds");
  } else {
    call.plan = find_plan(*type, count);
    if (!call.plan) return leave("first use");
    if (!call.plan->layout()) return leave("opaque");
    layout = call.plan->layout().get();
    call.bytes = layout->size();
    if (call.bytes == 0) return leave("nothing to move");
  }
  call.offset = layout->offset();
  if (!packed || position < 0 || position > packed_size || packed_size - position < call.bytes) return leave("bounds");
  if (!address_is_sound(user, *layout)) return leave("address");
  // One block is a memcpy here and one in MPI, behind 10 to 60 ns of checks and dispatch.
  const std::optional<Strategy>& forced = runtime().options().forced;
  const Strategy chosen = !layout->contiguous() ? call.plan->choose(kind, Distance::self) : forced.value_or(Strategy::pack);
  if (chosen != Strategy::pack) return leave(forced ? "forced" : "model");
  if (!layout->contiguous() && !(call.packer = call.plan->packer())) return leave("memory");
  call.ours = true;
  return call;
}

/// Types that nothing is known of, or nothing to be gained with.
bool is_mpis(const TypeEntry* type) noexcept {
  return !type || (type->leave_alone() && type->state() != TypeEntry::State::contiguous);
}

void note_packing(CallId id, CallKind kind, const PackingCall& call, double seconds) noexcept {
  note(id, call.plan, kind, call.ours ? Strategy::pack : Strategy::forward, call.reason, seconds);
}

template <auto slot, class Count>
int pack(CallId id, const void* user, Count count, MPI_Datatype type, void* packed, Count packed_size, Count* position,
         MPI_Comm comm) {
  if (gpu_in_play() && position) [[unlikely]] {
    std::int64_t bytes = 0;
    if (const auto error = pack_on_gpu(name(id), cuda::Direction::pack, const_cast<void*>(user), count, type, packed, packed_size, *position, comm, &bytes)) {
      if (*error == MPI_SUCCESS) *position += static_cast<Count>(bytes);
      return *error;
    }
  }
  TypeEntry* entry = runtime().types.find(type);
  if (is_mpis(entry) || !position) [[likely]] {
    if (reporting()) [[unlikely]] note_left_alone(id, count, type);
    return (next.*slot)(user, count, type, packed, packed_size, position, comm);
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
    error = (next.*slot)(user, count, type, packed, packed_size, position, comm);
    if (error == MPI_SUCCESS) runtime().comms.note(comm);
  }
  if (reporting()) [[unlikely]] note_packing(id, CallKind::pack, call, watch.seconds());
  return error;
}

template <auto slot, class Count>
int unpack(CallId id, const void* packed, Count packed_size, Count* position, void* user, Count count, MPI_Datatype type,
           MPI_Comm comm) {
  if (gpu_in_play() && position) [[unlikely]] {
    std::int64_t bytes = 0;
    if (const auto error = pack_on_gpu(name(id), cuda::Direction::unpack, user, count, type, const_cast<void*>(packed), packed_size, *position, comm, &bytes)) {
      if (*error == MPI_SUCCESS) *position += static_cast<Count>(bytes);
      return *error;
    }
  }
  TypeEntry* entry = runtime().types.find(type);
  // MPICH 4.0.2 divides by the type's size here, which may be 0: such a call is answered, not forwarded, once all its
  // arguments are known to be good.
  if (entry && entry->decoded_state() == TypeEntry::State::empty && position && *position >= 0 && *position <= packed_size &&
      count >= 0 && runtime().comms.find(comm))
    return MPI_SUCCESS;
  if (is_mpis(entry) || !position) [[likely]] {
    if (reporting()) [[unlikely]] note_left_alone(id, count, type);
    return (next.*slot)(packed, packed_size, position, user, count, type, comm);
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
    error = (next.*slot)(packed, packed_size, position, user, count, type, comm);
    if (error == MPI_SUCCESS) runtime().comms.note(comm);
  }
  if (reporting()) [[unlikely]] note_packing(id, CallKind::unpack, call, watch.seconds());
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
