// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/messages/measure.hpp"

#include <mpi.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "perfmodel/calibrate/common/events.hpp"
#include "perfmodel/calibrate/common/joint_points.hpp"
#include "perfmodel/calibrate/messages/device_messages.hpp"
#include "perfmodel/calibrate/messages/device_points.hpp"
#include "perfmodel/calibrate/messages/point.hpp"
#include "perfmodel/calibrate/messages/state.hpp"

namespace bestride::inline perfmodel {
namespace {

/// The GPU's share of the time if both messages and the GPU are measured. Its points are short; on a fast GPU a tenth
/// is enough.
constexpr double gpu_share = 1.0 / 3;

/// On rank 0. Sets nothing if no GPU is to be measured or there is none. Returns false, after printing the event
/// `error`, if a GPU is required and there is none.
bool open_gpu(MeasureOptions::Gpu wanted, std::optional<GpuSession>* gpu) {
  if (wanted == MeasureOptions::Gpu::no) return true;
  Result<GpuSession> session = GpuSession::open();
  if (!session) {
    const bool required = wanted == MeasureOptions::Gpu::required;
    print_event("%s%s", required ? "error the GPU can't be measured: " : "gpu-problem ", session.error().text.c_str());
    return !required;
  }
  print_event("gpu %d %s", session->stand_in() ? 1 : 0, session->name().c_str());
  gpu->emplace(std::move(*session));
  return true;
}

bool on_all_ranks(bool value) {
  int all = value;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all;
}

/// True if both ranks have a GPU and an MPI library that accepts its memory; rank 1 then gets its own GPU.
bool can_send_device_memory(int rank, std::optional<GpuSession>* gpu) {
  if (!on_all_ranks(mpi_takes_device_memory() && (rank != 0 || *gpu))) return false;
  if (rank == 1)
    if (Result<GpuSession> session = GpuSession::open(rank)) gpu->emplace(std::move(*session));
  return on_all_ranks(gpu->has_value());
}

/// What both ranks measure together: messages of device memory, then all others.
class MessagePoints : public PointSet {
 public:
  MessagePoints(std::vector<Point> plan, double limit)
      : plan_(std::move(plan)), limit_(limit), measurer_(MPI_COMM_WORLD, limit) {}
  void add_wire(const GpuSession& gpu, Distance distance) {
    gpu_ = &gpu;
    wire_ = make_wire_plan(distance);
    wire_measurer_.emplace(MPI_COMM_WORLD, gpu, limit_);
  }

  std::size_t size() const override { return wire_.size() + plan_.size(); }
  std::string id(std::size_t i) const override {
    return i < wire_.size() ? wire_[i].id() : plan_[i - wire_.size()].id();
  }
  std::string text(std::size_t i) const override {
    return i < wire_.size() ? wire_[i].id() : plan_[i - wire_.size()].text();
  }
  Result<bool> measure(std::size_t i, StateWriter* state) override {
    if (i < wire_.size()) {
      const double seconds = wire_measurer_->measure(wire_[i]);
      if (state && seconds > 0) write_device_point(*state, wire_[i], seconds, gpu_->name(), gpu_->stand_in());
      return seconds > 0;
    }
    const Point& point = plan_[i - wire_.size()];
    const std::vector<double> seconds = measurer_.measure(point);
    const bool measured = std::find(seconds.begin(), seconds.end(), 0.0) == seconds.end();
    if (state && measured) write_point(*state, point, seconds);
    return measured;
  }

 private:
  const std::vector<Point> plan_;
  const double limit_;
  PointMeasurer measurer_;
  const GpuSession* gpu_ = nullptr;
  std::vector<DevicePoint> wire_;
  std::optional<MessageMeasurer> wire_measurer_;
};

/// On rank 0.
void run_plan(const MeasureOptions& options, const std::string& configuration, const std::optional<GpuSession>& gpu,
              double limit, MessagePoints& messages) {
  MessagesState before = options.restart ? MessagesState{} : read_messages_state(options.state, configuration);
  auto state = StateWriter::open(options.state, messages_subject(configuration), before.done.empty());
  if (!state) throw std::runtime_error(state.error().text);
  std::vector<const PointSet*> plan{&messages};
  std::optional<DevicePoints> device;
  if (gpu) {
    if (before.gpu != gpu->name()) before.clear_device();
    plan.push_back(&device.emplace(*gpu, make_device_plan(options.quick()), limit));
  }
  PointRun run(plan, std::move(before.done), std::move(*state), options.budget_s);
  if (device) {
    const std::string error = run.measure(*device, messages.size() == 0 ? 1 : gpu_share, [](std::size_t) {});
    if (!error.empty()) print_event("gpu-problem %s", error.c_str());
    device.reset();
  }
  yielding_barrier();
  measure_together(messages, &run);
  run.end();
}

}  // namespace

void measure_messages(const MeasureOptions& options, const JobTopology& place, const std::string& configuration) {
  if (place.topology.ranks() != 2)
    throw std::runtime_error("needs two ranks, but sees " + std::to_string(place.topology.ranks()) +
                             " (another MPI's launcher starts ranks that do not see each other)");
  const double limit = options.quick() ? 1e-3 : 4e-3;  // of a batch of samples, in seconds
  const bool network = place.topology.nodes() > 1;
  std::optional<GpuSession> gpu;
  if (!on_all_ranks(place.rank != 0 || open_gpu(options.gpu, &gpu))) return;
  MessagePoints messages(make_plan({options.depth, options.messages, options.calls, network, options.near}), limit);
  if (can_send_device_memory(place.rank, &gpu)) messages.add_wire(*gpu, network ? Distance::network : Distance::node);
  if (place.rank == 0) return run_plan(options, configuration, gpu, limit, messages);
  yielding_barrier(true);  // leaves the processor to the threads of the GPU's driver on rank 0
  measure_together(messages, nullptr);
}

}  // namespace bestride::inline perfmodel
