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

#include "interpose/calls/on_demand_entry.hpp"
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
  constexpr bool makes_request = std::is_same_v<std::tuple_element_t<last, Arguments>, MPI_Request*>;
  if constexpr (owner == Owner::file)
    return raise_device_error_on_file(std::get<0>(arguments), DeviceError::unsupported, name);
  else if constexpr (owner == Owner::nobody)
    return raise_device_error(MPI_COMM_SELF, DeviceError::unsupported, name);
  else if constexpr (owner == Owner::comm)
    return raise_device_error(std::get<6>(arguments), DeviceError::unsupported, name);
  else if constexpr (shape == ArgumentShape::bytes)
    return raise_device_error_on_window(std::get<0>(arguments), DeviceError::unsupported, name);
  else
    return raise_device_error_on_window(std::get<last - makes_request>(arguments), DeviceError::unsupported, name);
}

/// The entry of the function called through `slot` of `via`.
template <Calls& via, auto slot, Owner owner, ArgumentShape shape, class... Arguments>
int forward_unless_on_device(Arguments... arguments) {
  if (before_on_demand_call() && !gpu_aware()) {
    const std::tuple<Arguments...> all(arguments...);
    if (any_argument_on_device<shape>(all, std::index_sequence_for<Arguments...>()))
      return reject_device_memory<owner, shape>(call_name<slot>, all);
  }
  return (via.*slot)(arguments...);
}

}  // namespace

/// `owner`: the object whose error handler is called; `shape`: the kind of the arguments after a buffer.
#define BESTRIDE_REFUSING_ENTRY(name, owner, shape) \
  BESTRIDE_ON_DEMAND_ENTRY(name, forward_unless_on_device, Owner::owner, ArgumentShape::shape)
#define BESTRIDE_REFUSING_SIZES(name, owner, shape) \
  BESTRIDE_REFUSING_ENTRY(name, owner, shape) BESTRIDE_REFUSING_ENTRY(name##_c, owner, shape)

BESTRIDE_REFUSING_SIZES(Put, window, counted)
BESTRIDE_REFUSING_SIZES(Get, window, counted)
BESTRIDE_REFUSING_SIZES(Accumulate, window, counted)
BESTRIDE_REFUSING_SIZES(Get_accumulate, window, counted)
BESTRIDE_REFUSING_SIZES(Rput, window, counted)
BESTRIDE_REFUSING_SIZES(Rget, window, counted)
BESTRIDE_REFUSING_SIZES(Raccumulate, window, counted)
BESTRIDE_REFUSING_SIZES(Rget_accumulate, window, counted)
BESTRIDE_REFUSING_ENTRY(Fetch_and_op, window, one_element)
BESTRIDE_REFUSING_ENTRY(Compare_and_swap, window, one_element)
BESTRIDE_REFUSING_ENTRY(Win_attach, window, bytes)
BESTRIDE_REFUSING_SIZES(Psend_init, comm, partitions)
BESTRIDE_REFUSING_SIZES(Precv_init, comm, partitions)
BESTRIDE_REFUSING_SIZES(Pack_external, nobody, external)
BESTRIDE_REFUSING_SIZES(Unpack_external, nobody, external)
BESTRIDE_REFUSING_SIZES(Buffer_attach, nobody, bytes)
BESTRIDE_REFUSING_SIZES(Comm_attach_buffer, nobody, bytes)
BESTRIDE_REFUSING_SIZES(Session_attach_buffer, nobody, bytes)

#define BESTRIDE_REFUSING_FILE_CALLS(rest)                \
  BESTRIDE_REFUSING_SIZES(File_read##rest, file, counted) \
  BESTRIDE_REFUSING_SIZES(File_write##rest, file, counted)
BESTRIDE_REFUSING_FILE_CALLS()
BESTRIDE_REFUSING_FILE_CALLS(_all)
BESTRIDE_REFUSING_FILE_CALLS(_at)
BESTRIDE_REFUSING_FILE_CALLS(_at_all)
BESTRIDE_REFUSING_FILE_CALLS(_shared)
BESTRIDE_REFUSING_FILE_CALLS(_ordered)
BESTRIDE_REFUSING_FILE_CALLS(_all_begin)
BESTRIDE_REFUSING_FILE_CALLS(_at_all_begin)
BESTRIDE_REFUSING_FILE_CALLS(_ordered_begin)
#define BESTRIDE_REFUSING_FILE_REQUESTS(rest)              \
  BESTRIDE_REFUSING_SIZES(File_iread##rest, file, counted) \
  BESTRIDE_REFUSING_SIZES(File_iwrite##rest, file, counted)
BESTRIDE_REFUSING_FILE_REQUESTS()
BESTRIDE_REFUSING_FILE_REQUESTS(_at)
BESTRIDE_REFUSING_FILE_REQUESTS(_shared)
BESTRIDE_REFUSING_FILE_REQUESTS(_all)
BESTRIDE_REFUSING_FILE_REQUESTS(_at_all)

}  // namespace bestride::inline interpose
