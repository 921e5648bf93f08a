// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_cuda/kernels.hpp"

#include <dlfcn.h>

#include <cstring>

#include "kernels/cuda/kernels/move.hpp"
#include "tests/fake_cuda/memory.hpp"

namespace fake {
namespace {

namespace cuda = bestride::cuda;

constexpr Code misaligned_address = 716;

/// A thread block: its threads one after the other between barriers.
class HostTeam {
 public:
  explicit HostTeam(const Context* context) : context_(context) {}

  template <class F>
  void each(F&& f) {
    for (cuda::Number thread = 0; thread < cuda::threads_per_block && fault_ == code::success; ++thread) f(thread);
  }
  template <class F>
  void free_running(F&& f) {
    each(f);
  }
  template <class Word>
  Word load(std::uint64_t address) {
    Word value{};
    if (const unsigned char* bytes = at(address, sizeof value)) std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  template <class Word>
  void store(std::uint64_t address, Word value) {
    if (unsigned char* bytes = at(address, sizeof value)) std::memcpy(bytes, &value, sizeof value);
  }
  unsigned char* shared() { return shared_; }

  /// The engine wants whole multiples of 16.
  bool bulk(std::uint64_t target, std::uint64_t source, cuda::Number bytes) {
    if (state().capability < 90) return false;
    if ((target | source | bytes) % 16 != 0) fault_ = misaligned_address;
    unsigned char* to = at(target, bytes);
    const unsigned char* from = at(source, bytes);
    if (to && from) std::memcpy(to, from, bytes);
    return true;
  }

  Code fault() const { return fault_; }

 private:
  unsigned char* at(std::uint64_t address, std::size_t size) {
    if (size <= 16 && address % size != 0) fault_ = misaligned_address;
    if (fault_ != code::success) return nullptr;
    const Allocation*& hint = hints_[address >> 12 & 3];
    unsigned char* bytes = reach(address, size, context_, &hint);
    if (!bytes) fault_ = code::illegal_address;
    return bytes;
  }

  const Context* context_;
  const Allocation* hints_[4] = {};
  Code fault_ = code::success;
  alignas(128) unsigned char shared_[cuda::shared_bytes];
};

constexpr Function functions[] = {{cuda::small_kernel, sizeof(cuda::SmallWork)},
                                  {cuda::large_kernel, sizeof(cuda::LargeWork)},
                                  {cuda::far_kernel, sizeof(Address)}};

/// The program's table, if it has one.
const fake_cuda_kernel* exported(const char* name) {
  const auto* kernel = static_cast<const fake_cuda_kernel*>(dlsym(RTLD_DEFAULT, "fake_cuda_kernels"));
  while (kernel && kernel->name && std::strcmp(kernel->name, name) != 0) ++kernel;
  return kernel && kernel->name ? kernel : nullptr;
}

struct Launch : fake_cuda_launch {
  const Context* context;
};

void* at(const fake_cuda_launch* launch, unsigned long long address, unsigned long long bytes) {
  const Allocation* hint = nullptr;
  return reach(address, bytes, static_cast<const Launch*>(launch)->context, &hint);
}

}  // namespace

Function function_named(const char* name) {
  for (const Function& function : functions)
    if (std::strcmp(function.name, name) == 0) return function;
  const fake_cuda_kernel* kernel = exported(name);
  return kernel ? Function{kernel->name, kernel->parameter_bytes, kernel} : Function{nullptr, 0};
}

Code run_kernel(const Function& function, const void* parameters, unsigned grid, unsigned block, Context* context) {
  const std::shared_lock lock(memory_mutex());
  if (function.exported) {
    const Launch launch{{grid, block, at}, context};
    return function.exported->run(&launch, parameters);
  }
  HostTeam team(context);
  const std::uint64_t* data = static_cast<const std::uint64_t*>(parameters);
  if (std::strcmp(function.name, cuda::far_kernel) == 0) {
    const Allocation* hint = nullptr;
    data = reinterpret_cast<const std::uint64_t*>(reach(*data, 8, context, &hint));
    if (!data) return code::illegal_address;
  }
  for (unsigned each = 0; each < grid && team.fault() == code::success; ++each) cuda::move(team, data, each, grid);
  return team.fault();
}

}  // namespace fake
