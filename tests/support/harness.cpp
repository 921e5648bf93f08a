// SPDX-License-Identifier: Apache-2.0
#include "tests/support/harness.hpp"

#include <link.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/profiling_names.hpp"

namespace bestride::test {
namespace {

struct Case {
  std::string_view name;
  CaseFunction run;
  bool alone;
};

std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

std::atomic<int> failures{0};
const char* running = "";

bool chosen(std::string_view name, int argc, char** argv) {
  if (argc < 3 || std::strcmp(argv[1], "--only") != 0) return true;
  for (int i = 2; i < argc; ++i)
    if (name == argv[i]) return true;
  return false;
}

/// True if the preload library was asked for and has not loaded its backend: then the cases would test the MPI library
/// alone. Call after MPI_Init.
bool lacks_backend() {
  const char* const preloaded = std::getenv("LD_PRELOAD");
  if (!preloaded || !std::strstr(preloaded, "libbestride.so")) return false;
  return dl_iterate_phdr([](dl_phdr_info* object, std::size_t,
                            void*) { return std::strstr(object->dlpi_name, "libbestride-mpich") ? 1 : 0; },
                         nullptr) == 0;
}

/// Runs a case, synchronizes the ranks after it, and checks that no message is left. Uses PMPI names, because these
/// calls are not part of the test.
int failures_of(const Case& one) {
  running = one.name.data();
  failures = 0;
  one.run();
  PMPI_Barrier(MPI_COMM_WORLD);
  int message_left = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message_left, MPI_STATUS_IGNORE);
  if (message_left) fail_check(__FILE__, __LINE__, "a message was not received");
  int mine = failures, all = 0;
  PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

}  // namespace

Registration::Registration(const char* name, CaseFunction run, bool alone) { cases().push_back({name, run, alone}); }

int world_rank() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int world_size() {
  int size = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

int error_class(int code) {
  int result = 0;
  MPI_Error_class(code, &result);
  return result;
}

void fail_check(const char* file, int line, const std::string& what) {
  if (++failures > 20) return;
  const char* name = std::strrchr(file, '/');
  std::fprintf(stderr, "FAILED rank %d, %s, %s:%d: %s\n", world_rank(), running, name ? name + 1 : file, line,
               what.c_str());
}

int run_cases(int argc, char** argv, int threads, void (*before_each)()) {
  if (argc > 1 && std::strcmp(argv[1], "--list") == 0) {
    for (const Case& one : cases()) std::printf("%s%s\n", one.name.data(), one.alone ? " alone" : "");
    return 0;
  }
  int provided = 0;
  if (threads == MPI_THREAD_SINGLE)
    MPI_Init(&argc, &argv);
  else
    MPI_Init_thread(&argc, &argv, threads, &provided);
  if (lacks_backend()) {
    std::fprintf(stderr, "FAILED rank %d: the preload library has not loaded libbestride-mpich.so\n", world_rank());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  int passed = 0, failed = 0;
  for (const Case& one : cases()) {
    if (!chosen(one.name, argc, argv)) continue;
    if (before_each) before_each();
    const int wrong = failures_of(one);
    (wrong == 0 ? passed : failed) += 1;
    if (world_rank() != 0) continue;
    if (wrong == 0)
      std::printf("passed %s\n", one.name.data());
    else
      std::printf("FAILED %s: %d checks\n", one.name.data(), wrong);
    std::fflush(stdout);  // also read if a later case does not end (run_cases.py)
  }
  if (world_rank() == 0) std::printf("%d passed, %d failed, %d ranks\n", passed, failed, world_size());
  MPI_Finalize();
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace bestride::test
