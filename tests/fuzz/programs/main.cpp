// SPDX-License-Identifier: Apache-2.0
// fuzz_programs: executes random MPI programs and writes a trace for each rank.
//
//   mpiexec -n 4 fuzz_programs --seed 1 --first 0 --count 100 --trace PREFIX     traces in PREFIX.0 ... PREFIX.3
//   mpiexec -n 4 fuzz_programs --program FILE --trace PREFIX                     programs in the format of --print
//   mpiexec -n 4 fuzz_programs --program FILE --emit PREFIX                      also writes the C text of each rank
//   mpiexec -n 2 fuzz_programs --mismatched --seed 1 --first 0 --trace PREFIX    an erroneous program, ends within
//   --seconds (6) fuzz_programs --print --seed 1 --first 17 --ranks 4 [--threads]              the program as text,
//   without MPI
//
// A trace has one line per step, which is written when the step begins ("> 3 collective") and completed when it ends.
#include <mpi.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/fuzz/programs/context.hpp"

using namespace bestride::fuzz;

namespace {

struct Options {
  std::uint64_t seed = 1, first = 0, count = 1;
  int ranks = 2;
  unsigned seconds = 6;
  bool threads = false, print = false, no_throwing = false, mismatched = false;
  std::string trace = "trace", program, emit;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--threads")
      options.threads = true;
    else if (word == "--print")
      options.print = true;
    else if (word == "--mismatched")
      options.mismatched = true;
    else if (word == "--no-throwing")
      options.no_throwing = true;
    else {
      ++i;
      if (word == "--seed")
        options.seed = std::strtoull(value, nullptr, 10);
      else if (word == "--first")
        options.first = std::strtoull(value, nullptr, 10);
      else if (word == "--count")
        options.count = std::strtoull(value, nullptr, 10);
      else if (word == "--ranks")
        options.ranks = std::atoi(value);
      else if (word == "--seconds")
        options.seconds = static_cast<unsigned>(std::strtoul(value, nullptr, 10));
      else if (word == "--trace")
        options.trace = value;
      else if (word == "--program")
        options.program = value;
      else if (word == "--emit")
        options.emit = value;
      else {
        std::fprintf(stderr, "fuzz_programs: unknown option %s\n", word.c_str());
        std::exit(2);
      }
    }
  }
  return options;
}

Program drawn(const Options& options, std::uint64_t index, int ranks) {
  if (options.mismatched) return generate_mismatched(options.seed, index, ranks);
  Program program = generate(options.seed, index, ranks, options.threads);
  if (options.no_throwing) std::erase_if(program.steps, [](const Step& step) { return step.kind == Kind::throwing; });
  return program;
}

std::vector<Program> read_programs(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return Program::parse(text.str());
}

long resident_kib() {
  long all = 0, resident = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &all, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}
int descriptors() {
  int n = 0;
  if (DIR* folder = opendir("/proc/self/fd")) {
    while (readdir(folder)) ++n;
    closedir(folder);
  }
  return n;
}

struct Trace {
  int file;
  void write(const std::string& text) {
    if (::write(file, text.data(), text.size()) < 0) std::_Exit(3);
  }
  /// Changes the time of the file, not its contents.
  void touch() {
    if (futimens(file, nullptr) != 0) std::_Exit(3);
  }
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.print) {
    std::printf("%s", drawn(options, options.first, options.ranks).text().c_str());
    return 0;
  }
  const bool one = !options.program.empty();
  const std::vector<Program> given = one ? read_programs(options.program) : std::vector<Program>{};
  const bool threads = one ? given.front().threads : options.threads;
  int provided = 0, rank = 0, ranks = 0;
  if (threads)
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  else
    MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  if (options.mismatched) alarm(options.seconds);  // some erroneous calls never return
  Trace trace{open((options.trace + "." + std::to_string(rank)).c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644)};
  if (trace.file < 0) std::_Exit(3);
  const std::uint64_t count = one ? given.size() : options.count;
  std::string declarations, body;  // C text
  for (std::uint64_t i = 0; i < count; ++i) {
    const Program program = one ? given[i] : drawn(options, options.first + i, ranks);
    Context context;
    context.rank = rank;
    context.ranks = ranks;
    context.alive = [&trace] { trace.touch(); };
    Recorder recorder("_" + std::to_string(rank) + (i ? "p" + std::to_string(i) : "") + "_");
    if (!options.emit.empty()) context.recorder = &recorder;
    trace.write("= " + std::to_string(options.first + i) + "\n");
    run_program(context, program, [&](const std::string& step) {
      trace.write(context.items + (context.items.empty() ? "" : "\n") + "> " + step + "\n");
      context.items.clear();
    });
    trace.write(context.items + "\n");
    if (!options.mismatched) MPI_Barrier(MPI_COMM_WORLD);
    if (i == count / 4 || i + 1 == count)
      trace.write("# " + std::to_string(i) + " resident " + std::to_string(resident_kib()) + " descriptors " +
                  std::to_string(descriptors()) + "\n");
    if (!options.emit.empty()) {
      declarations += recorder.declarations;
      body += recorder.body;
    }
  }
  if (!options.emit.empty()) {
    std::ofstream out(options.emit + "." + std::to_string(rank));
    out << declarations << "static void rank" << rank << "(void) {\n" << body << "}\n";
  }
  trace.write("done\n");
  if (options.mismatched) {  // messages that nobody received may keep MPI_Finalize from ending
    close(trace.file);
    std::_Exit(0);
  }
  MPI_Finalize();
  close(trace.file);
  return 0;
}
