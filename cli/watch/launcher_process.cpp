// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/launcher_process.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "cli/common/command.hpp"
#include "telemetry/record/process_state.hpp"

namespace bestride::inline cli {
namespace {

/// And all real-time signals: those that batch systems and users send, and that end a process unless it handles them.
constexpr int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU, SIGPWR};

bool ends_a_job(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT; }

/// True if the kernel has sent it to the launcher, too: a terminal does to all processes of its job, but tells only the
/// leader of the session when it is closed.
bool came_to_all(const signalfd_siginfo& info) {
  const bool is_hangup = static_cast<int>(info.ssi_signo) == SIGHUP;
  return info.ssi_code == SI_KERNEL && !(is_hangup && getsid(0) == getpid());
}

}  // namespace

LauncherProcess::LauncherProcess(const std::string& path, const std::vector<std::string>& command) {
  sigset_t watched, before;
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  for (const int signal : passed_on) sigaddset(&watched, signal);
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) sigaddset(&watched, signal);
  sigprocmask(SIG_BLOCK, &watched, &before);
  signals_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_ = signals_ < 0 ? -1 : fork();
  if (pid_ == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    execv(path.c_str(), words.data());
    // It is there; see find_program().
    const std::string cause = errno == ENOENT ? "the interpreter that it names is not there"
                              : errno == ENOEXEC
                                  ? "it is no program of this machine, and no script that begins with '#!'"
                                  : std::strerror(errno);
    const std::string text = "bestride: can't run '" + path + "': " + cause + "\n";
    if (write(STDERR_FILENO, text.data(), text.size()) < 0) _exit(exit_usage);
    _exit(exit_no_program);
  }
  if (pid_ < 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    fail(std::string("can't start the launcher: ") + std::strerror(errno), exit_not_found);
  }
}

void LauncherProcess::handle_signals() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof info) == sizeof info) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    interrupted_ = interrupted_ || ends_a_job(signal);
    if (!came_to_all(info)) send(signal);
  }
  if (!ended_) ended_ = waitpid(pid_, &status_, WNOHANG) == pid_;
}

void LauncherProcess::await_end() {
  const auto is_on_the_way = [this] { return telemetry::process_status(pid_).exists && telemetry::is_ending(pid_); };
  for (; !ended_ && patience_ > 0 && is_on_the_way(); --patience_) {
    poll(nullptr, 0, 1);
    handle_signals();
  }
}

int LauncherProcess::exit_code() const noexcept {
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

void LauncherProcess::send(int signal) const noexcept {
  if (!ended_) kill(pid_, signal);
}

}  // namespace bestride::inline cli
