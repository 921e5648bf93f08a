// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/collective/one_node.hpp"

#include <mpi.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "model/processors.hpp"
#include "perfmodel/calibrate/collective/preload.hpp"
#include "perfmodel/calibrate/common/events.hpp"
#include "perfmodel/calibrate/common/paired_samples.hpp"
#include "perfmodel/calibrate/common/sampling.hpp"
#include "perfmodel/collective/one_node_measurements.hpp"

#include "base/profiling_names.hpp"  // after mpi.h

namespace bestride::inline perfmodel {
namespace {

constexpr double sample_s = 200e-6;
constexpr int max_turns = 200;
constexpr int rounds = 5;
constexpr std::size_t least_samples = 3;  ///< pairs in which no rank was preempted
/// All points are measured so many times: what disturbs one often lasts longer than all its rounds.
constexpr std::size_t thorough_passes = 4, quick_passes = 2;
constexpr std::int64_t longest_buffer = 16 << 20;

/// The functions of one side. Looked up once: a look-up takes as long as a short call.
struct Functions {
  decltype(&MPI_Barrier) barrier;
  decltype(&MPI_Neighbor_alltoall) neighbor_alltoall;
  decltype(&MPI_Bcast) bcast;
  decltype(&MPI_Allgather) allgather;
  decltype(&MPI_Gather) gather;
  decltype(&MPI_Scatter) scatter;
  decltype(&MPI_Alltoall) alltoall;
  decltype(&MPI_Allreduce) allreduce;
  decltype(&MPI_Reduce) reduce;
  decltype(&MPI_Reduce_scatter_block) reduce_scatter_block;
  decltype(&MPI_Ibcast) ibcast;
  decltype(&MPI_Iallgather) iallgather;
  decltype(&MPI_Igather) igather;
  decltype(&MPI_Iscatter) iscatter;
  decltype(&MPI_Ialltoall) ialltoall;
  decltype(&MPI_Iallreduce) iallreduce;
  decltype(&MPI_Ireduce) ireduce;
  decltype(&MPI_Ireduce_scatter_block) ireduce_scatter_block;
};

/// look_up(name): the address of the function of this name.
template <class LookUp>
Functions functions_by(LookUp look_up) {
  Functions all{};
  const auto find = [&](auto* pointer, const char* name) {
    *pointer = reinterpret_cast<std::remove_pointer_t<decltype(pointer)>>(look_up(name));
  };
  find(&all.barrier, "MPI_Barrier");
  find(&all.neighbor_alltoall, "MPI_Neighbor_alltoall");
  find(&all.bcast, "MPI_Bcast");
  find(&all.allgather, "MPI_Allgather");
  find(&all.gather, "MPI_Gather");
  find(&all.scatter, "MPI_Scatter");
  find(&all.alltoall, "MPI_Alltoall");
  find(&all.allreduce, "MPI_Allreduce");
  find(&all.reduce, "MPI_Reduce");
  find(&all.reduce_scatter_block, "MPI_Reduce_scatter_block");
  find(&all.ibcast, "MPI_Ibcast");
  find(&all.iallgather, "MPI_Iallgather");
  find(&all.igather, "MPI_Igather");
  find(&all.iscatter, "MPI_Iscatter");
  find(&all.ialltoall, "MPI_Ialltoall");
  find(&all.iallreduce, "MPI_Iallreduce");
  find(&all.ireduce, "MPI_Ireduce");
  find(&all.ireduce_scatter_block, "MPI_Ireduce_scatter_block");
  return all;
}

/// One call of `bytes` bytes, as OneNodeBounds counts them. Integers, so that any order of additions gives the same
/// result.
class Caller {
 public:
  explicit Caller(int ranks) : ranks_(ranks) {
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int from = (rank + ranks - 1) % ranks, to = (rank + 1) % ranks;
    PMPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                    &ring_);
  }
  ~Caller() { MPI_Comm_free(&ring_); }
  Caller(const Caller&) = delete;

  /// False: the buffers would be too long.
  bool prepare(const OneNodeCall& call, std::int64_t bytes) {
    const bool many = call.kind == OneNodeCall::Kind::collective && per_pair(call.what);
    if (bytes * (many ? ranks_ : 1) > longest_buffer) return false;
    count_ = std::max(1, static_cast<int>(bytes) / static_cast<int>(sizeof(int)));
    part_ = std::max(1, count_ / ranks_);
    const std::size_t length =
        std::max<std::size_t>(static_cast<std::size_t>(count_) * static_cast<std::size_t>(many ? ranks_ : 1),
                              static_cast<std::size_t>(part_) * static_cast<std::size_t>(ranks_));
    from_.resize(std::max(from_.size(), length), 1);
    to_.resize(std::max(to_.size(), length), 1);
    return true;
  }

  void operator()(const Functions& by, const OneNodeCall& call) {
    switch (call.kind) {
      case OneNodeCall::Kind::barrier: by.barrier(all); return;
      case OneNodeCall::Kind::neighbors:
        by.neighbor_alltoall(from_.data(), count_, type, to_.data(), count_, type, ring_);
        return;
      case OneNodeCall::Kind::collective: break;
    }
    // As in a program, the data of each call are new.
    ++from_[0];
    call.blocking ? now(by, call.what) : later(by, call.what);
  }

 private:
  static constexpr MPI_Comm all = MPI_COMM_WORLD;
  static constexpr MPI_Datatype type = MPI_INT;

  void now(const Functions& by, Collective what) {
    const int* const from = from_.data();
    int* const to = to_.data();
    switch (what) {
      case Collective::broadcast: by.bcast(from_.data(), count_, type, 0, all); return;
      case Collective::allgatherv:
      case Collective::allgather: by.allgather(from, count_, type, to, count_, type, all); return;
      case Collective::gather: by.gather(from, count_, type, to, count_, type, 0, all); return;
      case Collective::scatter: by.scatter(from, count_, type, to, count_, type, 0, all); return;
      case Collective::alltoall: by.alltoall(from, count_, type, to, count_, type, all); return;
      case Collective::allreduce: by.allreduce(from, to, count_, type, MPI_SUM, all); return;
      case Collective::reduce: by.reduce(from, to, count_, type, MPI_SUM, 0, all); return;
      case Collective::reduce_scatter: by.reduce_scatter_block(from, to, part_, type, MPI_SUM, all); return;
    }
  }
  void later(const Functions& by, Collective what) {
    const int* const from = from_.data();
    int* const to = to_.data();
    MPI_Request request = MPI_REQUEST_NULL;
    switch (what) {
      case Collective::broadcast: by.ibcast(from_.data(), count_, type, 0, all, &request); break;
      case Collective::allgatherv:
      case Collective::allgather: by.iallgather(from, count_, type, to, count_, type, all, &request); break;
      case Collective::gather: by.igather(from, count_, type, to, count_, type, 0, all, &request); break;
      case Collective::scatter: by.iscatter(from, count_, type, to, count_, type, 0, all, &request); break;
      case Collective::alltoall: by.ialltoall(from, count_, type, to, count_, type, all, &request); break;
      case Collective::allreduce: by.iallreduce(from, to, count_, type, MPI_SUM, all, &request); break;
      case Collective::reduce: by.ireduce(from, to, count_, type, MPI_SUM, 0, all, &request); break;
      case Collective::reduce_scatter: by.ireduce_scatter_block(from, to, part_, type, MPI_SUM, all, &request); break;
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }

  const int ranks_;
  MPI_Comm ring_ = MPI_COMM_NULL;
  std::vector<int> from_, to_;
  int count_ = 1, part_ = 1;
};

/// Seconds of a call on the slowest rank.
double time_once(Caller& caller, const Functions& by, const OneNodeCall& call, int turns) {
  yielding_barrier();
  const double before = PMPI_Wtime();
  for (int i = 0; i < turns; ++i) caller(by, call);
  return largest_of_all_ranks((PMPI_Wtime() - before) / turns);
}

struct AlternatingPoint {
  const OneNodeCall& call;
  std::size_t size;  ///< index into one_node_bytes
  std::vector<double> shared{}, library{};

  /// All ranks have the same times and preemptions, so all make the same plan.
  void measure(Caller& caller, const Functions& ours, const Functions& theirs) {
    double seconds = 0;
    for (int warm = 0; warm < 3; ++warm)
      seconds = time_once(caller, ours, call, 4) + time_once(caller, theirs, call, 4);
    const int turns = static_cast<int>(std::clamp(sample_s / (seconds / 2), 1.0, double{max_turns}));
    for (int round = 0; round < rounds; ++round) {
      const long before = preemptions();
      const bool ours_first = round % 2 == 0;
      const double first = time_once(caller, ours_first ? ours : theirs, call, turns);
      const double second = time_once(caller, ours_first ? theirs : ours, call, turns);
      // Nonblocking ones are preempted by the ranks' own progress threads, too.
      if (call.blocking && largest_of_all_ranks(static_cast<double>(preemptions() - before)) > 0) continue;
      shared.push_back(ours_first ? first : second);
      library.push_back(ours_first ? second : first);
    }
  }
  bool enough() const noexcept { return shared.size() >= least_samples; }
};

/// The number of processors that at least one rank may use.
int processors_of_all() {
  constexpr std::size_t most = std::size_t{1} << 16;
  std::vector<unsigned char> used(most);
  for (const int processor : allowed_processors())
    if (static_cast<std::size_t>(processor) < most) used[static_cast<std::size_t>(processor)] = 1;
  PMPI_Allreduce(MPI_IN_PLACE, used.data(), static_cast<int>(most), MPI_UNSIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD);
  return static_cast<int>(std::count(used.begin(), used.end(), 1));
}

/// nullptr: nothing is in the way.
const char* why_not(const JobTopology& place) {
  if (place.topology.nodes() != 1) return "the ranks are on several hosts";
  const int ranks = place.topology.ranks();
  if (ranks < 2) return "there is one rank only";
  int intercepted = preloaded();
  PMPI_Allreduce(MPI_IN_PLACE, &intercepted, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (!intercepted) return "the library could not be preloaded";
  return processors_of_all() < ranks ? "there are more ranks than processors that they may use" : nullptr;
}

}  // namespace

void measure_one_node(const MeasureOptions& options, const JobTopology& place) {
  const bool prints = place.rank == 0;
  if (const char* const reason = why_not(place)) {
    if (prints) print_event("no-one-node %s", reason), print_event("end 0 0 0");
    return;
  }
  const double start = PMPI_Wtime();
  // The preload library is the first that has MPI_ names.
  const Functions ours = functions_by([](const char* name) { return ::dlsym(RTLD_DEFAULT, name); });
  const Functions library =
      functions_by([](const char* name) { return library_symbol((std::string("P") + name).c_str()); });
  const std::size_t passes = options.quick() ? quick_passes : thorough_passes;
  Caller caller(place.topology.ranks());
  std::vector<AlternatingPoint> points;
  for (std::size_t size = 0; size < one_node_bytes.size(); ++size)
    for (const OneNodeCall& call : one_node_calls)
      if (size < call.sizes() && caller.prepare(call, one_node_bytes[size])) points.push_back({call, size});
  if (prints) print_event("plan %zu 0", passes * points.size());
  std::size_t number = 0;
  for (std::size_t pass = 0; pass < passes; ++pass)
    for (AlternatingPoint& point : points) {
      ++number;
      if (largest_of_all_ranks(PMPI_Wtime() - start) > options.budget_s) break;
      const std::int64_t bytes = one_node_bytes[point.size];
      if (prints) print_event("at %zu %s %lld B", number, point.call.id().c_str(), static_cast<long long>(bytes));
      caller.prepare(point.call, bytes);
      point.measure(caller, ours, library);
    }
  int measured = 0, left_out = 0;
  for (const AlternatingPoint& point : points) {
    ++(point.enough() ? measured : left_out);
    if (!prints || !point.enough()) continue;
    const VariantTimes times = compare_variants(point.shared, point.library);
    print_event("one-node %s %zu %.6g %.6g", point.call.id().c_str(), point.size, times.mpi * 1e9, times.pmpi * 1e9);
  }
  if (prints) print_event("end %d %d %.1f", measured, left_out, PMPI_Wtime() - start);
}

}  // namespace bestride::inline perfmodel
