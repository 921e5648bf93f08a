// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/record_copies.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace bestride::inline telemetry {
namespace {

constexpr int retries = 8;

/// True if exactly `size` bytes were read at `offset`.
bool read_exactly(int file, void* into, std::size_t size, std::size_t offset) noexcept {
  for (std::size_t done = 0; done < size;) {
    const ssize_t got = pread(file, static_cast<char*>(into) + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

Error unusable(const std::string& path, const std::string& why, const std::string& remedy) {
  return {"'" + path + "' " + why + "; " + remedy};
}

Error system_error(const std::string& path) {
  const std::string cause = std::strerror(errno);
  return {"can't read '" + path + "': " + cause + "; " +
          (errno == ENOENT ? "its process has ended" : "a record is a file that belongs to you")};
}

/// The reason why an open file can't be a record of this user, or "".
std::string wrong_file(int file) {
  struct stat status {};
  if (fstat(file, &status) != 0) return std::string("can't be examined: ") + std::strerror(errno);
  if (!S_ISREG(status.st_mode)) return "is not a regular file";
  if (status.st_uid != geteuid()) return "belongs to user " + std::to_string(status.st_uid);
  if (status.st_size != static_cast<off_t>(record_file_bytes))
    return "has " + std::to_string(status.st_size) + " bytes, a record has " + std::to_string(record_file_bytes);
  return "";
}

std::string wrong_header(const RecordHeader& header) {
  std::uint64_t magic = 0;
  std::memcpy(&magic, record_magic, sizeof magic);
  const std::uint64_t found = header.magic.load(std::memory_order_relaxed);
  if (found == 0) return "is a record that its process has not begun yet";
  if (found != magic) return "is not a record";
  if (header.version != record_version)
    return "is a record of version " + std::to_string(header.version) + ", this command reads " +
           std::to_string(record_version);
  if (header.file_bytes != record_file_bytes || header.pid <= 0 ||
      !(header.ticks_per_second.get() >= 1 && header.ticks_per_second.get() <= 1e12))
    return "is damaged";
  return "";
}

CallSnapshot content(const CallRecord& call, std::uint64_t number) {
  CallSnapshot result;
  result.number = number;
  result.entered = call.entered.get();
  result.left = call.left.get();
  result.function = call.function.get();
  result.operation = call.operation.get();
  result.communicator = call.communicator.get();
  result.peer = call.peer.get();
  result.tag = call.tag.get();
  result.second_peer = call.second_peer.get();
  result.second_tag = call.second_tag.get();
  result.bytes = call.bytes.get();
  result.ordinal = call.ordinal.get();
  result.site = call.site.get();
  return result;
}

/// Empty if the content is not that of a whole call `number`.
std::optional<CallSnapshot> whole_call(const CallRecord& first, const CallRecord& second, const CallRecord& third,
                                       std::uint64_t number) {
  const std::uint64_t whole = 2 * number + 2;
  if (first.sequence.get() != whole || third.sequence.get() != whole) return std::nullopt;
  // `left` is stored, once, while the record is whole.
  if (second.left.get() != first.left.get() && second.left.get() != third.left.get()) return std::nullopt;
  return content(second, number);
}

}  // namespace

Result<RecordCopies> RecordCopies::read(const std::string& path) {
  // O_NONBLOCK: a FIFO in place of the file would make open() wait.
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return system_error(path);
  RecordCopies copies(file, nullptr);
  if (const std::string why = wrong_file(file); !why.empty()) return unusable(path, why, "remove it");
  copies.copies_ = std::make_unique<RecordFile[]>(3);
  for (int i = 0; i < 3; ++i) {
    if (!read_exactly(file, static_cast<void*>(&copies.copies_[i]), sizeof(RecordFile), 0))
      return unusable(path, "was cut while it was read", "remove it");
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (const std::string why = wrong_header(copies.copies_[i].header); !why.empty())
      return unusable(path, why,
                      why.find("version") != std::string::npos     ? "use the bestride that wrote it"
                      : why.find("begun yet") != std::string::npos ? "try again"
                                                                   : "remove it");
  }
  return copies;
}

RecordCopies::RecordCopies(RecordCopies&& other) noexcept
    : file_(std::exchange(other.file_, -1)), copies_(std::move(other.copies_)) {}

RecordCopies::~RecordCopies() {
  if (file_ >= 0) close(file_);
}

bool RecordCopies::read_again(const void* at, void* into, std::size_t size) const noexcept {
  const auto offset = static_cast<const char*>(at) - reinterpret_cast<const char*>(&copies_[0]);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const bool good = read_exactly(file_, into, size, static_cast<std::size_t>(offset));
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return good;
}

std::optional<CallSnapshot> RecordCopies::call(unsigned thread, std::uint64_t number) const {
  if (auto call =
          whole_call(first().call(thread, number), second().call(thread, number), third().call(thread, number), number))
    return call;
  const CallRecord* const at = &first().call(thread, number);
  for (int i = 0; i < retries; ++i) {
    CallRecord again[3];
    for (CallRecord& copy : again)
      if (!read_again(at, static_cast<void*>(&copy), sizeof copy)) return std::nullopt;
    if (auto call = whole_call(again[0], again[1], again[2], number)) return call;
    if (again[2].sequence.get() > 2 * number + 2) return std::nullopt;  // overwritten
  }
  return std::nullopt;
}

std::vector<std::uint64_t> RecordCopies::wait_list(unsigned slot, std::uint64_t number) const {
  // The list is written before its call and may be overwritten once that has returned.
  const auto in_call = [number](const CallRecord& call) {
    return call.sequence.get() == 2 * number + 2 && call.left.get() == 0;
  };
  ThreadRecord thread = {};
  std::memcpy(static_cast<void*>(&thread), static_cast<const void*>(&second().threads[slot]), sizeof thread);
  std::vector<unsigned char> list(RecordFile::bytes_of_wait_list(slot));
  if (in_call(first().call(slot, number)) && in_call(third().call(slot, number))) {
    std::memcpy(list.data(), second().wait_list(slot), list.size());
  } else {
    CallRecord before, after;
    const CallRecord* const at = &first().call(slot, number);
    if (!read_again(at, static_cast<void*>(&before), sizeof before) ||
        !read_again(&first().threads[slot], static_cast<void*>(&thread), sizeof thread) ||
        !read_again(first().wait_list(slot), list.data(), list.size()) ||
        !read_again(at, static_cast<void*>(&after), sizeof after) || !in_call(before) || !in_call(after))
      return {};
  }
  const std::uint64_t of = thread.wait_list.get();
  const std::size_t width = first().header.handle_bytes;
  if (of >> 16 != number + 1 || (width != 4 && width != 8)) return {};
  std::vector<std::uint64_t> handles(std::min<std::size_t>(of & 0xffff, list.size() / width));
  for (std::size_t i = 0; i < handles.size(); ++i) std::memcpy(&handles[i], list.data() + i * width, width);
  return handles;
}

std::optional<std::uint64_t> RecordCopies::position(unsigned slot) const noexcept {
  Shared<std::uint64_t> calls;
  if (!read_again(&first().threads[slot].calls, static_cast<void*>(&calls), sizeof calls)) return std::nullopt;
  return calls.get();
}

}  // namespace bestride::inline telemetry
