// SPDX-License-Identifier: Apache-2.0
#include "interpose/device/unsupported.hpp"

#include <mutex>

#include "base/message.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/mpi/noted_error.hpp"

namespace bestride::inline interpose {
namespace {

struct Kind {
  const char* key;
  const char* text;
};
constexpr const char* remedy =
    "copy it to host memory before the call, or use a GPU-aware MPI library and set BESTRIDE_GPU_AWARE=yes";

const Kind& kind_of(DeviceError device_error) noexcept {
  static const Kind kinds[device_error_count] = {
      {"gpu.unsupported",
       "device memory in a one-sided, file or partitioned call, which this MPI library can't reach: copy it to host "
       "memory before the call, or use "
       "a GPU-aware MPI library and set BESTRIDE_GPU_AWARE=yes"},
      {"gpu.unknown",
       "device memory with a datatype that can't be decoded: copy it to host memory before the call, or use a "
       "GPU-aware MPI library and set "
       "BESTRIDE_GPU_AWARE=yes"},
  };
  return kinds[static_cast<int>(device_error)];
}

void say(DeviceError device_error, const std::string& cause) noexcept {
  const Kind& kind = kind_of(device_error);
  if (device_error == DeviceError::unsupported)
    warn_once(kind.key, "%s was given device memory, which this MPI library can't reach: it returns an MPI error; %s",
              cause.c_str(), remedy);
  else
    warn_once(kind.key, "%s (%s): the call returns an MPI error", kind.text, cause.c_str());
}

}  // namespace

int error_code_of(DeviceError device_error) noexcept {
  static std::mutex mutex;
  static int codes[device_error_count] = {};
  const std::lock_guard lock(mutex);
  int& code = codes[static_cast<int>(device_error)];
  if (code == 0) {
    const char* text = kind_of(device_error).text;
    int own_class = 0;
    if (real.Add_error_class(&own_class) != MPI_SUCCESS || real.Add_error_string(own_class, text) != MPI_SUCCESS ||
        real.Add_error_code(own_class, &code) != MPI_SUCCESS || real.Add_error_string(code, text) != MPI_SUCCESS)
      code = MPI_ERR_OTHER;
  }
  return code;
}

int raise_device_error(MPI_Comm comm, DeviceError device_error, const std::string& cause) {
  say(device_error, cause);
  const int code = error_code_of(device_error);
  const NotedError noted(code);
  real.Comm_call_errhandler(comm, code);
  return code;
}

int raise_device_error_on_window(MPI_Win window, DeviceError device_error, const std::string& cause) {
  say(device_error, cause);
  const int code = error_code_of(device_error);
  const NotedError noted(code);
  if (real.Win_call_errhandler) real.Win_call_errhandler(window, code);
  return code;
}

int raise_device_error_on_file(MPI_File file, DeviceError device_error, const std::string& cause) {
  say(device_error, cause);
  const int code = error_code_of(device_error);
  const NotedError noted(code);
  if (real.File_call_errhandler) real.File_call_errhandler(file, code);
  return code;
}

}  // namespace bestride::inline interpose
