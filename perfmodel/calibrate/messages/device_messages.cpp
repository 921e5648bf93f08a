// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/messages/device_messages.hpp"

#include <dlfcn.h>

#include <stdexcept>

#include "base/variables.hpp"
#include "perfmodel/calibrate/messages/pair.hpp"

namespace bestride::inline perfmodel {
namespace {

constexpr std::size_t largest = static_cast<std::size_t>(curve_bytes_at(curve_points - 1));

char* pointer(cuda::Address address) { return reinterpret_cast<char*>(address); }

}  // namespace

bool mpi_takes_device_memory() {
  if (const std::string& said = Settings::get().text("BESTRIDE_GPU_AWARE"); said != "auto") return said == "yes";
  constexpr int cuda_memory = 0;  // MPIX_GPU_SUPPORT_CUDA
  if (const auto query = reinterpret_cast<int (*)(int, int*)>(dlsym(RTLD_DEFAULT, "MPIX_GPU_query_support"))) {
    int yes = 0;
    if (query(cuda_memory, &yes) == MPI_SUCCESS && yes) return true;
  }
  const auto query = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
  return query && query() == 1;
}

MessageMeasurer::MessageMeasurer(MPI_Comm pair, const GpuSession& session, double limit)
    : pair_(pair), driver_(session.device()->driver()), limit_(limit) {
  for (cuda::Address* address : {&memory_, &other_})
    if (const cuda::Code code = driver_.cuMemAlloc(address, largest))
      throw std::runtime_error(driver_.error("cuMemAlloc", code).text);
}

MessageMeasurer::~MessageMeasurer() {
  driver_.cuMemFree(memory_);
  driver_.cuMemFree(other_);
}

double MessageMeasurer::measure(const DevicePoint& point) {
  const int bytes = static_cast<int>(point.bytes());
  const OneWay one_way(pair_, CallKind::send, point.distance, bytes, pointer(other_));
  const auto action = [&] {
    if (!one_way.answered() && !one_way.works()) return one_way.idle();
    one_way.transfer(pointer(memory_), bytes, MPI_BYTE);
    one_way.answer();
  };
  return time_actions(pair_, {action}, one_way.answered(), limit_)[0];
}

}  // namespace bestride::inline perfmodel
