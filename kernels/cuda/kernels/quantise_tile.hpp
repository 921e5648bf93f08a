// SPDX-License-Identifier: Apache-2.0
#pragma once
// The quantisation kernel, written as the code of one thread block (Team: see move.hpp). A tile has two numbers per
// thread: 2 blocks of int8, 8 of int4. The arithmetic is that of kernels/quantise/number.hpp, as on every CPU, so the
// bytes are the same.
//
// One thread per block computes the scale, between barriers. If every thread did a float64 division, this would take
// longer than the memory accesses.
#define BESTRIDE_TARGET quantise_device
#include "kernels/quantise/number.hpp"
#undef BESTRIDE_TARGET

#include "kernels/cuda/kernels/index.hpp"
#include "kernels/cuda/kernels/work.hpp"

namespace bestride::cuda {

enum class QuantiseMethod : std::uint8_t { quantise, dequantise, add };

/// The kernel's parameter.
struct QuantiseWork {
  std::uint64_t numbers;  ///< address of the numbers, or of the accumulator; a multiple of their size
  std::uint64_t codes;    ///< address of the blocks; a multiple of 8
  std::int64_t count;
  NumberFormat format;
  CodeBits bits;
  QuantiseMethod way;
};

inline constexpr const char* quantise_kernel = "bestride_quantise";
inline constexpr Number quantise_tile_numbers = 2 * threads_per_block;

template <NumberFormat format, CodeBits bits>
struct QuantiseTile {
  using N = quantise_device::Number<format>;
  using Bits = typename N::Bits;
  using Scale = quantise_device::Number<quantise_device::scale_format<format>>;
  static constexpr Number block = quantised_block<bits>;
  static constexpr Number threads = block / 2;  ///< threads per block of codes
  static constexpr std::int64_t code_bytes = bits == CodeBits::int8 ? block : block / 2;
  static constexpr std::int64_t stride = scale_bytes<format> + code_bytes;

  const QuantiseWork& work;
  std::int64_t first;  ///< index of the first number of the tile

  BESTRIDE_ON_DEVICE std::int64_t left(Number thread) const {
    return work.count - first - 2 * std::int64_t{thread};
  }  ///< numbers from this thread's first one to the end
  BESTRIDE_ON_DEVICE std::uint64_t number_at(Number thread) const {
    return work.numbers + static_cast<std::uint64_t>(first + 2 * std::int64_t{thread}) * sizeof(Bits);
  }
  BESTRIDE_ON_DEVICE std::uint64_t scale_at(Number thread) const {
    return work.codes + static_cast<std::uint64_t>(first / block + thread / threads) * stride;
  }
  BESTRIDE_ON_DEVICE std::uint64_t code_at(Number thread) const {
    return scale_at(thread) + scale_bytes<format> + (thread % threads) * (bits == CodeBits::int8 ? 2 : 1);
  }
};

// ---- Quantise

/// Combines two magnitudes: the larger one of the finite parts. The top bit is set if any number is not finite.
BESTRIDE_ON_DEVICE std::uint64_t joined_magnitudes(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t mark = std::uint64_t{1} << 63;
  const std::uint64_t x = a & ~mark, y = b & ~mark;
  return ((a | b) & mark) | (x > y ? x : y);
}

struct BlockEncoder {
  double lift, inverse;
  Number marked;
};
struct BlockDecoder {
  double largest, lower, step;
  Number marked;
};
inline constexpr Number most_tile_blocks = quantise_tile_numbers / quantised_block<CodeBits::int4>;
inline constexpr Number quantise_shared_bytes = threads_per_block * 8 + most_tile_blocks * sizeof(BlockDecoder);
static_assert(quantise_shared_bytes <= shared_bytes && sizeof(BlockEncoder) <= sizeof(BlockDecoder));

template <NumberFormat format, CodeBits bits, class Team>
BESTRIDE_ON_DEVICE void quantise_tile(Team& team, const QuantiseWork& work, std::int64_t tile) {
  using Tile = QuantiseTile<format, bits>;
  using N = typename Tile::N;
  using Bits = typename Tile::Bits;
  constexpr Number together =
      16;  // threads per first reduction step; in the second step one thread per block combines the partial results
  const Tile at{work, tile * quantise_tile_numbers};
  std::uint64_t* const magnitudes = reinterpret_cast<std::uint64_t*>(team.shared());
  BlockEncoder* const encoders = reinterpret_cast<BlockEncoder*>(magnitudes + threads_per_block);

  team.each([&](Number thread) {
    std::uint64_t all = 0;
    for (Number k = 0; k < 2; ++k) {
      if (at.left(thread) <= k) break;
      const auto magnitude =
          static_cast<Bits>(team.template load<Bits>(at.number_at(thread) + k * sizeof(Bits)) & ~N::sign);
      all = joined_magnitudes(all, magnitude < N::infinity ? std::uint64_t{magnitude} : std::uint64_t{1} << 63);
    }
    magnitudes[thread] = all;
  });
  team.each([&](Number thread) {
    if (thread % together != 0) return;
    std::uint64_t all = magnitudes[thread];
    for (Number k = 1; k < together; ++k) all = joined_magnitudes(all, magnitudes[thread + k]);
    magnitudes[thread] = all;
  });
  team.each([&](Number thread) {
    if (thread % Tile::threads != 0 || at.left(thread) <= 0) return;
    std::uint64_t all = magnitudes[thread];
    for (Number k = together; k < Tile::threads; k += together) all = joined_magnitudes(all, magnitudes[thread + k]);
    const Number marked = all >> 63;
    const double largest = N::to_double(static_cast<Bits>(all & ~(std::uint64_t{1} << 63)));
    const quantise_device::Encoder encoder(largest, top_code<bits> - static_cast<int>(marked));
    encoders[thread / Tile::threads] = {encoder.lift, encoder.inverse, marked};
    using Scale = typename Tile::Scale;
    const auto scale = static_cast<typename Scale::Bits>(Scale::from_double(largest) | (marked ? Scale::sign : 0));
    team.template store<typename Scale::Bits>(at.scale_at(thread), scale);
  });
  team.each([&](Number thread) {
    const std::int64_t left = at.left(thread);
    if (left <= 0) return;
    const BlockEncoder& block = encoders[thread / Tile::threads];
    quantise_device::Encoder encoder(0, 1);
    encoder.lift = block.lift;
    encoder.inverse = block.inverse;
    int code[2] = {0, 0};
    for (Number k = 0; k < 2 && k < left; ++k) {
      const Bits number = team.template load<Bits>(at.number_at(thread) + k * sizeof(Bits));
      code[k] = block.marked ? quantise_device::encode_marked<format, bits>(number, encoder)
                             : quantise_device::encode_number<format>(N::to_double(number), encoder);
    }
    if (bits == CodeBits::int4)
      team.template store<std::uint8_t>(at.code_at(thread),
                                        static_cast<std::uint8_t>((code[0] & 15) | (code[1] & 15) << 4));
    else if (left == 1)
      team.template store<std::uint8_t>(at.code_at(thread), static_cast<std::uint8_t>(code[0]));
    else
      team.template store<std::uint16_t>(at.code_at(thread),
                                         static_cast<std::uint16_t>((code[0] & 255) | (code[1] & 255) << 8));
  });
}

// ---- Dequantise

template <NumberFormat format, bool adding, class Team>
BESTRIDE_ON_DEVICE void put_number(Team& team, std::uint64_t address,
                                   typename quantise_device::Number<format>::Bits number) {
  using Bits = typename quantise_device::Number<format>::Bits;
  if constexpr (adding) {
    using Real = typename quantise_device::Number<format>::Real;
    const Real there = quantise_device::bits_as<Real>(team.template load<Bits>(address));
    number = quantise_device::bits_as<Bits>(quantise_device::sum(there, quantise_device::bits_as<Real>(number)));
  }
  team.template store<Bits>(address, number);
}

template <NumberFormat format, CodeBits bits, bool adding, class Team>
BESTRIDE_ON_DEVICE void dequantise_tile(Team& team, const QuantiseWork& work, std::int64_t tile) {
  using Tile = QuantiseTile<format, bits>;
  using N = typename Tile::N;
  const Tile at{work, tile * quantise_tile_numbers};
  BlockDecoder* const decoders = reinterpret_cast<BlockDecoder*>(team.shared());
  team.each([&](Number thread) {
    if (thread % Tile::threads != 0 || at.left(thread) <= 0) return;
    using Scale = typename Tile::Scale;
    const auto scale = team.template load<typename Scale::Bits>(at.scale_at(thread));
    const Number marked = (scale & Scale::sign) != 0;
    const quantise_device::Decoder decoder(Scale::to_double(static_cast<typename Scale::Bits>(scale & ~Scale::sign)),
                                           top_code<bits> - static_cast<int>(marked));
    decoders[thread / Tile::threads] = {decoder.largest, decoder.lower, decoder.step, marked};
  });
  team.each([&](Number thread) {
    const std::int64_t left = at.left(thread);
    if (left <= 0) return;
    const BlockDecoder& block = decoders[thread / Tile::threads];
    quantise_device::Decoder decoder(0, 1);
    decoder.largest = block.largest;
    decoder.lower = block.lower;
    decoder.step = block.step;
    Number codes;
    if (bits == CodeBits::int4 || left == 1)
      codes = team.template load<std::uint8_t>(at.code_at(thread));
    else
      codes = team.template load<std::uint16_t>(at.code_at(thread));
    for (Number k = 0; k < 2 && k < left; ++k) {
      const int code = bits == CodeBits::int4 ? static_cast<int>((codes >> 4 * k & 15) ^ 8) - 8
                                              : static_cast<int>((codes >> 8 * k & 255) ^ 128) - 128;
      const auto number = block.marked ? quantise_device::decode_marked<format, bits>(code, decoder)
                                       : N::from_double(quantise_device::decode_number<format>(code, decoder));
      put_number<format, adding>(team, at.number_at(thread) + k * sizeof number, number);
    }
  });
}

// ---- Selecting the kernel

template <NumberFormat format, CodeBits bits, class Team>
BESTRIDE_ON_DEVICE void any_quantise_tile(Team& team, const QuantiseWork& work, std::int64_t tile) {
  if (work.way == QuantiseMethod::quantise) return quantise_tile<format, bits>(team, work, tile);
  if constexpr (format == NumberFormat::float32 || format == NumberFormat::float64)
    if (work.way == QuantiseMethod::add) return dequantise_tile<format, bits, true>(team, work, tile);
  dequantise_tile<format, bits, false>(team, work, tile);
}

template <NumberFormat format, class Team>
BESTRIDE_ON_DEVICE void any_quantise_tile(Team& team, const QuantiseWork& work, std::int64_t tile) {
  if (work.bits == CodeBits::int8) return any_quantise_tile<format, CodeBits::int8>(team, work, tile);
  any_quantise_tile<format, CodeBits::int4>(team, work, tile);
}

/// Executes all tiles of one thread block.
template <class Team>
BESTRIDE_ON_DEVICE void quantise_tiles(Team& team, const QuantiseWork& work, Number block, Number grid) {
  for (std::int64_t tile = block; tile * quantise_tile_numbers < work.count; tile += grid) {
    switch (work.format) {
      case NumberFormat::float32: any_quantise_tile<NumberFormat::float32>(team, work, tile); break;
      case NumberFormat::float64: any_quantise_tile<NumberFormat::float64>(team, work, tile); break;
      case NumberFormat::float16: any_quantise_tile<NumberFormat::float16>(team, work, tile); break;
      case NumberFormat::bfloat16: any_quantise_tile<NumberFormat::bfloat16>(team, work, tile); break;
    }
    team.each([](Number) {});  // barrier: the next tile overwrites shared memory that threads of this tile still read
  }
}

}  // namespace bestride::cuda
