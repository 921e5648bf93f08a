// SPDX-License-Identifier: Apache-2.0
#pragma once
// Three copies of a record file that another process may be writing (reader.hpp says why three).
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "telemetry/record/snapshot.hpp"

namespace bestride::inline telemetry {

/// Movable; owns the open file.
class RecordCopies {
 public:
  /// Opens, checks and copies the file. The header of every copy has the right magic and version.
  static Result<RecordCopies> read(const std::string& path);
  RecordCopies(RecordCopies&& other) noexcept;
  RecordCopies& operator=(RecordCopies&&) = delete;
  ~RecordCopies();

  int file() const noexcept { return file_; }
  const RecordFile& first() const noexcept { return copies_[0]; }
  const RecordFile& second() const noexcept { return copies_[1]; }
  const RecordFile& third() const noexcept { return copies_[2]; }

  /// Call `number` of a thread, indices as in the file. Empty if it was overwritten, or if it is still being written
  /// after some retries.
  std::optional<CallSnapshot> call(unsigned thread, std::uint64_t number) const;
  /// The handles of the requests for which thread `slot` waits in its call `number`, as a key of a request; none if
  /// it does not wait, or the call has ended.
  std::vector<std::uint64_t> wait_list(unsigned slot, std::uint64_t number) const;
  /// The calls that thread `slot` has begun, now. Empty if the file can't be read any more.
  std::optional<std::uint64_t> position(unsigned slot) const noexcept;

 private:
  RecordCopies(int file, std::unique_ptr<RecordFile[]> copies) noexcept : file_(file), copies_(std::move(copies)) {}
  /// Reads `size` bytes from the offset in the file that `at` has in a copy.
  bool read_again(const void* at, void* into, std::size_t size) const noexcept;

  int file_;
  std::unique_ptr<RecordFile[]> copies_;
};

}  // namespace bestride::inline telemetry
