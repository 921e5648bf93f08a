// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/gpu/trouble.hpp"

#include <mutex>

#include "base/message.hpp"
#include "interpose/back/calls.hpp"

namespace bestride {
namespace {

struct Kind {
  const char* key;
  const char* text;
};
constexpr const char* remedy = "copy it to host memory before the call, or use a GPU-aware MPI library and set BESTRIDE_GPU_AWARE=yes";

const Kind& kind_of(Trouble trouble) noexcept {
  static const Kind kinds[trouble_count] = {
      {"gpu.refused",
       "device memory in a one-sided, file or partitioned call, which this MPI library can't reach: copy it to host memory before the call, or use "
       "a GPU-aware MPI library and set BESTRIDE_GPU_AWARE=yes"},
      {"gpu.unknown",
       "device memory with a datatype that can't be decoded: copy it to host memory before the call, or use a GPU-aware MPI library and set "
       "BESTRIDE_GPU_AWARE=yes"},
  };
  return kinds[static_cast<int>(trouble)];
}

void say(Trouble trouble, const std::string& cause) noexcept {
  const Kind& kind = kind_of(trouble);
  if (trouble == Trouble::refused)
    say_once(kind.key, "%s was given device memory, which this MPI library can't reach: it returns an MPI error; %s", cause.c_str(), remedy);
  else
    say_once(kind.key, "%s (%s): the call returns an MPI error", kind.text, cause.c_str());
}

}  // namespace

int code_of(Trouble trouble) noexcept {
  static std::mutex mutex;
  static int codes[trouble_count] = {};
  const std::lock_guard lock(mutex);
  int& code = codes[static_cast<int>(trouble)];
  if (code == 0) {
    const char* text = kind_of(trouble).text;
    int own_class = 0;
    if (real.Add_error_class(&own_class) != MPI_SUCCESS || real.Add_error_string(own_class, text) != MPI_SUCCESS ||
        real.Add_error_code(own_class, &code) != MPI_SUCCESS || real.Add_error_string(code, text) != MPI_SUCCESS)
      code = MPI_ERR_OTHER;
  }
  return code;
}

int raise_on(MPI_Comm comm, Trouble trouble, const std::string& cause) noexcept {
  say(trouble, cause);
  const int code = code_of(trouble);
  real.Comm_call_errhandler(comm, code);
  return code;
}

int raise_on_window(MPI_Win window, Trouble trouble, const std::string& cause) noexcept {
  say(trouble, cause);
  const int code = code_of(trouble);
  if (real.Win_call_errhandler) real.Win_call_errhandler(window, code);
  return code;
}

int raise_on_file(MPI_File file, Trouble trouble, const std::string& cause) noexcept {
  say(trouble, cause);
  const int code = code_of(trouble);
  if (real.File_call_errhandler) real.File_call_errhandler(file, code);
  return code;
}

}  // namespace bestride
