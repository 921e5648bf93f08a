// SPDX-License-Identifier: Apache-2.0
#include "interpose/peers/pmi.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bestride::inline interpose {
namespace {

constexpr std::size_t longest_answer = 4096;

/// True if the process at the other end of the socket is Hydra's proxy.
bool is_hydra(int descriptor) noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0) return false;
  char path[64], name[32] = "";
  std::snprintf(path, sizeof path, "/proc/%d/comm", static_cast<int>(peer.pid));
  std::FILE* file = std::fopen(path, "re");
  if (!file) return false;
  const bool read = std::fgets(name, sizeof name, file) != nullptr;
  std::fclose(file);
  return read && std::strncmp(name, "hydra_pmi", 9) == 0;
}

/// True if a system call was interrupted by a signal of the application, for example of a profiler's timer.
bool to_be_repeated() noexcept { return errno == EINTR || errno == EAGAIN; }

/// Takes bytes that have been seen in the socket.
bool take(int descriptor, char* bytes, std::size_t count) noexcept {
  for (std::size_t taken = 0; taken < count;) {
    const ssize_t now = ::recv(descriptor, bytes + taken, count - taken, 0);
    if (now < 0 && to_be_repeated()) continue;
    if (now <= 0) return false;
    taken += static_cast<std::size_t>(now);
  }
  return true;
}

/// The value of `name` in an answer of the form "cmd=put_result rc=0 msg=success".
std::string field(const std::string& answer, const std::string& name) {
  const std::string key = " " + name + "=";
  const std::size_t at = answer.find(key);
  if (at == std::string::npos) return {};
  const std::size_t first = at + key.size();
  return answer.substr(first, answer.find(' ', first) - first);
}

}  // namespace

std::string Pmi::ask(const std::string& command) {
  const std::string line = command + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t now = ::send(descriptor_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (now < 0 && to_be_repeated()) continue;
    if (now <= 0) return {};
    sent += static_cast<std::size_t>(now);
  }
  // Only the line is taken from the socket: data after it is not ours. There is no timeout: if the answer arrived
  // later, the MPI library, which uses the socket next, would take it for its own.
  std::string answer;
  char bytes[512];
  while (answer.size() < longest_answer) {
    const ssize_t there = ::recv(descriptor_, bytes, sizeof bytes, MSG_PEEK);
    if (there < 0 && errno == EAGAIN) {
      pollfd ready{descriptor_, POLLIN, 0};
      ::poll(&ready, 1, -1);
      continue;
    }
    if (there < 0 && errno == EINTR) continue;
    if (there <= 0) return {};
    const void* const end = std::memchr(bytes, '\n', static_cast<std::size_t>(there));
    const auto length = end ? static_cast<const char*>(end) - bytes : there;
    if (!take(descriptor_, bytes, static_cast<std::size_t>(end ? length + 1 : length))) return {};
    answer.append(bytes, static_cast<std::size_t>(length));
    if (end) return answer;
  }
  return {};
}

bool Pmi::open() noexcept try {
  const char* text = std::getenv("PMI_FD");
  if (!text || !std::getenv("MPI_LOCALRANKID") || !std::getenv("PMI_RANK")) return false;
  descriptor_ = std::atoi(text);
  if (is_hydra(descriptor_) && field(ask("cmd=init pmi_version=1 pmi_subversion=1"), "rc") == "0")
    space_ = field(ask("cmd=get_my_kvsname"), "kvsname");
  if (space_.empty()) descriptor_ = -1;
  return descriptor_ >= 0;
} catch (...) {
  descriptor_ = -1;
  return false;
}

bool Pmi::put(const std::string& key, const std::string& value) {
  return field(ask("cmd=put kvsname=" + space_ + " key=" + key + " value=" + value), "rc") == "0";
}

bool Pmi::get(const std::string& key, std::string* value) {
  const std::string answer = ask("cmd=get kvsname=" + space_ + " key=" + key);
  if (field(answer, "rc") != "0") return false;
  *value = field(answer, "value");
  return true;
}

}  // namespace bestride::inline interpose
