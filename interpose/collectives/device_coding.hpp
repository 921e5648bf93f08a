// SPDX-License-Identifier: Apache-2.0
#pragma once
// DeviceCodes: blocks of numbers in device memory, and their codes in host memory. The device encodes them before a
// quantised collective and decodes them after it. If the device fails, the plain numbers are copied as usual and the
// CPU encodes them, which gives the same codes.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/quantised/coded_ends.hpp"
#include "interpose/device/device_quantise.hpp"

namespace bestride {

enum class Access : unsigned char { read, written, both };

/// How numbers cross the network as codes.
struct Coding {
  NumberFormat format = NumberFormat::float32;
  CodeBits bits = CodeBits::int8;
  /// 0: each block is coded by itself. Otherwise only the results are codes, of at most this many parts, which
  /// arrange() sets later.
  int parts = 0;
};

class DeviceCodes final : public CodeSource, public CodeSink {
 public:
  /// Blocks of `blocks[i]` packed bytes, one after the other, at `place`, which must need the device and have a known
  /// layout. `own`: if access is read and write, the block that is read. Returns nullptr if plain numbers are as good,
  /// or if there is no memory.
  static std::unique_ptr<DeviceCodes> make(const BufferLocation& place, void* user, MPI_Comm comm,
                                           std::span<const std::int64_t> blocks, Access access, int own,
                                           Coding coding) noexcept;

  /// Packed host memory for the plain numbers. Its pages are allocated on first use; it is page-locked if plain numbers
  /// are read.
  const StagingPtr& plain() const noexcept { return plain_; }

  /// Sets the blocks of a coding in parts, as ranges of packed bytes. Called before each start. May throw
  /// std::bad_alloc.
  void arrange(std::span<const Range> blocks);

  /// Encodes the own block on the device, before encode() is called. False: the caller must copy the numbers to
  /// plain(), from which encode() then makes the codes.
  bool copy_in() noexcept;
  /// Decodes on the device what decode() was given. False: the result is in plain(), and the caller must copy it out.
  bool copy_out() noexcept;

  void encode(Range numbers, std::byte* codes) const noexcept override;
  void decode(int rank, Range numbers, const std::byte* codes) const noexcept override;

  /// Public only for make_unique; use make().
  DeviceCodes(StagingPtr plain, Coding coding, int own) noexcept
      : plain_(std::move(plain)), coding_(coding), own_(own) {}

 private:
  struct Block {
    Range numbers;       ///< among all packed numbers
    std::int64_t codes;  ///< where they begin
  };
  std::int64_t coded(std::int64_t numbers) const noexcept;
  std::byte* codes_of(const Block& block, std::int64_t number) const noexcept {
    return codes_->data() + block.codes + coded(number);
  }
  const std::byte* plain_at(std::int64_t number) const noexcept;
  void say(const Error& why) const noexcept;

  const StagingPtr plain_;
  const Coding coding_;
  const std::size_t own_;
  std::vector<Block> blocks_;
  std::vector<NumberRun> runs_;  ///< of all blocks
  std::int64_t used_ = 0;        ///< bytes of codes
  std::shared_ptr<StagingBuffer> codes_;
  bool made_ = false;  ///< the own codes are ready
};

}  // namespace bestride
