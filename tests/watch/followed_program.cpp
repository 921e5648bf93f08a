// SPDX-License-Identifier: Apache-2.0
// An MPI program that does what it is told, for tests of what people, batch systems and debuggers do to a job. Its
// ranks meet in collective calls until rank 0 finds a file with a command, which it removes. Argument: the folder of
// the file `command`; FIFO `gate` is there, too. With the second argument "exec" the program first executes itself
// again.
//
//   block          rank 1 waits for a thread that reads from `gate`, until something is written there; the others wait
//                  for rank 1
//   hang           the same for ever
//   crash          rank 1 writes through a null pointer
//   end CODE       all ranks end with the exit code
//   ignore         all ranks ignore SIGTERM and SIGINT from now on
//   checkpoints S  rank 0 writes a file for 0.5, 1, 2 ... S seconds, and after each time the others have waited for it
//   communicators N TOGETHER   makes N communicators, so many at a time; the last ones stay
//   processes      each rank starts processes with fork, system and popen
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

std::string folder;

int own_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

[[gnu::noinline]] void block() {
  if (own_rank() == 1)
    std::thread([] {
      const int gate = open((folder + "/gate").c_str(), O_RDONLY);
      char byte;
      if (gate < 0 || read(gate, &byte, 1) < 0) std::abort();
      close(gate);
    }).join();
  MPI_Barrier(MPI_COMM_WORLD);
}

/// Nothing can let rank 1 go on.
[[gnu::noinline]] void hang() {
  if (own_rank() == 1) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    for (;;) pthread_mutex_lock(&mutex);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

[[gnu::noinline]] void crash() {
  if (own_rank() == 1) *static_cast<volatile int*>(nullptr) = 1;
  MPI_Barrier(MPI_COMM_WORLD);
}

void write_checkpoints(double longest) {
  FILE* const file = tmpfile();
  if (!file) std::abort();
  const std::vector<char> data(1 << 16, 'x');
  for (double seconds = 0.5; seconds <= longest; seconds *= 2) {
    for (const double until = MPI_Wtime() + seconds; own_rank() == 0 && MPI_Wtime() < until; usleep(50'000)) {
      if (fwrite(data.data(), 1, data.size(), file) != data.size()) std::abort();
      fflush(file), rewind(file);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  fclose(file);
}

void make_communicators(int count, int together) {
  std::vector<MPI_Comm> made(static_cast<std::size_t>(together));
  for (int done = 0; done < count; done += together) {
    if (done > 0)
      for (MPI_Comm& each : made) MPI_Comm_free(&each);
    for (MPI_Comm& each : made) MPI_Comm_dup(MPI_COMM_WORLD, &each);
    MPI_Barrier(made.back());
  }
}

void start_processes() {
  const pid_t child = fork();
  if (child == 0) _exit(7);
  int status = 0;
  if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7) std::abort();
  if (const int result = system("exit 5"); WEXITSTATUS(result) != 5) std::abort();
  FILE* const pipe = popen("echo word", "r");
  char word[16] = "";
  if (!pipe || !fgets(word, sizeof word, pipe) || pclose(pipe) != 0 || std::strcmp(word, "word\n") != 0) std::abort();
}

/// What rank 0 finds in the file, on all ranks; "" if there is none.
std::string command() {
  char text[100] = "";
  if (own_rank() == 0) {
    const std::string path = folder + "/command";
    std::ifstream(path).getline(text, sizeof text);
    if (text[0] != '\0') unlink(path.c_str());
    usleep(2000);
  }
  MPI_Bcast(text, sizeof text, MPI_CHAR, 0, MPI_COMM_WORLD);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[2], "exec") == 0) {
    char* words[] = {argv[0], argv[1], nullptr};
    execvp(argv[0], words);
    return 126;
  }
  folder = argc > 1 ? argv[1] : ".";
  MPI_Init(&argc, &argv);
  int code = -1;
  while (code < 0) {
    std::istringstream words(command());
    std::string what;
    double first = 0, second = 0;
    words >> what >> first >> second;
    if (what == "block") block();
    if (what == "hang") hang();
    if (what == "crash") crash();
    if (what == "end") code = static_cast<int>(first);
    if (what == "ignore") std::signal(SIGTERM, SIG_IGN), std::signal(SIGINT, SIG_IGN);
    if (what == "checkpoints") write_checkpoints(first);
    if (what == "communicators") make_communicators(static_cast<int>(first), static_cast<int>(second));
    if (what == "processes") start_processes();
  }
  MPI_Finalize();
  return code;
}
