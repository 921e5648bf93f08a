// SPDX-License-Identifier: Apache-2.0
// Linked into a program, this ucp_dt_create_generic stands before UCX's. Bestride's functions with which a type is
// registered are then asked for the bytes of a fragment in several pieces of random sizes, the last one first on the
// receiving side, as transports with other fragment sizes or several lanes would. The program fails at its end if none
// was asked.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "tests/support/ucx_generic_type.hpp"

namespace {

UcxOperations own;  ///< Bestride's functions

std::atomic<long> pieces{0};

/// Pieces have at least `least` bytes.
std::size_t piece_of(std::size_t bytes, std::size_t least) {
  thread_local std::minstd_rand random(12345);
  const std::size_t most = std::max<std::size_t>(bytes / 4, 67);
  ++pieces;
  return std::min<std::size_t>(bytes, least + random() % most);
}

/// Bestride leaves this message to MPICH, which can't unpack a part of a basic element.
bool is_of_library(const void* state) { return (reinterpret_cast<std::uintptr_t>(state) & 1) != 0; }

std::size_t pack(void* state, std::size_t offset, void* to, std::size_t most) {
  if (is_of_library(state)) return own.pack(state, offset, to, most);
  std::size_t done = 0;
  while (done < most) {
    const bool rest_fits = own.packed_size(state) - offset - done <= most - done;
    // At least a whole element; or all that is left, as newer protocols of UCX ask for it.
    const std::size_t piece = piece_of(most - done, 64);
    const std::size_t wanted = rest_fits && piece % 3 == 0 ? SIZE_MAX : piece;
    const std::size_t got = own.pack(state, offset + done, static_cast<char*>(to) + done, wanted);
    done += got;
    if (got == 0) break;  // no whole element is left, or fits
  }
  return done;
}
signed char unpack(void* state, std::size_t offset, const void* from, std::size_t bytes) {
  if (is_of_library(state)) return own.unpack(state, offset, from, bytes);
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = piece_of(bytes - done, 1);
    parts.emplace_back(done, piece);
    done += piece;
  }
  std::reverse(parts.begin(), parts.end());
  for (const auto& [at, piece] : parts) own.unpack(state, offset + at, static_cast<const char*>(from) + at, piece);
  return 0;
}

bool is_of_bestride(const UcxOperations& operations) {
  Dl_info module;
  return dladdr(reinterpret_cast<void*>(operations.pack), &module) != 0 && std::strstr(module.dli_fname, "libbestride");
}

}  // namespace

extern "C" __attribute__((visibility("default"))) signed char ucp_dt_create_generic(const UcxOperations* operations,
                                                                                    void* context,
                                                                                    std::uint64_t* type) {
  const signed char status = create_in_ucx(operations, context, type);
  if (status != 0 || !is_of_bestride(*operations)) return status;
  own = *operations;
  UcxGenericType& made = generic_type(*type);
  made.operations.pack = &pack;
  made.operations.unpack = &unpack;
  return status;
}

__attribute__((destructor)) static void check_that_fragments_were_asked_for() {
  if (pieces != 0) return;
  std::fputs("no fragment of a message was packed or unpacked\n", stderr);
  _exit(1);
}
