// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/collective/point.hpp"

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "perfmodel/calibrate/common/job_topology.hpp"
#include "perfmodel/calibrate/common/sampling.hpp"

#include "base/profiling_names.hpp"  // after mpi.h

namespace bestride::inline perfmodel {
namespace {

constexpr double shortest_sample = 200e-6;
constexpr int max_turns = 100, min_rounds = 3, more_rounds = 5, enough_rounds = 30;
constexpr double steady = 0.02;  ///< no more samples are needed if the noise of the ratios is below this
constexpr double patience = 4;   ///< multiple of the limit if the noise stays above it
constexpr double rest = 20e-3;   ///< idle time of the link before each sample, in seconds

enum class Variant { mpi, pmpi };
constexpr int variants = 2;

/// One call on `count` integers for each rank (vectors that are divided) or in total (others). Integers, so that any
/// order of additions gives the same result.
struct Call {
  Collective what;
  bool blocking;
  const int* from;
  int* to;
  int whole;  ///< integers of the complete vector
  int part;   ///< integers of the part of one rank

  void operator()(Variant variant) const {
    const bool library = variant != Variant::mpi;
    if (blocking) return now(library);
    MPI_Request request;
    later(library, &request);
    test_in_turns(variant == Variant::mpi ? MPI_Test : PMPI_Test, &request);
  }

 private:
  static constexpr MPI_Comm all = MPI_COMM_WORLD;
  static constexpr MPI_Datatype type = MPI_INT;

  /// Polls as the preload library does (interpose/collectives/pending.hpp). Used also for calls that the application
  /// makes in their nonblocking form: MPICH's MPI_Wait does not yield the processor to the rank that it waits for, so
  /// it would measure the worst case of the library.
  static void test_in_turns(decltype(&MPI_Test) test, MPI_Request* request) {
    for (int done = 0;;) {
      test(request, &done, MPI_STATUS_IGNORE);
      if (done) return;
      ::sched_yield();
    }
  }
  void now(bool library) const {
    switch (what) {
      case Collective::allgather:
      case Collective::allgatherv:
        (library ? PMPI_Allgather : MPI_Allgather)(from, part, type, to, part, type, all);
        return;
      case Collective::broadcast: (library ? PMPI_Bcast : MPI_Bcast)(to, whole, type, 0, all); return;
      case Collective::reduce_scatter:
        (library ? PMPI_Reduce_scatter_block : MPI_Reduce_scatter_block)(from, to, part, type, MPI_SUM, all);
        return;
      case Collective::allreduce:
        (library ? PMPI_Allreduce : MPI_Allreduce)(from, to, whole, type, MPI_SUM, all);
        return;
      case Collective::reduce: (library ? PMPI_Reduce : MPI_Reduce)(from, to, whole, type, MPI_SUM, 0, all); return;
      case Collective::gather: (library ? PMPI_Gather : MPI_Gather)(from, part, type, to, part, type, 0, all); return;
      case Collective::scatter:
        (library ? PMPI_Scatter : MPI_Scatter)(from, part, type, to, part, type, 0, all);
        return;
      case Collective::alltoall:
        (library ? PMPI_Alltoall : MPI_Alltoall)(from, part, type, to, part, type, all);
        return;
    }
  }
  void later(bool library, MPI_Request* request) const {
    switch (what) {
      case Collective::allgather:
      case Collective::allgatherv:
        (library ? PMPI_Iallgather : MPI_Iallgather)(from, part, type, to, part, type, all, request);
        return;
      case Collective::broadcast: (library ? PMPI_Ibcast : MPI_Ibcast)(to, whole, type, 0, all, request); return;
      case Collective::reduce_scatter:
        (library ? PMPI_Ireduce_scatter_block : MPI_Ireduce_scatter_block)(from, to, part, type, MPI_SUM, all, request);
        return;
      case Collective::allreduce:
        (library ? PMPI_Iallreduce : MPI_Iallreduce)(from, to, whole, type, MPI_SUM, all, request);
        return;
      case Collective::reduce:
        (library ? PMPI_Ireduce : MPI_Ireduce)(from, to, whole, type, MPI_SUM, 0, all, request);
        return;
      case Collective::gather:
        (library ? PMPI_Igather : MPI_Igather)(from, part, type, to, part, type, 0, all, request);
        return;
      case Collective::scatter:
        (library ? PMPI_Iscatter : MPI_Iscatter)(from, part, type, to, part, type, 0, all, request);
        return;
      case Collective::alltoall:
        (library ? PMPI_Ialltoall : MPI_Ialltoall)(from, part, type, to, part, type, all, request);
        return;
    }
  }
};

double time_once(const Call& call, Variant variant, int turns) {
  ::usleep(static_cast<useconds_t>(rest * 1e6));
  yielding_barrier();
  const double before = PMPI_Wtime();
  for (int i = 0; i < turns; ++i) call(variant);
  return largest_of_all_ranks((PMPI_Wtime() - before) / turns);
}

}  // namespace

struct CollectiveMeasurer::Buffers {
  std::vector<int> from, to;
};

CollectiveMeasurer::CollectiveMeasurer() : buffers_(std::make_unique<Buffers>()) {}
CollectiveMeasurer::~CollectiveMeasurer() = default;

VariantTimes CollectiveMeasurer::measure(const CollectivePoint& point, double limit) {
  int ranks = 1;
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int whole = static_cast<int>(collective_bytes_at(point.size) / static_cast<std::int64_t>(sizeof(int))),
            part = std::max(1, whole / ranks);
  const auto buffer_elements = static_cast<std::size_t>(std::max(whole, part * ranks));
  buffers_->from.resize(std::max(buffers_->from.size(), buffer_elements), 1);
  buffers_->to.resize(std::max(buffers_->to.size(), buffer_elements), 1);
  const Call call{point.what, point.blocking, buffers_->from.data(), buffers_->to.data(), whole, part};
  // The first call of each kind creates connections and windows; for long calls this is negligible. All ranks have the
  // same times, so all make the same plan.
  double seconds = 0;
  for (int warm = 0; warm < 2 && seconds < limit; ++warm) {
    seconds = 0;
    for (int variant = 0; variant < variants; ++variant) seconds += time_once(call, Variant{variant}, 1);
  }
  const int turns = static_cast<int>(std::clamp(variants * shortest_sample / seconds, 1.0, double{max_turns}));
  std::array<std::vector<double>, variants> times;
  VariantTimes result;
  double spent = 0;
  for (int round = 1; round <= enough_rounds; ++round) {
    // Each call affects the next, so the order changes from round to round.
    for (int place = 0; place < variants; ++place) {
      const int variant = (round + place) % variants;
      times[static_cast<std::size_t>(variant)].push_back(time_once(call, Variant{variant}, turns));
      spent += times[static_cast<std::size_t>(variant)].back() * turns + rest;
    }
    result = compare_variants(times[0], times[1]);
    if (round < min_rounds) continue;
    if (spent >= patience * limit || (result.noise <= steady && (round >= more_rounds || spent >= limit))) break;
  }
  return result;
}

}  // namespace bestride::inline perfmodel
