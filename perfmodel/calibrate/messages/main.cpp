// SPDX-License-Identifier: Apache-2.0
// bestride-measure-<abi>: measures the curves of a machine profile with two MPI ranks. `bestride calibrate` starts it,
// reads its events from stdout, one in each line, and makes the profile from its state file:
//   config <text>        the configuration; the first line of the state file
//   hosts same|different
//   gpu <0|1: stand-in> <name>      the GPU of the device points
//   gpu-trouble <text>              why no GPU, or only part of it, is measured
//   plan <points> <of them measured before>
//   at <number> <point id>
//   end <measured now> <left out for time> <seconds>
//   error <text>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <sstream>
#include <string>

#include "perfmodel/calibrate/messages/device_phase.hpp"
#include "perfmodel/calibrate/messages/device_wire.hpp"
#include "perfmodel/calibrate/messages/point.hpp"
#include "perfmodel/calibrate/messages/state.hpp"
#include "perfmodel/profile/machine.hpp"

namespace {

using namespace bestride;

/// The GPU's share of the time if both messages and the GPU are measured. Its points are short; on a fast GPU a tenth
/// is enough.
constexpr double gpu_share = 1.0 / 3;

struct Arguments {
  std::string state;
  double budget = 300;
  bool restart = false;
  enum class Gpu { if_there, yes, no } gpu = Gpu::if_there;
  PlanOptions plan;
  double limit() const { return plan.quick ? 1e-3 : 4e-3; }  ///< of a batch of samples, in seconds
};

[[noreturn]] void stop(const std::string& text) {
  std::printf("error %s\n", text.c_str());
  std::fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

Arguments read_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto next = [&]() -> std::string { return ++i < argc ? argv[i] : ""; };
    if (word == "--state")
      arguments.state = next();
    else if (word == "--budget")
      arguments.budget = std::atof(next().c_str());
    else if (word == "--restart")
      arguments.restart = true;
    else if (word == "--quick")
      arguments.plan.quick = true;
    else if (word == "--gpu")
      arguments.gpu = Arguments::Gpu::yes;
    else if (word == "--no-gpu")
      arguments.gpu = Arguments::Gpu::no;
    else if (word == "--only") {
      if (arguments.gpu == Arguments::Gpu::if_there) arguments.gpu = Arguments::Gpu::no;
      std::istringstream words(next());
      for (std::string kind; std::getline(words, kind, ',');) {
        CallKind call;
        if (kind == "gpu") {
          arguments.gpu = Arguments::Gpu::yes;
          continue;
        }
        if (!parse(kind, &call))
          stop("unknown call kind '" + kind + "'; known are pack, unpack, send, receive, isend, irecv, gpu");
        arguments.plan.only.push_back(call);
      }
      arguments.plan.messages = !arguments.plan.only.empty();
    } else
      stop("unknown argument '" + word + "'");
  }
  if (arguments.state.empty()) stop("--state FILE is missing");
  return arguments;
}

std::string configuration() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  const MachineFingerprint here = fingerprint_here(std::string_view(version, static_cast<std::size_t>(length)));
  return here.cpu + " | " + here.mpi_library + " | " + here.host_class + " | " + here.bestride;
}

bool same_host() {
  MPI_Comm host;
  int size = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_size(host, &size);
  MPI_Comm_free(&host);
  return size == 2;
}

/// False if a series of the point was disturbed in every sample; the point is then not stored.
bool write_point(StateWriter& writer, const Point& point, const std::vector<double>& seconds) {
  if (std::find(seconds.begin(), seconds.end(), 0.0) != seconds.end()) return false;
  const std::vector<Series> series = series_at(point);
  for (std::size_t s = 0; s < series.size(); ++s) writer.value(point, series[s], seconds[s]);
  if (point.kind == Shape::Class::contiguous)
    for (std::size_t wire = 0; wire < seconds.size(); ++wire)
      writer.curve(point, static_cast<Wire>(wire), seconds[wire]);
  writer.done(point);
  return true;
}

void say_at(std::size_t known, int number, const std::string& id) {
  std::printf("at %zu %s\n", known + static_cast<std::size_t>(number), id.c_str());
  std::fflush(stdout);
}

/// On rank 0. Sets nothing if no GPU is to be measured or there is none. Returns false, after printing the reason, if a
/// GPU is required and there is none.
bool open_gpu(const Arguments& arguments, std::optional<GpuSession>* gpu) {
  if (arguments.gpu == Arguments::Gpu::no) return true;
  Result<GpuSession> session = GpuSession::open();
  if (!session) {
    const bool needed = arguments.gpu == Arguments::Gpu::yes;
    std::printf("%s%s\n", needed ? "error the GPU can't be measured: " : "gpu-trouble ", session.error().text.c_str());
    return !needed;
  }
  std::printf("gpu %d %s\n", session->stand_in() ? 1 : 0, session->name().c_str());
  gpu->emplace(std::move(*session));
  return true;
}

/// What both ranks measure together. The number of a point is its index in `wire`, followed by `messages`.
struct Together {
  std::vector<DevicePoint> wire;
  std::vector<Point> messages;
  std::optional<WireMeasurer> wire_measurer;
  PointMeasurer message_measurer;

  std::size_t size() const { return wire.size() + messages.size(); }
  std::string id(std::size_t i) const { return i < wire.size() ? wire[i].id() : messages[i - wire.size()].id(); }
  /// False if the point was disturbed in every sample. Without a writer (rank 1) nothing is stored.
  bool measure(std::size_t i, StateWriter* writer) {
    if (i >= wire.size()) {
      const Point& point = messages[i - wire.size()];
      const std::vector<double> seconds = message_measurer.measure(point);
      return !writer || write_point(*writer, point, seconds);
    }
    const double seconds = wire_measurer->measure(wire[i]);
    if (writer && seconds > 0) writer->device(wire[i], seconds);
    return seconds > 0;
  }
};

/// Rank 0: executes the plan and tells rank 1 which point comes next (-1: none).
void drive(const Arguments& arguments, const std::optional<GpuSession>& gpu, Together& together) {
  const std::string config = configuration();
  std::printf("config %s\n", config.c_str());
  MeasuredState before = arguments.restart ? MeasuredState{} : read_state(arguments.state, config);
  std::vector<DevicePoint> device_plan;
  if (gpu) device_plan = make_device_plan(arguments.plan.quick);
  auto writer = StateWriter::open(arguments.state, config, before.done.empty());
  if (!writer) stop(writer.error().text);
  if (gpu && before.gpu != gpu->name()) {
    std::erase_if(before.done, [](const std::string& id) { return id.rfind("gpu.", 0) == 0; });
    writer->gpu(gpu->name(), gpu->stand_in());
  }
  std::size_t known = 0;
  for (const DevicePoint& point : device_plan) known += before.done.count(point.id());
  for (std::size_t i = 0; i < together.size(); ++i) known += before.done.count(together.id(i));
  std::printf("plan %zu %zu\n", together.size() + device_plan.size(), known);
  const double start = MPI_Wtime();
  DevicePhase device;
  if (gpu) {
    int at = 0;
    device = measure_device(*gpu, device_plan, before.done, *writer,
                            arguments.budget * (together.size() == 0 ? 1 : gpu_share), arguments.limit(),
                            [&](const DevicePoint& point) { say_at(known, ++at, point.id()); });
    if (!device.trouble.empty()) std::printf("gpu-trouble %s\n", device.trouble.c_str());
  }
  MPI_Request reached;  // rank 1 waits for it
  MPI_Ibarrier(MPI_COMM_WORLD, &reached);
  MPI_Wait(&reached, MPI_STATUS_IGNORE);
  int measured = device.measured;
  std::vector<std::size_t> waiting;
  for (std::size_t i = 0; i < together.size(); ++i)
    if (!before.done.count(together.id(i))) waiting.push_back(i);
  // A point without an undisturbed sample is measured again at the end, when the machine may be less busy.
  for (int attempt = 0; attempt < 3 && !waiting.empty(); ++attempt) {
    std::vector<std::size_t> again;
    for (std::size_t i : waiting) {
      if (MPI_Wtime() - start > arguments.budget) {
        again.push_back(i);
        continue;
      }
      say_at(known, ++measured, together.id(i));
      int next = static_cast<int>(i);
      MPI_Bcast(&next, 1, MPI_INT, 0, MPI_COMM_WORLD);
      if (together.measure(i, &*writer)) continue;
      again.push_back(i);
      --measured;
    }
    waiting = std::move(again);
  }
  int none = -1;
  MPI_Bcast(&none, 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::printf("end %d %zu %.1f\n", measured, waiting.size() + static_cast<std::size_t>(device.left_out),
              MPI_Wtime() - start);
}

/// True if both ranks have a GPU and an MPI library that accepts its memory; rank 1 then gets its own GPU.
bool wires(int rank, bool good, std::optional<GpuSession>* gpu) {
  int possible = good && mpi_takes_device_memory() && (rank != 0 || *gpu);
  MPI_Allreduce(MPI_IN_PLACE, &possible, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (!possible) return false;
  if (rank == 1)
    if (Result<GpuSession> session = GpuSession::open(rank)) gpu->emplace(std::move(*session));
  possible = gpu->has_value();
  MPI_Allreduce(MPI_IN_PLACE, &possible, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return possible;
}

/// Waits until rank 0 reaches its first broadcast, without taking a processor from the driver's threads.
void wait_for_gpu() {
  MPI_Request reached;
  MPI_Ibarrier(MPI_COMM_WORLD, &reached);
  for (int all = 0; !all; ::usleep(1000)) MPI_Test(&reached, &all, MPI_STATUS_IGNORE);
}

void follow(Together& together) {
  for (;;) {
    int next = -1;
    MPI_Bcast(&next, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (next < 0) return;
    together.measure(static_cast<std::size_t>(next), nullptr);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2)
      stop("needs two ranks, but sees " + std::to_string(size) +
           " (another MPI's launcher starts ranks that do not see each other)");
    Arguments arguments = read_arguments(argc, argv);
    arguments.plan.network = !same_host();
    if (rank == 0) std::printf("hosts %s\n", arguments.plan.network ? "different" : "same");
    std::optional<GpuSession> gpu;
    int good = rank != 0 || open_gpu(arguments, &gpu);
    MPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
    Together together{{}, make_plan(arguments.plan), {}, PointMeasurer(MPI_COMM_WORLD, arguments.limit())};
    if (wires(rank, good, &gpu)) {
      together.wire = make_wire_plan(arguments.plan.network ? Distance::network : Distance::node);
      together.wire_measurer.emplace(MPI_COMM_WORLD, *gpu, arguments.limit());
    }
    if (good && rank == 0)
      drive(arguments, gpu, together);
    else if (good)
      wait_for_gpu(), follow(together);
  } catch (const std::exception& error) {
    stop(error.what());
  }
  MPI_Finalize();
  return 0;
}
