// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_measure.hpp"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sstream>

namespace bestride {
namespace {

volatile std::sig_atomic_t interrupt_seen = 0;

/// The launcher gets the interrupt from the terminal itself; this process only has to outlive it.
class HoldInterrupt {
 public:
  HoldInterrupt() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupt_seen = 1; };
    interrupt_seen = 0;
    ::sigaction(SIGINT, &action, &before_);
  }
  ~HoldInterrupt() { ::sigaction(SIGINT, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

struct Child {
  pid_t pid = -1;
  std::FILE* out = nullptr;
  std::FILE* err = nullptr;
};

Child start(const std::vector<std::string>& command) {
  int out[2], err[2];
  if (::pipe(out) != 0) return {};
  if (::pipe(err) != 0) {
    ::close(out[0]), ::close(out[1]);
    return {};
  }
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(out[1], 1), ::dup2(err[1], 2);
    for (int fd : {out[0], out[1], err[0], err[1]}) ::close(fd);
    // What is measured is the MPI library, not this library in front of it.
    ::unsetenv("LD_PRELOAD");
    ::setenv("BESTRIDE_DISABLE", "1", 1);
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ::execvp(words[0], words.data());
    std::fprintf(stderr, "can't start '%s': %s\n", words[0], std::strerror(errno));
    ::_exit(127);
  }
  ::close(out[1]), ::close(err[1]);
  return {pid, ::fdopen(out[0], "r"), ::fdopen(err[0], "r")};
}

/// One line without its end; false at end of file. Goes on after an interrupt.
bool read_line(std::FILE* file, std::string* line) {
  line->clear();
  for (;;) {
    const int c = std::fgetc(file);
    if (c == EOF && std::ferror(file) && errno == EINTR) {
      std::clearerr(file);
      continue;
    }
    if (c == EOF) return !line->empty();
    if (c == '\n') return true;
    line->push_back(static_cast<char>(c));
  }
}

}  // namespace

MeasureRun follow_measurement(const std::vector<std::string>& command, const std::function<void(int, int, const std::string&)>& on_point) {
  MeasureRun run;
  HoldInterrupt hold;
  const Child child = start(command);
  if (child.pid < 0 || !child.out || !child.err) {
    run.error = std::string("can't start a process: ") + std::strerror(errno);
    return run;
  }
  std::string line;
  while (read_line(child.out, &line)) {
    std::istringstream words(line);
    std::string event;
    words >> event;
    const auto rest = [&] { return line.size() > event.size() ? line.substr(event.size() + 1) : std::string(); };
    if (event == "config") run.configuration = rest();
    else if (event == "hosts") run.two_hosts = rest() == "different";
    else if (event == "preload") run.preloaded = rest() == "yes";
    else if (event == "gpu") run.stand_in = rest().front() == '1', run.gpu = rest().substr(2);
    else if (event == "gpu-trouble") run.gpu_trouble = rest();
    else if (event == "plan") words >> run.points >> run.known;
    else if (event == "error" && run.error.empty()) run.error = rest();
    else if (event == "end") run.complete = static_cast<bool>(words >> run.measured >> run.left_out >> run.seconds);
    else if (event == "at") {
      int number = 0;
      std::string id;
      words >> number >> id;
      on_point(number, run.points, id);
    }
  }
  // After stdout: the launcher says little on stderr, far less than a pipe holds.
  std::string first;
  while (read_line(child.err, &line))
    if (first.empty() && line.find_first_not_of(" \t=") != std::string::npos) first = line;
  std::fclose(child.out);
  std::fclose(child.err);
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) continue;
  run.interrupted = interrupt_seen != 0;
  if (!run.complete && run.error.empty()) run.error = first.empty() ? "the measuring program ended early" : first;
  return run;
}

}  // namespace bestride
