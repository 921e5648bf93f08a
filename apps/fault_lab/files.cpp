// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "phases.hpp"

namespace fault_lab {
namespace {

enum FileMessage { written };

/// The same on all ranks, new for each job.
std::string path_of(const Job& job) {
  const char* const folder = std::getenv("TMPDIR");
  int id = int(getpid());
  MPI_Bcast(&id, 1, MPI_INT, 0, job.first);
  return std::string(folder ? folder : "/tmp") + "/fault_lab." + std::to_string(id) + ".field";
}

}  // namespace

void files(Job& job) {
  const std::string path = path_of(job);
  MPI_File file;
  MPI_File_open(job.first, path.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                &file);
  const std::uint64_t word = job.word(job.rank, written, 0);
  std::uint64_t back = 0;
  const MPI_Offset at = MPI_Offset(sizeof word) * job.rank;
  if (job.trigger(Kind::late_writer)) job.computation.run(job.options.pause_seconds);
  if (!job.trigger(Kind::missing_write)) MPI_File_write_at_all(file, at, &word, 1, MPI_UINT64_T, MPI_STATUS_IGNORE);
  MPI_File_read_at(file, at, &back, 1, MPI_UINT64_T, MPI_STATUS_IGNORE);
  job.check("a file", 0, back, word);
  if (job.trigger(Kind::missing_close)) MPI_Barrier(job.first);
  MPI_File_close(&file);
  MPI_Barrier(job.first);
}

}  // namespace fault_lab
