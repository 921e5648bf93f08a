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
  // Read byte by byte: data after the line is not ours. There is no timeout: if the answer arrived later, the MPI
  // library, which uses the socket next, would take it for its own.
  std::string answer;
  for (char byte = 0; answer.size() < longest_answer;) {
    pollfd ready{descriptor_, POLLIN, 0};
    const bool came = ::poll(&ready, 1, -1) == 1 && ::read(descriptor_, &byte, 1) == 1;
    if (!came && to_be_repeated()) continue;
    if (!came) return {};
    if (byte == '\n') return answer;
    answer.push_back(byte);
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
