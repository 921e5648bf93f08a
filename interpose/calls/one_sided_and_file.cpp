// SPDX-License-Identifier: Apache-2.0
// One-sided calls, files, partitioned messages, external data and attached buffers. If a buffer is device memory and
// the MPI library can't access it, the call gives an error that names the remedy, instead of a crash. These calls are
// not staged: the library moves their data at a time of its own choice, or directly from the disk, so there is no point
// at which staging would be correct for all of them. If a collective call (MPI_File_write_all) is refused on one rank,
// that rank does not make it, as with any other argument that is wrong on one rank only. MPI_Win_create is in
// window.cpp.
#include <tuple>
#include <type_traits>
#include <utility>

#include "interpose/calls/lazy_entry.hpp"
#include "interpose/device/buffer_location.hpp"
#include "interpose/device/transfer_choice.hpp"
#include "interpose/device/unsupported.hpp"

namespace bestride::inline interpose {
namespace {

enum class Owner { window, file, comm, nobody };
/// The arguments that follow a buffer.
enum class ArgumentShape {
  counted,      ///< count, type
  one_element,  ///< possibly further buffers; type
  bytes,        ///< number of bytes
  partitions,   ///< partitions, count per partition, type
  external,     ///< count, type; or number of bytes
};

template <class Argument>
constexpr bool is_buffer = std::is_pointer_v<Argument>&& std::is_void_v<std::remove_pointer_t<Argument>>;

/// True if argument `i` is a buffer in device memory.
template <ArgumentShape shape, std::size_t i, class Arguments>
bool device_at(const Arguments& arguments) noexcept {
  using Argument = std::tuple_element_t<i, Arguments>;
  if constexpr (!is_buffer<Argument>) {
    return false;
  } else if constexpr (shape == ArgumentShape::counted) {
    return not_host_accessible(locate_buffer(std::get<i>(arguments), std::get<i + 1>(arguments),
                                             find_or_add_type(std::get<i + 2>(arguments))));
  } else if constexpr (shape == ArgumentShape::external) {
    constexpr bool typed = std::is_same_v<std::tuple_element_t<i + 2, Arguments>, MPI_Datatype>;
    return device_at < typed ? ArgumentShape::counted : ArgumentShape::bytes, i > (arguments);
  } else if constexpr (shape == ArgumentShape::bytes) {
    return not_host_accessible(locate_buffer(std::get<i>(arguments), std::int64_t{std::get<i + 1>(arguments)}));
  } else if constexpr (shape == ArgumentShape::partitions) {
    std::int64_t count = 0;
    if (__builtin_mul_overflow(std::int64_t{std::get<i + 1>(arguments)}, std::int64_t{std::get<i + 2>(arguments)},
                               &count))
      return false;
    return not_host_accessible(
        locate_buffer(std::get<i>(arguments), count, find_or_add_type(std::get<i + 3>(arguments))));
  } else if constexpr (is_buffer<std::tuple_element_t<i + 1, Arguments>> &&
                       is_buffer<std::tuple_element_t<i + 2, Arguments>>) {
    return not_host_accessible(locate_buffer(std::get<i>(arguments), 1, find_or_add_type(std::get<i + 3>(arguments))));
  } else if constexpr (is_buffer<std::tuple_element_t<i + 1, Arguments>>) {
    return not_host_accessible(locate_buffer(std::get<i>(arguments), 1, find_or_add_type(std::get<i + 2>(arguments))));
  } else {
    return not_host_accessible(locate_buffer(std::get<i>(arguments), 1, find_or_add_type(std::get<i + 1>(arguments))));
  }
}

template <ArgumentShape shape, class Arguments, std::size_t... i>
bool any_argument_on_device(const Arguments& arguments, std::index_sequence<i...>) noexcept {
  return (device_at<shape, i>(arguments) || ...);
}

template <Owner owner, ArgumentShape shape, class Arguments>
int reject_device_memory(const char* name, const Arguments& arguments) {
  constexpr std::size_t last = std::tuple_size_v<Arguments> - 1;
  if constexpr (owner == Owner::file)
    return raise_device_error_on_file(std::get<0>(arguments), DeviceError::unsupported, name);
  else if constexpr (owner == Owner::nobody)
    return raise_device_error(MPI_COMM_SELF, DeviceError::unsupported, name);
  else if constexpr (owner == Owner::comm)
    return raise_device_error(std::get<6>(arguments), DeviceError::unsupported, name);
  else if constexpr (shape == ArgumentShape::bytes)
    return raise_device_error_on_window(std::get<0>(arguments), DeviceError::unsupported, name);
  else
    // The argument before the request, if there is a request.
    return raise_device_error_on_window(
        std::get<last - std::is_pointer_v<std::tuple_element_t<last, Arguments>>>(arguments), DeviceError::unsupported,
        name);
}

/// The entry of the function called through `slot`.
template <auto slot, Owner owner, ArgumentShape shape, class... Arguments>
int forward_unless_on_device(Arguments... arguments) {
  if (start_lazy_interception() && !gpu_aware()) {
    const std::tuple<Arguments...> all(arguments...);
    if (any_argument_on_device<shape>(all, std::index_sequence_for<Arguments...>()))
      return reject_device_memory<owner, shape>(call_name<slot>, all);
  }
  return (next.*slot)(arguments...);
}

}  // namespace

std::span<const LazyEntry> lazy_unsupported() noexcept {
  static const LazyEntry all[] = {
#define BESTRIDE_LAZY_UNSUPPORTED(name, owner, shape)                                  \
  {{"MPI_" #name,                                                                      \
    reinterpret_cast<void*>(static_cast<decltype(Calls::name)>(                        \
        &forward_unless_on_device<&Calls::name, Owner::owner, ArgumentShape::shape>)), \
    reinterpret_cast<void**>(&next.name)},                                             \
   reinterpret_cast<void**>(&real.name)},
#include "interpose/mpi/lazily_intercepted.def"
  };
  return all;
}

}  // namespace bestride::inline interpose
