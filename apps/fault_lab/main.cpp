// SPDX-License-Identifier: Apache-2.0
// fault_lab: a program with the usual kinds of MPI communication and one fault, for tests of fault detectors. It is
// plain MPI and knows nothing of a detector. The table of kinds says what a detector should find.
#include <mpi.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <exception>

#include "apps/common/text.hpp"
#include "listing.hpp"
#include "run.hpp"

namespace {

using namespace fault_lab;

enum ExitCode { good = 0, wrong_values = 1, bad_arguments = 2, limit_reached = 124 };

void end_at_limit(int) { _exit(limit_reached); }

/// A timer of this process. Companion is the second one, for a process that can't handle signals. Not SIGALRM, whose
/// handler could end a wait of the program.
void set_limit(double seconds) {
  struct sigaction action {};
  action.sa_handler = end_at_limit;
  sigaction(SIGVTALRM, &action, nullptr);
  const double whole = std::floor(seconds);
  const itimerspec limit{{0, 0}, {time_t(whole), long((seconds - whole) * 1e9)}};
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGVTALRM;
  timer_t timer{};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) timer_settime(timer, 0, &limit, nullptr);
  const rlimit no_core_file{0, 0};
  setrlimit(RLIMIT_CORE, &no_core_file);
}

int run_all(const Options& options, Companion& companion) {
  Job job(options, companion);
  const Outcome outcome = run(job);
  if (job.rank == 0 && outcome.wrong == 0)
    apps::write_text("-", apps::format("ok checksum %016llx ranks %d steps %d\n",
                                       static_cast<unsigned long long>(outcome.checksum), job.ranks, options.steps));
  if (job.rank == 0 && outcome.wrong != 0)
    apps::write_text("-",
                     apps::format("wrong %lld values ranks %d steps %d\n", outcome.wrong, job.ranks, options.steps));
  job.close();
  return outcome.wrong ? wrong_values : good;
}

int run(Parsed& parsed, bool multithreaded, Companion& companion) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (parsed.options && parsed.options->ranks) ranks = parsed.options->ranks;
  std::string text;
  if (parsed.options && parsed.options->help)
    text = usage();
  else if (parsed.options && parsed.options->list)
    text = parsed.options->json ? list_as_json(*parsed.options, ranks) : list_as_text(*parsed.options, ranks);
  if (!text.empty()) {
    if (rank == 0) apps::write_text("-", text);
    return good;
  }
  if (parsed.options) parsed.error = validate(*parsed.options, ranks);
  if (parsed.error.empty() && entry_of(parsed.options->kind).threads && !multithreaded)
    parsed.error = "this MPI has no MPI_THREAD_MULTIPLE";
  if (!parsed.error.empty()) {
    if (rank == 0) std::fprintf(stderr, "fault_lab: %s\n", parsed.error.c_str());
    return bad_arguments;
  }
  return run_all(*parsed.options, companion);
}

}  // namespace

int main(int count, char** arguments) {
  Parsed parsed = parse({arguments + 1, arguments + count});
  const double limit = parsed.options ? parsed.options->limit : 60;
  set_limit(limit);
  Companion companion(limit + 0.5);
  const bool needs_threads = parsed.options && entry_of(parsed.options->kind).threads;
  int level = MPI_THREAD_FUNNELED;
  MPI_Init_thread(&count, &arguments, needs_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &level);
  int code = bad_arguments;
  try {
    code = run(parsed, level == MPI_THREAD_MULTIPLE, companion);
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "fault_lab: %s\n", failed.what());
    MPI_Abort(MPI_COMM_WORLD, bad_arguments);  // the other ranks are waiting
  }
  MPI_Finalize();
  return code;
}
