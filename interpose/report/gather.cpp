// SPDX-License-Identifier: Apache-2.0
#include "interpose/report/gather.hpp"

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
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {
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

void say_not_written(const std::string& path, int error) noexcept {
  warn_once("report.file", "the report can't be written to %s (%s); set BESTRIDE_REPORT_FILE", path.c_str(),
            std::strerror(error));
}

/// `rank`: the rank that writes; a rank other than 0 writes only if some rank does not take part. `one_of_many`: every
/// rank writes a report.
void write_report(const ReportHeader& header, const Ledger& ledger, int rank, bool one_of_many) {
  const std::vector<LedgerLine> lines = ledger.lines();
  const CacheSums cache = ledger.cache();
  if (rank == 0 || !one_of_many) write_all(report_text(header, lines, cache));
  const std::string path = rank == 0 ? report_path() : report_path() + "." + std::to_string(rank);
  const std::string json = report_json(header, lines, cache);
  std::FILE* file = inject_failure(FailPoint::report) ? nullptr : std::fopen(path.c_str(), "w");
  bool good = file && std::fwrite(json.data(), 1, json.size(), file) == json.size();
  if (file) good &= std::fclose(file) == 0;
  if (!good) say_not_written(path, errno);
}

/// Sent before a ledger: the number of bytes that follow and the number of ranks it covers.
struct Head {
  std::int64_t bytes, ranks;
};
constexpr int report_tag = 32'001;  // the tag after that of Participants
constexpr int piece_size = 1 << 20;

void send_up(int to, int ranks, Ledger& ledger) noexcept {
  std::string mine;
  try {
    if (inject_failure(FailPoint::report)) throw std::bad_alloc();
    mine = ledger.serialize();
  } catch (...) {
    mine.clear();
  }
  const Head head{static_cast<std::int64_t>(mine.size()), ranks};
  if (real.Send(&head, sizeof head, MPI_BYTE, to, report_tag, MPI_COMM_WORLD) != MPI_SUCCESS) return;
  for (std::size_t sent = 0; sent < mine.size(); sent += piece_size)
    real.Send(mine.data() + sent, static_cast<int>(std::min<std::size_t>(mine.size() - sent, piece_size)), MPI_BYTE, to,
              report_tag, MPI_COMM_WORLD);
}

/// Receives in pieces through a static buffer, so that the sender is never blocked even if memory is short. False if
/// something is missing.
bool receive(int from, std::int64_t* ranks, Ledger& ledger) noexcept {
  static char piece[piece_size];
  Head head{};
  if (real.Recv(&head, sizeof head, MPI_BYTE, from, report_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS)
    return false;
  *ranks += head.ranks;
  std::string blob;
  bool good = head.bytes > 0;
  for (std::int64_t received = 0; received < head.bytes; received += piece_size) {
    const auto length = static_cast<int>(std::min<std::int64_t>(head.bytes - received, piece_size));
    if (real.Recv(piece, length, MPI_BYTE, from, report_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      return false;
    try {
      blob.append(piece, static_cast<std::size_t>(length));
    } catch (...) {
      good = false;
    }
  }
  return good && ledger.merge(blob);
}

}  // namespace

void check_report_file() noexcept {
  try {
    const std::string path = report_path();
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    if (::access(::access(path.c_str(), F_OK) == 0 ? path.c_str() : folder.c_str(), W_OK) != 0)
      say_not_written(path, errno);
  } catch (...) {  // no memory
  }
}

void gather_and_write(const Participants& participants, int rank, ReportHeader& header, Ledger& ledger) noexcept {
  std::int64_t ranks = 1;
  bool all = true;
  for (int i = 0; i < Participants::max_children; ++i)
    if (const int child = participants.reporting_children()[i]; child >= 0) all &= receive(child, &ranks, ledger);
  if (!all) warn_once("report.rank", "the report of some ranks is missing: no memory for it");
  if (const int parent = participants.reporting_parent(); parent >= 0)
    return send_up(parent, static_cast<int>(ranks), ledger);
  if (rank == 0 && !participants.met())
    warn_once("report.alone",
              "the launcher does not say which ranks report: each rank writes its own file; set BESTRIDE_ALL_RANKS=1 "
              "on all ranks for one report, or give "
              "'bestride report' all files");
  header.ranks = static_cast<int>(ranks);
  try {
    write_report(header, ledger, rank, !participants.met());
  } catch (...) {
    warn_once("report", "no memory for the report; nothing is reported");
  }
}

}  // namespace bestride::inline interpose
