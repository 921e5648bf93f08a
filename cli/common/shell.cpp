// SPDX-License-Identifier: Apache-2.0
#include "cli/common/shell.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace bestride::inline cli {
namespace {

constexpr std::size_t max_output = 1 << 20;

bool executable(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

/// Reads until end of file, `max_output` bytes or the deadline; false at the deadline.
bool read_all(int fd, std::string& text, std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    const auto rest =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (rest <= 0) return false;
    pollfd waiting{fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(rest));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char buffer[4096];
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got <= 0 || text.size() > max_output) return true;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace

std::string shell_quoted(const std::string& word) {
  constexpr const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) c == '\'' ? quoted += "'\\''" : quoted += c;
  return quoted + "'";
}

std::string find_program(const std::string& name) {
  if (name.empty()) return "";
  if (name.find('/') != std::string::npos) return executable(name) ? name : "";
  const char* path = std::getenv("PATH");
  std::string folders = path ? path : "/usr/bin:/bin";
  for (std::size_t from = 0; from <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', from), folders.size());
    const std::string folder = end == from ? "." : folders.substr(from, end - from);
    if (executable(folder + "/" + name)) return folder + "/" + name;
    from = end + 1;
  }
  return "";
}

std::string why_no_program(const std::string& name, bool* exists) {
  struct stat info;
  *exists = name.find('/') != std::string::npos && ::stat(name.c_str(), &info) == 0;
  if (!*exists) return "there is no such program; is it in PATH?";
  if (S_ISDIR(info.st_mode)) return "it is a folder; name the program in it";
  return "you have no permission to execute it; 'chmod +x' gives it";
}

std::string resolved(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (!real) return path;
  const std::string text = real;
  std::free(real);
  return text;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::optional<Output> in_child(const std::function<void(int)>& in_child, int seconds) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child < 0) {
    ::close(ends[0]), ::close(ends[1]);
    return std::nullopt;
  }
  if (child == 0) {
    const int nowhere = ::open("/dev/null", O_RDWR);
    ::dup2(nowhere, 0), ::dup2(ends[1], 1), ::dup2(nowhere, 2);
    try {
      in_child(1);
    } catch (...) {
      ::_exit(126);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  Output output;
  const bool ended = read_all(ends[0], output.text, std::chrono::steady_clock::now() + std::chrono::seconds(seconds));
  ::close(ends[0]);
  if (!ended) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (ended && WIFEXITED(status)) output.exit_code = WEXITSTATUS(status);
  return output;
}

std::optional<Output> output_of(const std::vector<std::string>& command, int seconds) {
  return in_child(
      [&](int) {
        std::vector<char*> words;
        words.reserve(command.size() + 1);
        for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        ::execvp(words[0], words.data());
        ::_exit(127);
      },
      seconds);
}

Result<bool> run_with_input(const std::string& command, const std::string& input) {
  // Written beforehand: a pipe holds 64 KiB only, and a command that does not read would be waited for.
  int file = ::memfd_create("input", MFD_CLOEXEC);
  if (file < 0) file = ::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);  // a seccomp filter may forbid it
  if (file < 0 || ::write(file, input.data(), input.size()) != static_cast<ssize_t>(input.size()) ||
      ::lseek(file, 0, SEEK_SET) != 0) {
    const std::string cause = std::strerror(errno);
    if (file >= 0) ::close(file);
    return Error{cause};
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, file, STDIN_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none, all;
  ::sigemptyset(&none), ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string shell = "sh", option = "-c", words = command;
  char* const arguments[] = {shell.data(), option.data(), words.data(), nullptr};
  pid_t child = 0;
  const int error = ::posix_spawn(&child, "/bin/sh", &actions, &attributes, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  ::close(file);
  if (error != 0) return Error{std::strerror(error)};
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return true;
}

}  // namespace bestride::inline cli
