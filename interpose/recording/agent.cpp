// SPDX-License-Identifier: Apache-2.0
#include "interpose/recording/agent.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/message.hpp"
#include "base/variables.hpp"
#include "telemetry/record/job_folder.hpp"
#include "telemetry/record/watcher.hpp"

namespace bestride::inline interpose {
namespace {

const std::string& watch_setting() { return Settings::get().text("BESTRIDE_WATCH"); }

/// The command of this installation, which lies beside the library: <prefix>/lib/libbestride-x.so or
/// <prefix>/lib/<architecture>/libbestride-x.so. "" if it is not there.
std::string command_beside_library() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&is_watched), &info) || !info.dli_fname) return "";
  const std::string library = info.dli_fname;
  const std::string folder = library.substr(0, library.rfind('/') + 1);
  for (const char* up : {"../bin/bestride", "../../bin/bestride"})
    if (access((folder + up).c_str(), X_OK) == 0) return folder + up;
  return "";
}

/// Forks a child that sends `end_signal` when it ends. If this is 0, neither a handler of SIGCHLD nor a wait() of the
/// application sees the child. Handlers of pthread_atfork are not called, so only system calls are permitted in it.
pid_t silent_fork(unsigned long end_signal) noexcept {
  return static_cast<pid_t>(syscall(SYS_clone, end_signal, 0, 0, 0, 0));
}

/// Runs in the child. Closes what a launcher waits for: its socket and the pipes of the rank's output.
[[noreturn]] void become_agent(char* const* words, char* const* environment, bool keep_stderr) noexcept {
  setsid();
  if (silent_fork(SIGCHLD) != 0) _exit(0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  if (!keep_stderr) dup2(null, STDERR_FILENO);
#ifdef SYS_close_range
  if (syscall(SYS_close_range, 3U, ~0U, 0U) != 0)
#endif
    for (int i = 3; i < 65536; ++i) close(i);
  if (chdir("/") != 0) _exit(127);
  execve(words[0], words, environment);
  _exit(127);
}

}  // namespace

bool is_watched() noexcept {
  const std::string& text = watch_setting();
  return !text.empty() && text != "0";
}

void start_agent(const std::string& record_path) noexcept try {
  if (watcher_is_here(Settings::get().text("BESTRIDE_WATCHER"))) return;
  const std::string folder = record_path.substr(0, record_path.rfind('/'));
  // Only the first rank of the host can create the file.
  const int file =
      open((folder + "/" + agent_file).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  close(file);
  std::string command = Settings::get().text("BESTRIDE_COMMAND");
  if (command.empty() || access(command.c_str(), X_OK) != 0) command = command_beside_library();
  if (command.empty()) {
    warn_once("agent",
              "the ranks of this host are not watched: there is no bestride command beside the library; name "
              "it in BESTRIDE_COMMAND");
    return;
  }
  std::string name = "agent", job = folder.substr(folder.rfind('/') + 1), working_directory = "/";
  if (char path[4096]; getcwd(path, sizeof path)) working_directory = path;
  char* const words[] = {command.data(), name.data(), job.data(), working_directory.data(), nullptr};
  std::vector<char*> environment;
  for (char** variable = environ; variable && *variable; ++variable)
    if (std::strncmp(*variable, "LD_PRELOAD=", 11) != 0) environment.push_back(*variable);
  environment.push_back(nullptr);
  // An agent that works alone can report its findings only to stderr.
  const bool alone = watch_setting().find("://") == std::string::npos;
  const pid_t child = silent_fork(0);
  if (child == 0) become_agent(words, environment.data(), alone);
  if (child < 0) {
    warn_once("agent", "the ranks of this host are not watched: can't start the agent: %s", std::strerror(errno));
    return;
  }
  while (waitpid(child, nullptr, __WCLONE) < 0 && errno == EINTR) {
  }
} catch (...) {
}

}  // namespace bestride::inline interpose
