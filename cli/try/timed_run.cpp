// SPDX-License-Identifier: Apache-2.0
#include "cli/try/timed_run.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "cli/common/command.hpp"

namespace bestride::inline cli {
namespace {

volatile sig_atomic_t child = 0, received = 0;

void pass_on(int signal) {
  received = signal;
  if (child > 0) kill(static_cast<pid_t>(child), signal);
}

constexpr int passed_on[] = {SIGINT, SIGTERM, SIGHUP};

/// Passes signals on to the child while it exists.
class PassSignalsOn {
 public:
  PassSignalsOn() {
    received = 0;
    struct sigaction action = {};
    action.sa_handler = pass_on;
    for (std::size_t i = 0; i < std::size(passed_on); ++i) sigaction(passed_on[i], &action, &before_[i]);
  }
  ~PassSignalsOn() {
    child = 0;
    for (std::size_t i = 0; i < std::size(passed_on); ++i) sigaction(passed_on[i], &before_[i], nullptr);
  }
  PassSignalsOn(const PassSignalsOn&) = delete;
  PassSignalsOn& operator=(const PassSignalsOn&) = delete;

 private:
  struct sigaction before_[std::size(passed_on)] = {};
};

int opened(const std::string& file) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0) fail("can't write '" + file + "': " + std::strerror(errno) + "; give --keep another folder");
  return descriptor;
}

}  // namespace

TimedRun run_timed(const std::string& path, const std::vector<std::string>& command,
                   const std::vector<std::pair<std::string, std::string>>& environment, const std::string& output_file,
                   const std::string& error_file) {
  const int output = opened(output_file), error = opened(error_file), nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  TimedRun run;
  const auto begin = std::chrono::steady_clock::now();
  {
    const PassSignalsOn passing;
    const pid_t pid = fork();
    if (pid < 0) fail(std::string("can't start the command: ") + std::strerror(errno), exit_not_found);
    if (pid == 0) {
      for (const int signal : passed_on) ::signal(signal, SIG_DFL);
      for (const auto& [name, value] : environment)
        if (value.empty())
          unsetenv(name.c_str());
        else
          setenv(name.c_str(), value.c_str(), 1);
      dup2(nothing, STDIN_FILENO);
      dup2(output, STDOUT_FILENO);
      dup2(error, STDERR_FILENO);
      execv(path.c_str(), words.data());
      _exit(exit_not_found);
    }
    child = pid;
    if (received != 0) kill(pid, received);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    run.interrupted = received != 0;
  }
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (const int descriptor : {output, error, nothing}) close(descriptor);
  return run;
}

}  // namespace bestride::inline cli
