// SPDX-License-Identifier: Apache-2.0
// Packer: selects once how a layout is executed (one kernel, a walk, streaming, the reference), so that a call costs
// two indirect jumps.
#include "kernels/packer.hpp"

#include <algorithm>
#include <limits>

#include "kernels/program.hpp"

namespace bestride::inline kernels {

namespace {

/// Packed bytes from which non-temporal stores are faster, with 32 MiB of L3 cache: blocks of 4 to 32 bytes take 0.8x
/// of ordinary stores at 16 MiB, 0.7x at 64 MiB, and 1.3x at 4 MiB, where the packed buffer fits the cache and is read
/// again when it is sent.
constexpr std::int64_t default_streaming_from = std::int64_t{16} << 20;

std::int64_t streaming_threshold(const PackerOptions& options) {
  if (options.family == KernelFamily::streaming) return 1;
  if (options.streaming_from == 0) return std::numeric_limits<std::int64_t>::max();
  return options.streaming_from < 0 ? default_streaming_from : options.streaming_from;
}

}  // namespace

struct Packer::Program {
  using Run = void (*)(const Program& program, Byte* packed, Byte* user);

  Program(const Layout& layout, PackerOptions options)
      : isa(std::min(options.isa, widest_isa())), node(layout.root()), streaming_from(streaming_threshold(options)) {
    const bool forced = options.family == KernelFamily::streaming;
    reference = options.family == KernelFamily::reference && node;
    if (layout.size() >= streaming_from && !reference) {
      options.family = KernelFamily::streaming;
      streaming_op = compile(layout, options);
      options.family = KernelFamily::automatic;
      if (!has_streaming_kernels(*streaming_op)) {
        streaming_op.reset();
        if (forced) stretches = &kernels_for(isa);
      }
    }
    op = compile(layout, options);
    set_runs();
  }

  void set_runs() {
    const bool piece = op->kind == Op::Kind::piece;
    pack = reference ? run_oracle<Direction::pack> : piece ? run_piece<Direction::pack> : run_whole<Direction::pack>;
    unpack = reference ? run_oracle<Direction::unpack>
             : piece   ? run_piece<Direction::unpack>
                       : run_whole<Direction::unpack>;
    if (streaming_op || stretches) pack = run_past_caches;
  }

  template <Direction direction>
  static void run_piece(const Program& program, Byte* packed, Byte* user) {
    program.op->whole[direction].kernel(program.op->piece, packed, user);
  }
  template <Direction direction>
  static void run_whole(const Program& program, Byte* packed, Byte* user) {
    run<direction>(*program.op, packed, user);
  }
  template <Direction direction>
  static void run_oracle(const Program& program, Byte* packed, Byte* user) {
    run_reference<direction>(*program.node, packed, user, 0, program.node->size);
  }
  static void run_past_caches(const Program& program, Byte* packed, Byte* user) {
    program.pack_range(packed, user, 0, program.op->size);
  }

  void pack_range(Byte* packed, Byte* user, std::int64_t first, std::int64_t last) const {
    if (reference) return run_reference<Direction::pack>(*node, packed, user, first, last);
    if (last - first >= streaming_from) {
      if (stretches) return run_streaming(*op, *stretches, packed, user, first, last);
      if (streaming_op) return run_range<Direction::pack>(*streaming_op, packed, user, first, last);
    }
    run_range<Direction::pack>(*op, packed, user, first, last);
  }
  void unpack_range(Byte* packed, Byte* user, std::int64_t first, std::int64_t last) const {
    if (reference) return run_reference<Direction::unpack>(*node, packed, user, first, last);
    run_range<Direction::unpack>(*op, packed, user, first, last);
  }

  Run pack;
  Run unpack;
  std::unique_ptr<Op> op;
  std::unique_ptr<Op> streaming_op;        ///< the same with streaming kernels, for long enough ranges
  const KernelTable* stretches = nullptr;  ///< not null: streaming was requested and the layout has no streaming kernel
  Isa isa;
  bool reference = false;
  const Node* node;
  std::int64_t streaming_from;
};

namespace {

/// The user's address of the first packed byte. Computed with integers, because for absolute types the base is a null
/// pointer.
Byte* place(const void* user, const Layout& layout) noexcept {
  return reinterpret_cast<Byte*>(reinterpret_cast<std::uintptr_t>(user) + static_cast<std::uintptr_t>(layout.offset()));
}
Byte* bytes(const void* address) noexcept { return static_cast<Byte*>(const_cast<void*>(address)); }

}  // namespace

Packer::Packer(LayoutPtr layout, const PackerOptions& options)
    : layout_(std::move(layout)), program_(std::make_unique<Program>(*layout_, options)) {}
Packer::~Packer() = default;
Packer::Packer(Packer&&) noexcept = default;
Packer& Packer::operator=(Packer&&) noexcept = default;

void Packer::pack(void* packed, const void* user) const noexcept {
  program_->pack(*program_, bytes(packed), place(user, *layout_));
}

void Packer::unpack(void* user, const void* packed) const noexcept {
  program_->unpack(*program_, bytes(packed), place(user, *layout_));
}

void Packer::pack_range(void* packed, const void* user, std::int64_t first, std::int64_t last) const noexcept {
  if (first < last) program_->pack_range(bytes(packed), place(user, *layout_), first, last);
}

void Packer::unpack_range(void* user, const void* packed, std::int64_t first, std::int64_t last) const noexcept {
  if (first < last) program_->unpack_range(bytes(packed), place(user, *layout_), first, last);
}

std::string Packer::text() const {
  if (!layout_->root()) return "nothing";
  if (program_->reference) return "reference";
  const std::string isa = "/" + std::string(name(program_->isa));
  if (program_->stretches) return "streaming " + bestride::text(*program_->op) + isa;
  return bestride::text(program_->streaming_op ? *program_->streaming_op : *program_->op) + isa;
}

}  // namespace bestride::inline kernels
