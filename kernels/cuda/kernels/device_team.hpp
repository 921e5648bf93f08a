// SPDX-License-Identifier: Apache-2.0
#pragma once
// DeviceTeam: a thread block on the device, with the interface that move.hpp expects: its threads, its shared memory
// and the bulk copy engine. Only the kernel entry points (move.cu) include this file.
#include "kernels/cuda/kernels/index.hpp"
#include "kernels/cuda/kernels/work.hpp"

namespace bestride::cuda {
namespace {

class DeviceTeam {
 public:
  __device__ __forceinline__ DeviceTeam(unsigned char* shared, std::uint64_t* barrier)
      : shared_(shared), barrier_(barrier) {}

  template <class F>
  __device__ __forceinline__ void free_running(F&& f) {
    f(static_cast<Number>(threadIdx.x));
  }
  template <class F>
  __device__ __forceinline__ void each(F&& f) {
    f(static_cast<Number>(threadIdx.x));
    __syncthreads();
  }
  // Device, managed and page-locked host memory are all in the global state space. The address is an integer, so the
  // compiler cannot infer the space and would emit generic loads, which determine it at run time. The PTX states it
  // explicitly. `volatile` keeps the order: all loads of a thread come before its stores.
  template <class Word>
  __device__ __forceinline__ Word load(std::uint64_t address) const {
    if constexpr (sizeof(Word) == 16) {
      Word word;
      asm volatile("ld.global.v2.u64 {%0, %1}, [%2];" : "=l"(word.low), "=l"(word.high) : "l"(address));
      return word;
    } else if constexpr (sizeof(Word) == 8) {
      std::uint64_t word;
      asm volatile("ld.global.u64 %0, [%1];" : "=l"(word) : "l"(address));
      return static_cast<Word>(word);
    } else {
      unsigned word;
      if constexpr (sizeof(Word) == 4)
        asm volatile("ld.global.u32 %0, [%1];" : "=r"(word) : "l"(address));
      else if constexpr (sizeof(Word) == 2)
        asm volatile("{ .reg .u16 h; ld.global.u16 h, [%1]; cvt.u32.u16 %0, h; }" : "=r"(word) : "l"(address));
      else
        asm volatile("ld.global.u8 %0, [%1];" : "=r"(word) : "l"(address));
      return static_cast<Word>(word);
    }
  }
  template <class Word>
  __device__ __forceinline__ void store(std::uint64_t address, Word word) const {
    if constexpr (sizeof(Word) == 16)
      asm volatile("st.global.v2.u64 [%0], {%1, %2};" ::"l"(address), "l"(word.low), "l"(word.high) : "memory");
    else if constexpr (sizeof(Word) == 8)
      asm volatile("st.global.u64 [%0], %1;" ::"l"(address), "l"(word) : "memory");
    else if constexpr (sizeof(Word) == 4)
      asm volatile("st.global.u32 [%0], %1;" ::"l"(address), "r"(word) : "memory");
    else if constexpr (sizeof(Word) == 2)
      asm volatile("st.global.u16 [%0], %1;" ::"l"(address), "h"(word) : "memory");
    else
      asm volatile("st.global.u8 [%0], %1;" ::"l"(address), "r"(static_cast<unsigned>(word)) : "memory");
  }
  __device__ __forceinline__ unsigned char* shared() const { return shared_; }

  /// Copies global to shared to global memory by one thread, through the asynchronous proxy (PTX ISA, cp.async.bulk).
  /// The barrier counts the bytes that arrive; its phase flips with every use. Sizes and addresses are multiples of 16.
  __device__ __forceinline__ bool bulk(std::uint64_t target, std::uint64_t source, Number bytes) {
#if __CUDA_ARCH__ >= 900
    const unsigned buffer = static_cast<unsigned>(__cvta_generic_to_shared(shared_));
    const unsigned barrier = static_cast<unsigned>(__cvta_generic_to_shared(barrier_));
    if (threadIdx.x == 0) {
      if (!ready_) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        ready_ = true;
      }
      // A transposed tile is written to shared memory through the generic proxy, so a proxy fence is needed before the
      // bulk copy.
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(buffer),
          "l"(source), "r"(bytes), "r"(barrier)
          : "memory");
      unsigned arrived = 0;
      while (!arrived)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(arrived)
                     : "r"(barrier), "r"(phase_)
                     : "memory");
      phase_ ^= 1;
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(target), "r"(buffer), "r"(bytes)
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");  // the buffer is reused, and the block may exit
    }
    __syncthreads();
    return true;
#else
    return false;
#endif
  }

 private:
  unsigned char* shared_;
  std::uint64_t* barrier_;
  unsigned phase_ = 0;
  bool ready_ = false;
};

}  // namespace
}  // namespace bestride::cuda
