// SPDX-License-Identifier: Apache-2.0
// The hand-written kernels on the host, exported for the stand-in driver of the tests, which cannot run device code.
#include <algorithm>
#include <cstring>

#include "bench/gpu/by_hand.hpp"
#include "tests/fake_cuda/control.h"

extern "C" const unsigned char by_hand_image[];  // cmake/BestrideGpu.cmake

namespace by_hand {

const void* image() noexcept { return by_hand_image; }

namespace {

template <class Shape, bool unpack>
int run(const fake_cuda_launch* launch, const void* parameter) {
  constexpr int illegal_address = 700;
  const Move& work = *static_cast<const Move*>(parameter);
  const std::uint64_t words = std::min<std::uint64_t>(work.words, std::uint64_t{launch->grid} * launch->block);
  for (std::uint64_t word = 0; word < words; ++word) {
    void* user = launch->at(launch, work.user + Shape::offset(word), sizeof(typename Shape::Word));
    void* packed = launch->at(launch, work.packed + word * sizeof(typename Shape::Word), sizeof(typename Shape::Word));
    if (!user || !packed) return illegal_address;
    std::memcpy(unpack ? user : packed, unpack ? packed : user, sizeof(typename Shape::Word));
  }
  return 0;
}
int nothing(const fake_cuda_launch*, const void*) { return 0; }

}  // namespace
}  // namespace by_hand

using namespace by_hand;

extern "C" __attribute__((visibility("default")))
const fake_cuda_kernel fake_cuda_kernels[] = {{"by_hand_vector_pack", sizeof(Move), run<Vector, false>},
                                              {"by_hand_vector_unpack", sizeof(Move), run<Vector, true>},
                                              {"by_hand_face_pack", sizeof(Move), run<Face, false>},
                                              {"by_hand_face_unpack", sizeof(Move), run<Face, true>},
                                              {"by_hand_structs_pack", sizeof(Move), run<Structs, false>},
                                              {"by_hand_structs_unpack", sizeof(Move), run<Structs, true>},
                                              {empty_kernel, sizeof(Move), nothing},
                                              {nullptr, 0, nullptr}};
