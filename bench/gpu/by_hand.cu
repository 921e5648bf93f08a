// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/by_hand.hpp"

namespace {

template <class Shape, bool unpack>
__device__ __forceinline__ void move(const by_hand::Move& work) {
  using Word = typename Shape::Word;
  const std::uint64_t word = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (word >= work.words) return;
  Word* user = reinterpret_cast<Word*>(work.user + Shape::offset(word));
  Word* packed = reinterpret_cast<Word*>(work.packed) + word;
  if (unpack)
    *user = *packed;
  else
    *packed = *user;
}

}  // namespace

extern "C" __global__ void by_hand_vector_pack(const __grid_constant__ by_hand::Move work) {
  move<by_hand::Vector, false>(work);
}
extern "C" __global__ void by_hand_vector_unpack(const __grid_constant__ by_hand::Move work) {
  move<by_hand::Vector, true>(work);
}
extern "C" __global__ void by_hand_face_pack(const __grid_constant__ by_hand::Move work) {
  move<by_hand::Face, false>(work);
}
extern "C" __global__ void by_hand_face_unpack(const __grid_constant__ by_hand::Move work) {
  move<by_hand::Face, true>(work);
}
extern "C" __global__ void by_hand_structs_pack(const __grid_constant__ by_hand::Move work) {
  move<by_hand::Structs, false>(work);
}
extern "C" __global__ void by_hand_structs_unpack(const __grid_constant__ by_hand::Move work) {
  move<by_hand::Structs, true>(work);
}
extern "C" __global__ void by_hand_empty(const __grid_constant__ by_hand::Move) {}
