// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/report.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "base/message.hpp"
#include "base/variables.hpp"
#include "interpose/back/calls.hpp"
#include "interpose/back/fail.hpp"

namespace bestride {
namespace {

void write_all(const std::string& text) noexcept {
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t now = ::write(2, text.data() + written, text.size() - written);
    if (now <= 0) return;
    written += static_cast<std::size_t>(now);
  }
}

std::string report_path() {
  const std::string& chosen = Settings::get().text("BESTRIDE_REPORT_FILE");
  if (!chosen.empty()) return chosen;
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "PALS_APID"})
    if (const char* job = std::getenv(name)) return "bestride-" + std::string(job) + ".json";
  return "bestride-" + std::to_string(::getpid()) + ".json";
}

void write_report(const ReportHeader& header, const Ledger& ledger) {
  const std::vector<LedgerLine> lines = ledger.lines();
  const CacheSums cache = ledger.cache();
  write_all(report_text(header, lines, cache));
  const std::string path = report_path();
  const std::string json = report_json(header, lines, cache);
  std::FILE* file = fail_here(FailPoint::report) ? nullptr : std::fopen(path.c_str(), "w");
  bool good = file && std::fwrite(json.data(), 1, json.size(), file) == json.size();
  if (file) good &= std::fclose(file) == 0;
  if (!good)
    say_once("report.file", "the report can't be written to %s (%s); set BESTRIDE_REPORT_FILE", path.c_str(), std::strerror(errno));
}

}  // namespace

void gather_and_write(MPI_Comm comm, const ReportHeader& header, Ledger& ledger) noexcept {
  // Point to point in pieces of one fixed buffer, not MPI_Gatherv: rank 0 can then take part to the end whatever memory there is.
  // The last piece of a rank is shorter than the buffer.
  constexpr int piece_size = 1 << 16;
  static char piece[piece_size];
  int rank = 0;
  int ranks = 1;
  if (real.Comm_rank(comm, &rank) != MPI_SUCCESS || real.Comm_size(comm, &ranks) != MPI_SUCCESS) return;
  if (rank != 0) {
    std::string mine;
    try {
      if (fail_here(FailPoint::report)) throw std::bad_alloc();
      mine = ledger.serialise();
    } catch (...) {
    }
    for (std::size_t sent = 0;; sent += piece_size) {
      const int length = static_cast<int>(std::min<std::size_t>(mine.size() - sent, piece_size));
      if (real.Send(mine.data() + sent, length, MPI_BYTE, 0, 0, comm) != MPI_SUCCESS || length < piece_size) return;
    }
  }
  bool all = true;
  for (int from = 1; from < ranks; ++from) {
    std::string blob;
    for (int length = piece_size; length == piece_size;) {
      MPI_Status status;
      if (real.Recv(piece, piece_size, MPI_BYTE, from, 0, comm, &status) != MPI_SUCCESS ||
          real.Get_count(&status, MPI_BYTE, &length) != MPI_SUCCESS)
        return;
      try {
        blob.append(piece, static_cast<std::size_t>(length));
      } catch (...) {
        blob.clear();
      }
    }
    all &= ledger.merge(blob);
  }
  if (!all) say_once("report.rank", "the report of some ranks is missing: no memory for it");
  try {
    write_report(header, ledger);
  } catch (...) {
    say_once("report", "no memory for the report; nothing is reported");
  }
}

}  // namespace bestride
