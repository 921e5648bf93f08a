// SPDX-License-Identifier: Apache-2.0
// One-sided calls, files, partitioned messages, external data and attached buffers: with device memory, and an MPI library that can't reach it, an error that names the
// remedy instead of a crash. What they move is moved at a time of the library's choosing, or straight from the disk, so there is no moment
// at which it could be staged that holds for all of them.
// A collective among them (MPI_Win_create, MPI_File_write_all) that is refused on one rank is not made there, as with any other argument
// that is wrong on one rank only.
#include <tuple>
#include <type_traits>
#include <utility>

#include "interpose/back/gpu/late_entry.hpp"
#include "interpose/back/gpu/place.hpp"
#include "interpose/back/gpu/trouble.hpp"
#include "interpose/back/gpu/way.hpp"

namespace bestride {
namespace {

enum class Owner { window, file, comm, nobody };
/// What follows a buffer among the arguments.
enum class After {
  counted,      ///< count, type
  one_element,  ///< perhaps further buffers; type
  bytes,        ///< bytes
  partitions,   ///< partitions, count of each, type
  external,     ///< count, type; or bytes
};

template <class Argument>
constexpr bool is_buffer = std::is_pointer_v<Argument> && std::is_void_v<std::remove_pointer_t<Argument>>;

/// Only devices reach it. Managed memory the CPU reaches, too.
bool out_of_reach(const Place& place) noexcept { return place.by_gpu && !place.memory.host_reachable(); }

/// The argument at `i` is a buffer in device memory.
template <After shape, std::size_t i, class Arguments>
bool device_at(const Arguments& arguments) noexcept {
  using Argument = std::tuple_element_t<i, Arguments>;
  if constexpr (!is_buffer<Argument>) {
    return false;
  } else if constexpr (shape == After::counted) {
    return out_of_reach(find_place(std::get<i>(arguments), std::get<i + 1>(arguments), known_type(std::get<i + 2>(arguments))));
  } else if constexpr (shape == After::external) {
    constexpr bool typed = std::is_same_v<std::tuple_element_t<i + 2, Arguments>, MPI_Datatype>;
    return device_at<typed ? After::counted : After::bytes, i>(arguments);
  } else if constexpr (shape == After::bytes) {
    return out_of_reach(find_place(std::get<i>(arguments), std::int64_t{std::get<i + 1>(arguments)}));
  } else if constexpr (shape == After::partitions) {
    std::int64_t count = 0;
    if (__builtin_mul_overflow(std::int64_t{std::get<i + 1>(arguments)}, std::int64_t{std::get<i + 2>(arguments)}, &count)) return false;
    return out_of_reach(find_place(std::get<i>(arguments), count, known_type(std::get<i + 3>(arguments))));
  } else if constexpr (is_buffer<std::tuple_element_t<i + 1, Arguments>> && is_buffer<std::tuple_element_t<i + 2, Arguments>>) {
    return out_of_reach(find_place(std::get<i>(arguments), 1, known_type(std::get<i + 3>(arguments))));
  } else if constexpr (is_buffer<std::tuple_element_t<i + 1, Arguments>>) {
    return out_of_reach(find_place(std::get<i>(arguments), 1, known_type(std::get<i + 2>(arguments))));
  } else {
    return out_of_reach(find_place(std::get<i>(arguments), 1, known_type(std::get<i + 1>(arguments))));
  }
}

template <After shape, class Arguments, std::size_t... i>
bool any_on_device(const Arguments& arguments, std::index_sequence<i...>) noexcept {
  return (device_at<shape, i>(arguments) || ...);
}

template <Owner owner, After shape, class Arguments>
int refuse(const char* name, const Arguments& arguments) noexcept {
  constexpr std::size_t last = std::tuple_size_v<Arguments> - 1;
  if constexpr (owner == Owner::file)
    return raise_on_file(std::get<0>(arguments), Trouble::refused, name);
  else if constexpr (owner == Owner::nobody)
    return raise_on(MPI_COMM_SELF, Trouble::refused, name);
  else if constexpr (owner == Owner::comm)
    return raise_on(std::get<shape == After::partitions ? 6 : 4>(arguments), Trouble::refused, name);
  else if constexpr (shape == After::bytes)
    return raise_on_window(std::get<0>(arguments), Trouble::refused, name);
  else
    // Before the request, if there is one.
    return raise_on_window(std::get<last - std::is_pointer_v<std::tuple_element_t<last, Arguments>>>(arguments), Trouble::refused, name);
}

/// The entry of the function reached by `slot`.
template <auto slot, Owner owner, After shape, class... Arguments>
int refused(Arguments... arguments) {
  if (begin_late() && !gpu_aware()) {
    const std::tuple<Arguments...> all(arguments...);
    if (any_on_device<shape>(all, std::index_sequence_for<Arguments...>())) return refuse<owner, shape>(call_name<slot>, all);
  }
  return (next.*slot)(arguments...);
}

}  // namespace

std::span<const LateEntry> late_refused() noexcept {
  static const LateEntry all[] = {
#define BESTRIDE_LATE_REFUSED(name, owner, shape) \
  {{"MPI_" #name, \
    reinterpret_cast<void*>(static_cast<decltype(Calls::name)>(&refused<&Calls::name, Owner::owner, After::shape>)), \
    reinterpret_cast<void**>(&next.name)}, \
   reinterpret_cast<void**>(&real.name)},
#include "interpose/back/gpu/late.def"
  };
  return all;
}

}  // namespace bestride
