// SPDX-License-Identifier: Apache-2.0
// heap_test [FILE]: reads a profile as a process with the preload library does, and checks that the heap still maps a
// block of 160 KiB, which it would not after the library freed a larger one (base/mapped_allocator.hpp). Without FILE,
// reads nothing. A separate program, because the check itself frees such a block. Exit code 77 (skip): this heap never
// maps such a block.
#include <malloc.h>

#include <cstdio>
#include <cstdlib>

#include "perfmodel/profile/profile.hpp"

int main(int argc, char** argv) {
  using namespace bestride;
  if (argc > 1) {
    MachineProfile::built_in();
    (void)respell_contiguous_from(argv[1]);
    (void)profile_may_have_rails(argv[1]);
    (void)MachineProfile::load(argv[1]);
    const auto loaded = MachineProfile::load_for_predictions(argv[1]);
    if (!loaded) return std::fprintf(stderr, "%s\n", loaded.error().text.c_str()), 1;
  }
  // Enough blocks to fill what was freed in the heap. volatile: otherwise the compiler leaves the allocations out.
  void* volatile blocks[64];
  for (int i = 0; i < 63; ++i) blocks[i] = std::malloc(160 * 1024);
  const std::size_t before = ::mallinfo2().hblks;
  blocks[63] = std::malloc(160 * 1024);
  const bool mapped = ::mallinfo2().hblks > before;
  for (void* const block : blocks) std::free(block);
  if (mapped) return 0;
  std::printf("a block of 160 KiB is not mapped\n");
  return argc > 1 ? 1 : 77;
}
