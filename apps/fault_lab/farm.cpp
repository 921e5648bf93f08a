// SPDX-License-Identifier: Apache-2.0
#include "phases.hpp"

namespace fault_lab {
namespace {

enum FarmTag { task_tag = 1, result_tag = 2, stop_tag = 3 };

/// The result of a task: its first word identifies it, the second depends on all words of the task.
struct Result {
  std::uint64_t number, value;
};

std::uint64_t digest(const Words& data) {
  std::uint64_t value = 0;
  for (std::size_t at = 1; at < data.size(); ++at) value += mix(data[at], data[0], at);
  return value;
}

/// Word 0 is the number of the task.
Words task_data(const Job& job, int number) {
  Words data = job.message(0, number, job.words());
  data[0] = std::uint64_t(number);
  return data;
}

class Master {
 public:
  explicit Master(Job& job) : job_(job), tasks_(job.options.tasks * (job.ranks - 1)) {}

  void run() {
    for (int worker = 1; worker < job_.ranks; ++worker) send_task(worker);
    if (job_.trigger(Kind::any_source_starvation)) serve_only_first();
    for (int working = job_.ranks - 1; working > 0;) {
      const int worker = receive(MPI_ANY_SOURCE);
      if (next_ < tasks_) {
        send_task(worker);
      } else {
        MPI_Send(nullptr, 0, MPI_UINT64_T, worker, stop_tag, job_.farm);
        --working;
      }
    }
  }

 private:
  void send_task(int worker) {
    const Words data = task_data(job_, next_++);
    MPI_Send(data.data(), int(data.size()), MPI_UINT64_T, worker, task_tag, job_.farm);
  }

  int receive(int source) {
    Result got{};
    MPI_Status status;
    MPI_Recv(&got, 2, MPI_UINT64_T, source, result_tag, job_.farm, &status);
    job_.check("a task's result", std::size_t(got.number), got.value, digest(task_data(job_, int(got.number))));
    return status.MPI_SOURCE;
  }

  /// Worker 1 always has the next result ready, and it is taken first.
  [[noreturn]] void serve_only_first() {
    for (;;) {
      MPI_Status status;
      MPI_Probe(MPI_ANY_SOURCE, result_tag, job_.farm, &status);
      int ready = status.MPI_SOURCE == 1;
      while (!ready) MPI_Iprobe(1, result_tag, job_.farm, &ready, MPI_STATUS_IGNORE);
      send_task(receive(1));
    }
  }

  Job& job_;
  const int tasks_;
  int next_ = 0;
};

void work(Job& job, double task_seconds) {
  bool loses_result = false;
  Words data(job.words());
  for (;;) {
    MPI_Status status;
    MPI_Recv(data.data(), int(data.size()), MPI_UINT64_T, 0, MPI_ANY_TAG, job.farm, &status);
    if (status.MPI_TAG == stop_tag) return;
    if (task_seconds > 0)
      job.computation.run(task_seconds);
    else if (!job.now(Kind::any_source_starvation))
      job.compute(1.0 / job.options.tasks);
    loses_result = loses_result || job.trigger(Kind::lost_result);
    if (loses_result) continue;
    const Result done{data[0], digest(data)};
    MPI_Send(&done, 2, MPI_UINT64_T, 0, result_tag, job.farm);
  }
}

}  // namespace

void farm(Job& job, double task_seconds) {
  if (job.rank == 0)
    Master(job).run();
  else
    work(job, task_seconds);
}

}  // namespace fault_lab
