// SPDX-License-Identifier: Apache-2.0
#include "telemetry/symbols/symbolizer.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace bestride::inline telemetry {
namespace {

/// The sample library (argument of the program), loaded.
class Symbols : public testing::Test {
 protected:
  static std::string path() { return testing::internal::GetArgvs().at(1); }
  void SetUp() override {
    if (!Symbolizer::available()) GTEST_SKIP() << "no libdw in this build";
    library_ = dlopen(path().c_str(), RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  /// The address of the call instruction that `function` (of the library) has found, relative to the library.
  std::uint64_t address_of(const char* function) {
    auto* const call = reinterpret_cast<void* (*)()>(dlsym(library_, function));
    return relative(call());
  }
  std::uint64_t relative(void* return_address) {
    link_map* map = nullptr;
    dlinfo(library_, RTLD_DI_LINKMAP, &map);
    return reinterpret_cast<std::uint64_t>(return_address) - 1 - map->l_addr;
  }
  static std::string base(const std::string& file) { return file.substr(file.rfind('/') + 1); }

  void* library_ = nullptr;
  Symbolizer symbolizer_;
};

TEST_F(Symbols, InlinedFunctionsAreFramesOfTheirOwn) {
  const SymbolLookup lookup = symbolizer_.find(path(), {}, address_of("sample_call"));
  ASSERT_EQ(lookup.frames.size(), 2u) << lookup.problem;
  EXPECT_EQ(lookup.frames[0].function, "sample::exchange");
  EXPECT_EQ(base(lookup.frames[0].file), "sample.cpp");
  EXPECT_EQ(lookup.frames[0].line, 12);
  EXPECT_EQ(lookup.frames[1].function, "sample::Solver::step");
  EXPECT_EQ(lookup.frames[1].line, 18);
}

TEST_F(Symbols, FortranProceduresOfAModule) {
  auto* const call = reinterpret_cast<void (*)(void**)>(dlsym(library_, "sample_call_fortran"));
  if (!call) GTEST_SKIP() << "no Fortran compiler";
  void* here = nullptr;
  call(&here);
  const SymbolLookup lookup = symbolizer_.find(path(), {}, relative(here));
  ASSERT_FALSE(lookup.frames.empty()) << lookup.problem;
  EXPECT_EQ(lookup.frames[0].function, "sample_mod::solve");
  EXPECT_EQ(base(lookup.frames[0].file), "sample.f90");
  EXPECT_EQ(lookup.frames[0].line, 15);
}

TEST_F(Symbols, FunctionsInsideOfFunctions) {
  if (!dlsym(library_, "sample_nested")) GTEST_SKIP() << "the compiler has no nested functions";
  const SymbolLookup lookup = symbolizer_.find(path(), {}, address_of("sample_nested"));
  ASSERT_EQ(lookup.frames.size(), 2u) << lookup.problem;
  EXPECT_EQ(lookup.frames[0].function, "read_block");
  EXPECT_EQ(base(lookup.frames[0].file), "sample_nested.c");
  EXPECT_EQ(lookup.frames[0].line, 7);
  EXPECT_EQ(lookup.frames[1].function, "region");
  EXPECT_EQ(lookup.frames[1].line, 14);
}

TEST_F(Symbols, AnotherBuildIdIsRefused) {
  const std::uint8_t wrong[20] = {1, 2, 3};
  const SymbolLookup lookup = symbolizer_.find(path(), wrong, address_of("sample_call"));
  EXPECT_TRUE(lookup.frames.empty());
  EXPECT_NE(lookup.problem.find("another build id"), std::string::npos);
}

int find_build_id(dl_phdr_info* info, std::size_t, void* result) {
  if (!info->dlpi_name || std::string(info->dlpi_name) != testing::internal::GetArgvs().at(1)) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    const char* const end = at + info->dlpi_phdr[i].p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      const auto* const note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      const char* const content = at + sizeof *note + ((note->n_namesz + 3u) & ~3u);
      if (note->n_type == NT_GNU_BUILD_ID)
        static_cast<std::vector<std::uint8_t>*>(result)->assign(content, content + note->n_descsz);
      at = content + ((note->n_descsz + 3u) & ~3u);
    }
  }
  return 1;
}

TEST_F(Symbols, TheBuildIdInMemoryIsThatOfTheFile) {
  std::vector<std::uint8_t> build_id;
  dl_iterate_phdr(find_build_id, &build_id);
  ASSERT_EQ(build_id.size(), 20u);
  EXPECT_EQ(symbolizer_.find(path(), build_id, address_of("sample_call")).frames.size(), 2u);
}

TEST_F(Symbols, FilesWithoutSymbols) {
  EXPECT_NE(symbolizer_.find("/nowhere/at/all", {}, 1).problem.find("can't read"), std::string::npos);
  char name[] = "/tmp/bestride-symbols-XXXXXX";
  const int file = mkstemp(name);
  EXPECT_EQ(write(file, "text", 4), 4);
  close(file);
  EXPECT_FALSE(symbolizer_.find(name, {}, 1).problem.empty());
  unlink(name);
  ASSERT_EQ(mkfifo(name, 0600), 0);
  EXPECT_FALSE(symbolizer_.find(std::string(name) + "", {}, 1).problem.empty());
  unlink(name);
  EXPECT_FALSE(symbolizer_.find(path(), {}, ~std::uint64_t{0} / 2).problem.empty());
}

TEST(LibrarySource, FilesOfLanguagesAndInstalledPackages) {
  for (const char* const file :
       {"/usr/include/c++/12/bits/stl_map.h", "/usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h",
        "/opt/gcc-13/include/c++/13/mutex", "/opt/gcc/lib/gcc/x86_64-pc-linux-gnu/13/include/immintrin.h",
        "/usr/lib/x86_64-linux-gnu/mpich/include/mpicxx.h", "/usr/local/include/eigen3/Eigen/src/Core/Product.h",
        "/root/.pyenv/versions/3.11.7/lib/python3.11/threading.py", "/opt/py/lib64/python3.9/queue.py",
        "/home/me/venv/lib/python3.11/site-packages/mpi4py/run.py", "/usr/lib/python3/dist-packages/numpy/core.py",
        "<frozen runpy>", "src/mpi4py/MPI.src/msgbuffer.pxi"})
    EXPECT_TRUE(is_library_source(file)) << file;
  for (const char* const file : {"program.py", "/home/me/solver/src/solver.f90", "../mesh.c",
                                 "/usr/src/solver/main.cpp", "/usr/local/src/main.cpp", "/home/me/mpi4py/program.py",
                                 "/home/me/lib/python/solver.py", "/home/me/include/mesh.hpp", "<string>", ""})
    EXPECT_FALSE(is_library_source(file)) << file;
}

TEST(ReadableFunction, NamesOfCompilers) {
  EXPECT_EQ(readable_function("solve"), "solve");
  EXPECT_EQ(readable_function("__solver_MOD_step"), "solver::step");
  EXPECT_EQ(readable_function("_ZN6sample6Solver4stepEi"), "sample::Solver::step");
  EXPECT_EQ(readable_function("_Z1fIiEvT_"), "f<int>");
  EXPECT_EQ(readable_function("_ZN12_GLOBAL__N_11fEi"), "(anonymous namespace)::f");
  EXPECT_EQ(readable_function("_ZN1AclEi"), "A::operator()");
  EXPECT_EQ(readable_function("_ZN1AlsEi"), "A::operator<<");
  EXPECT_EQ(readable_function("_Znotaname"), "_Znotaname");
}

}  // namespace
}  // namespace bestride::inline telemetry
