// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/gpu/aware.hpp"

#include <atomic>

#include "base/variables.hpp"
#include "interpose/back/gpu/late.hpp"

namespace bestride {
namespace {

bool find_out() noexcept try {
  const std::string& setting = Settings::get().text("BESTRIDE_GPU_AWARE");
  if (setting != "auto") return setting == "yes";
  const auto symbol = library_symbol();
  if (!symbol) return false;
  constexpr int cuda = 0;  // MPIX_GPU_SUPPORT_CUDA
  int supported = 0;
  if (const auto query = reinterpret_cast<int (*)(int, int*)>(symbol("MPIX_GPU_query_support"))) return query(cuda, &supported) == 0 && supported;
  if (const auto query = reinterpret_cast<int (*)()>(symbol("MPIX_Query_cuda_support"))) return query() == 1;
  return false;
} catch (...) {
  return false;
}

}  // namespace

bool gpu_aware() noexcept {
  static std::atomic<int> known{-1};
  int aware = known.load(std::memory_order_relaxed);
  if (aware < 0) known.store(aware = find_out(), std::memory_order_relaxed);
  return aware != 0;
}

}  // namespace bestride
