// SPDX-License-Identifier: Apache-2.0
#include "interpose/engine/engine.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "interpose/device/buffer_location.hpp"
#include "interpose/engine/comparison.hpp"
#include "interpose/engine/transport_types.hpp"
#include "interpose/mpi/brief_mutex.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/mpi/imports.hpp"
#include "interpose/objects/address.hpp"
#include "interpose/objects/plan_cache.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {
namespace {

using Create = Status(const Operations* operations, void* context, TransportType* type);
using GetVersion = void(unsigned* major, unsigned* minor, unsigned* release);

void* library_create = nullptr;
/// The library's functions: one set for all types.
Operations library{};

/// One side of a message, from start to finish.
struct Message {
  std::shared_ptr<ServedType> type;
  const Packer* packer = nullptr;  ///< nullptr: the library packs, and its time is measured
  std::byte* user = nullptr;
  PlanRef plan;
  void* state = nullptr;  ///< of the library's functions: they count the references to the type
  bool compared = false;  ///< with BESTRIDE_PARANOID
  bool sampled = false;   ///< with BESTRIDE_REPORT
  Message* next = nullptr;
};

/// Memory for messages. That of messages that have ended is kept for later ones: as many as there were at once.
class MessagePool {
 public:
  /// nullptr: no memory.
  Message* take() noexcept {
    if (inject_failure(FailPoint::message)) return nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (Message* const kept = kept_) {
        kept_ = kept->next;
        return kept;
      }
    }
    return new (std::nothrow) Message;
  }
  void give_back(Message* message) noexcept {
    const std::lock_guard lock(mutex_);
    message->next = kept_;
    kept_ = message;
  }

 private:
  BriefMutex mutex_;
  Message* kept_ = nullptr;
};
constinit MessagePool messages;

// What UCX is given as the state of a message: a Message; or, with a mark, the state of the library's functions, or
// with both marks a Message that measures them.
constexpr std::uintptr_t library_mark = 1, measured_mark = 2;
void* with_marks(void* state, std::uintptr_t marks) noexcept {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(state) | marks);
}
bool has_mark(const void* state, std::uintptr_t mark) noexcept {
  return (reinterpret_cast<std::uintptr_t>(state) & mark) != 0;
}
void* without_marks(void* state) noexcept {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(state) & ~(library_mark | measured_mark));
}
Message& message_of(void* state) noexcept { return *static_cast<Message*>(without_marks(state)); }

const ElementSizes& elements_of(const Message& message) noexcept {
  return message.type->definition->decoded().elements;
}

/// nullptr: no memory.
Message* begin(std::shared_ptr<ServedType> type) noexcept {
  Message* const message = messages.take();
  if (message) message->type = std::move(type);
  return message;
}
/// nullptr: the library's functions do it.
Message* begin(void* context, const void* buffer, std::size_t count) noexcept {
  std::shared_ptr<ServedType> type = runtime().served.find(context);
  if (!type || count == 0) return nullptr;
  if (!type->definition) return begin(std::move(type));
  Plan* const plan = find_plan(*type->definition, static_cast<std::int64_t>(count));
  if (!plan || !plan->layout() || !address_is_plausible(buffer, *plan->layout())) return nullptr;
  if (gpu_runtime_detected() && locate_buffer(buffer, plan->layout()).needs_device) return nullptr;
  const Packer* const packer = plan->packer();
  Message* const message = packer ? begin(std::move(type)) : nullptr;
  if (!message) return nullptr;
  message->packer = packer;
  message->user = static_cast<std::byte*>(const_cast<void*>(buffer));
  message->plan = PlanRef(plan);
  return message;
}

void* start(void* context, const void* buffer, std::size_t count, void* state) noexcept {
  Message* const message = begin(context, buffer, count);
  if (!message) return with_marks(state, library_mark);
  message->state = state;
  if (!message->packer) return with_marks(message, library_mark | measured_mark);
  message->compared = runtime().options().paranoid;
  message->sampled = runtime().options().reporting;
  return message;
}

void* start_pack(void* context, const void* buffer, std::size_t count) {
  return start(context, buffer, count, library.start_pack(context, buffer, count));
}
void* start_unpack(void* context, void* buffer, std::size_t count) {
  return start(context, buffer, count, library.start_unpack(context, buffer, count));
}
/// The library's functions can't be asked for a part of a basic element.
bool has_whole_elements(const Message& message, std::size_t offset, std::size_t bytes) noexcept {
  const auto begins = [&](std::size_t at) {
    const auto position = static_cast<std::int64_t>(at);
    return elements_of(message).begin_before(position) == position;
  };
  return begins(offset) && begins(offset + bytes);
}
bool is_compared(const Message& message, std::size_t offset, std::size_t bytes) noexcept {
  return message.compared && has_whole_elements(message, offset, bytes);
}

template <class Call>
std::int64_t nanoseconds_of(const Call& call) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begun = Clock::now();
  call();
  return std::chrono::nanoseconds(Clock::now() - begun).count();
}

/// own(), and in a sample theirs(), too, which moves the same bytes to the same place. Each is the second in half of
/// the samples, when it finds the data in the cache.
template <class Own, class Theirs>
void move(const Message& message, std::size_t offset, std::size_t bytes, const Own& own, const Theirs& theirs) {
  const std::uint32_t sample = message.sampled ? message.plan->engine_samples().draw() : 0;
  if (sample == 0 || !has_whole_elements(message, offset, bytes)) [[likely]]
    return own();
  std::int64_t own_ns = 0, their_ns = 0;
  if (sample % 2 == 0) own_ns = nanoseconds_of(own);
  their_ns = nanoseconds_of(theirs);
  if (sample % 2 != 0) own_ns = nanoseconds_of(own);
  message.plan->engine_samples().add(static_cast<std::int64_t>(bytes), own_ns, their_ns);
}

/// call(state of the library's functions), for a message that has the library's mark.
template <class Call>
auto by_library(void* state, const Call& call) {
  if (!has_mark(state, measured_mark)) return call(without_marks(state));
  const Message& message = message_of(state);
  decltype(call(message.state)) result{};
  message.type->library_ns.fetch_add(nanoseconds_of([&] { result = call(message.state); }), std::memory_order_relaxed);
  return result;
}

std::size_t packed_size(void* state) {
  if (has_mark(state, library_mark)) return by_library(state, library.packed_size);
  return static_cast<std::size_t>(message_of(state).packer->size());
}
/// `most` may be SIZE_MAX: with UCX's newer protocols, which ask for a whole short message.
std::size_t pack(void* state, std::size_t offset, void* destination, std::size_t most) {
  if (has_mark(state, library_mark))
    return by_library(state, [&](void* theirs) { return library.pack(theirs, offset, destination, most); });
  const Message& message = message_of(state);
  const auto first = static_cast<std::int64_t>(offset);
  std::int64_t last = message.packer->size();
  // The receiver's library may not be able to unpack a part of an element.
  if (most < static_cast<std::size_t>(last - first))
    last = std::max(first, elements_of(message).begin_before(first + static_cast<std::int64_t>(most)));
  const auto bytes = static_cast<std::size_t>(last - first);
  move(
      message, offset, bytes, [&] { message.packer->pack_range(destination, message.user, first, last); },
      [&] { library.pack(message.state, offset, destination, bytes); });
  if (is_compared(message, offset, bytes)) [[unlikely]]
    compare_packed(library, message.state, offset, destination, bytes);
  return bytes;
}
Status unpack(void* state, std::size_t offset, const void* source, std::size_t bytes) {
  if (has_mark(state, library_mark))
    return by_library(state, [&](void* theirs) { return library.unpack(theirs, offset, source, bytes); });
  const Message& message = message_of(state);
  const auto first = static_cast<std::int64_t>(offset);
  move(
      message, offset, bytes,
      [&] { message.packer->unpack_range(message.user, source, first, first + static_cast<std::int64_t>(bytes)); },
      [&] { library.unpack(message.state, offset, source, bytes); });
  if (is_compared(message, offset, bytes)) [[unlikely]]
    compare_unpacked(library, message.state, offset, source, bytes);
  return success;
}
void finish(void* state) {
  if (has_mark(state, library_mark) && !has_mark(state, measured_mark)) return library.finish(without_marks(state));
  Message& message = message_of(state);
  library.finish(message.state);
  message.packer = nullptr;
  message.plan = PlanRef();
  message.type.reset();
  messages.give_back(&message);
}

constexpr Operations own_operations{start_pack, start_unpack, packed_size, pack, unpack, finish};

thread_local constinit Registration::Commit current_commit __attribute__((tls_model("initial-exec"))) = {};
thread_local constinit std::uint64_t commits __attribute__((tls_model("initial-exec"))) = 0;

Status create(const Operations* operations, void* context, TransportType* type) {
  auto* const create_in_transport = reinterpret_cast<Create*>(library_create);
  runtime().served.forget(context);  // of an earlier type
  static std::once_flag first;
  std::call_once(first, [&] { library = *operations; });
  if (current_commit.number == 0 || *operations != library || inject_failure(FailPoint::registration))
    return create_in_transport(operations, context, type);
  const Status status = create_in_transport(&own_operations, context, type);
  if (status == success) current_commit.context = ++current_commit.registered == 1 ? context : nullptr;
  return status;
}

}  // namespace

const char* replace_engine() noexcept {
  static const char* const why_not = []() -> const char* {
    const auto* const inside = reinterpret_cast<const void*>(real.Wait);
    auto* const get_version = reinterpret_cast<GetVersion*>(find_function(inside, "ucp_get_version"));
    if (!get_version) return "it does not use UCX";
    unsigned major = 0, minor = 0, release = 0;
    get_version(&major, &minor, &release);
    if (major != known_major_version) return "this version of UCX is not known";
    auto* const replacement = reinterpret_cast<void*>(&create);
    return replace_import(inside, "ucp_dt_create_generic", replacement, &library_create)
               ? nullptr
               : "it does not call ucp_dt_create_generic";
  }();
  return why_not;
}

Registration::Registration() noexcept : outer_(current_commit), number_(++commits) {
  current_commit = {.number = number_};
}
Registration::~Registration() { current_commit = outer_; }
void* Registration::context() const noexcept {
  return current_commit.number == number_ ? current_commit.context : nullptr;
}

}  // namespace bestride::inline interpose
