// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/collective/preload.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "perfmodel/calibrate/common/events.hpp"

namespace bestride::inline perfmodel {

bool restart_preloaded(const MeasureOptions& options, int argc, char** argv) {
  if (::access(options.preload.c_str(), R_OK) != 0) {
    print_event("error can't read the library '%s' on every host: %s", options.preload.c_str(), std::strerror(errno));
    return false;
  }
  const char* before = std::getenv("LD_PRELOAD");
  ::setenv("LD_PRELOAD", before && *before ? (options.preload + ":" + before).c_str() : options.preload.c_str(), 1);
  ::unsetenv("BESTRIDE_DISABLE");
  ::setenv("BESTRIDE_ALL_RANKS", "1", 1);  // otherwise nothing would go through the hierarchy
  ::setenv("BESTRIDE_COLLECTIVES", "hierarchical", 1);
  ::setenv("BESTRIDE_CACHE_BYTES", "0", 1);  // because every call sends the same content
  ::setenv("BESTRIDE_NICS", options.rails.c_str(), 1);
  if (!options.profile.empty()) ::setenv("BESTRIDE_PROFILE", options.profile.c_str(), 1);
  std::string word = "--restarted";
  std::vector<char*> words(argv, argv + argc);
  words.push_back(word.data());
  words.push_back(nullptr);
  ::execv("/proc/self/exe", words.data());
  return true;
}

bool preloaded() {
  Dl_info mpi{};
  void* const outer = ::dlsym(RTLD_DEFAULT, "MPI_Allgather");
  return outer && ::dladdr(outer, &mpi) && mpi.dli_fname && std::strstr(mpi.dli_fname, "libbestride");
}

}  // namespace bestride::inline perfmodel
