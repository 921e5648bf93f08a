// SPDX-License-Identifier: Apache-2.0
#pragma once
// DeviceCodes: blocks of numbers in device memory and, in host memory, their codes, which the device makes before a quantised
// collective and reads after it. Where it fails, the plain numbers are moved as any others are and the CPU codes them: the same
// codes.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/coded_ends.hpp"
#include "interpose/back/gpu/codes.hpp"

namespace bestride {

enum class Access : unsigned char { read, written, both };

/// Of numbers that cross the wire as codes.
struct Coding {
  NumberFormat format = NumberFormat::float32;
  CodeBits bits = CodeBits::int8;
  /// 0: each block is coded by itself. Else only what is written comes as codes, of so many parts at most, which arrange() tells
  /// later.
  int parts = 0;
};

class DeviceCodes final : public CodeSource, public CodeSink {
 public:
  /// Blocks of `blocks[i]` packed bytes, one after the other, at `place`, which is by_gpu and of a known layout. `own`: of what is
  /// accessed both ways, the block that is read. nullptr: plain numbers are as good, or there is no memory.
  static std::unique_ptr<DeviceCodes> make(const Place& place, void* user, MPI_Comm comm, std::span<const std::int64_t> blocks,
                                           Access access, int own, Coding coding) noexcept;

  /// Packed host memory for the plain numbers, of which pages are taken as they are used. Page-locked if plain numbers are read.
  const StagingPtr& plain() const noexcept { return plain_; }

  /// The blocks of a coding in parts, as ranges of packed bytes; before each start. May throw std::bad_alloc.
  void arrange(std::span<const Range> blocks);

  /// The own block's codes, ahead of encode(). False: plain() has to be brought in, from which encode() then makes them.
  bool bring_in() noexcept;
  /// What decode() was given, to the device. False: plain() has to be brought out, in which it stands now.
  bool bring_out() noexcept;

  void encode(Range numbers, std::byte* codes) const noexcept override;
  void decode(int rank, Range numbers, const std::byte* codes) const noexcept override;

  /// Private in all but name: make_unique needs it.
  DeviceCodes(StagingPtr plain, Coding coding, int own) noexcept : plain_(std::move(plain)), coding_(coding), own_(own) {}

 private:
  struct Block {
    Range numbers;       ///< of all that are packed
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
  std::shared_ptr<Room> codes_;
  bool made_ = false;  ///< the own codes are there
};

}  // namespace bestride
