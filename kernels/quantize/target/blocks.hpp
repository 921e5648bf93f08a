// SPDX-License-Identifier: Apache-2.0
#pragma once
// Blocks: the loop over a message, with the arithmetic of a Vector, compiled once per target. A Vector has
//
//   width                                  numbers at a time, even
//   largest<format>(from, bytes)           the greatest magnitude, as Bits; bytes: a multiple of stride
//   encode<format, bits>(from, encoder, to)   `width` numbers
//   decode<bits>(from, decoder)            -> Values
//   store<format>(to, Values, decoder)
//   add<format>(to, Values, decoder)
//
// The remainder of a block uses the same code in a padded copy, so that no byte beyond the message is accessed.
#include "kernels/quantize/kernel_table.hpp"
#include "kernels/quantize/number.hpp"

namespace bestride::inline kernels::BESTRIDE_TARGET {

template <NumberFormat format>
using BitsOf = typename Number<format>::Bits;

template <NumberFormat format>
inline constexpr Int size_of = sizeof(BitsOf<format>);

template <class T>
[[gnu::always_inline]] inline T read(const Byte* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
[[gnu::always_inline]] inline void write(Byte* to, T value) {
  __builtin_memcpy(to, &value, sizeof value);
}

template <CodeBits bits>
constexpr Int code_bytes(Int count) {
  return bits == CodeBits::int8 ? count : (count + 1) / 2;
}

template <CodeBits bits>
[[gnu::always_inline]] inline void put_code(Byte* codes, Int i, int code) {
  if constexpr (bits == CodeBits::int8)
    codes[i] = static_cast<Byte>(code);
  else
    codes[i / 2] = static_cast<Byte>(i % 2 == 0 ? code & 15 : codes[i / 2] | code << 4);
}

template <CodeBits bits>
[[gnu::always_inline]] inline int get_code(const Byte* codes, Int i) {
  if constexpr (bits == CodeBits::int8) return static_cast<signed char>(codes[i]);
  const int nibble = codes[i / 2] >> (i % 2 * 4) & 15;
  return (nibble ^ 8) - 8;
}

template <NumberFormat format, CodeBits bits>
[[gnu::noinline]] void quantize_marked(const Byte* in, Int count, Byte* out) {
  using N = Number<format>;
  BitsOf<format> largest = 0;
  for (Int i = 0; i < count; ++i) {
    const auto magnitude = static_cast<BitsOf<format>>(read<BitsOf<format>>(in + i * size_of<format>) & ~N::sign);
    if (magnitude < N::infinity && magnitude > largest) largest = magnitude;
  }
  const Encoder encoder(N::to_double(largest), top_code<bits> - 1);
  using Scale = Number<scale_format<format>>;
  write<typename Scale::Bits>(out, Scale::from_double(N::to_double(largest)) | Scale::sign);
  for (Int i = 0; i < count; ++i)
    put_code<bits>(out + scale_bytes<format>, i,
                   encode_marked<format, bits>(read<BitsOf<format>>(in + i * size_of<format>), encoder));
}

template <class Vector, NumberFormat format, CodeBits bits>
[[gnu::always_inline]] inline void quantize_block(const Byte* in, Int count, Byte* out) {
  using N = Number<format>;
  constexpr Int size = size_of<format>;
  const Int whole = count * size / Vector::stride * Vector::stride;
  BitsOf<format> largest = Vector::template largest<format>(in, whole);
  if (whole < count * size) {
    Byte padded[Vector::stride] = {};
    __builtin_memcpy(padded, in + whole, static_cast<std::size_t>(count * size - whole));
    const BitsOf<format> rest = Vector::template largest<format>(padded, Vector::stride);
    if (rest > largest) largest = rest;
  }
  if (largest >= N::infinity) return quantize_marked<format, bits>(in, count, out);

  using Scale = Number<scale_format<format>>;
  const double scale = N::to_double(largest);
  write<typename Scale::Bits>(out, Scale::from_double(scale));
  out += scale_bytes<format>;
  const Encoder encoder(scale, top_code<bits>);
  Int i = 0;
  for (; i + Vector::width <= count; i += Vector::width)
    Vector::template encode<format, bits>(in + i * size, encoder, out + code_bytes<bits>(i));
  if (i < count) {
    Byte numbers[Vector::width * size] = {};
    Byte codes[Vector::width];
    __builtin_memcpy(numbers, in + i * size, static_cast<std::size_t>((count - i) * size));
    Vector::template encode<format, bits>(numbers, encoder, codes);
    __builtin_memcpy(out + code_bytes<bits>(i), codes, static_cast<std::size_t>(code_bytes<bits>(count - i)));
  }
}

/// Writes a number, or adds it to the number already there.
template <NumberFormat format, bool adding>
[[gnu::always_inline]] inline void put_number(Byte* to, BitsOf<format> number) {
  if constexpr (adding) {
    using Real = typename Number<format>::Real;
    number = bits_as<BitsOf<format>>(read<Real>(to) + bits_as<Real>(number));
  }
  write(to, number);
}

template <NumberFormat format, CodeBits bits, bool adding>
[[gnu::noinline]] void dequantize_marked(const Byte* codes, Int count, Byte* out, double largest) {
  const Decoder decoder(largest, top_code<bits> - 1);
  for (Int i = 0; i < count; ++i)
    put_number<format, adding>(out + i * size_of<format>,
                               decode_marked<format, bits>(get_code<bits>(codes, i), decoder));
}

template <class Vector, NumberFormat format, CodeBits bits, bool adding>
[[gnu::always_inline]] inline void dequantize_some(const Byte* codes, const Decoder& decoder, Byte* out) {
  const auto values = Vector::template decode<bits>(codes, decoder);
  if constexpr (adding)
    Vector::template add<format>(out, values, decoder);
  else
    Vector::template store<format>(out, values, decoder);
}

template <class Vector, NumberFormat format, CodeBits bits, bool adding>
[[gnu::always_inline]] inline void dequantize_block(const Byte* in, Int count, Byte* out) {
  using Scale = Number<scale_format<format>>;
  constexpr Int size = size_of<format>;
  const auto scale = read<typename Scale::Bits>(in);
  const double largest = Scale::to_double(scale & ~Scale::sign);
  in += scale_bytes<format>;
  if (scale & Scale::sign) return dequantize_marked<format, bits, adding>(in, count, out, largest);
  const Decoder decoder(largest, top_code<bits>);
  Int i = 0;
  for (; i + Vector::width <= count; i += Vector::width)
    dequantize_some<Vector, format, bits, adding>(in + code_bytes<bits>(i), decoder, out + i * size);
  if (i < count) {
    Byte codes[Vector::width] = {};
    Byte numbers[Vector::width * size] = {};
    const std::size_t left = static_cast<std::size_t>((count - i) * size);
    __builtin_memcpy(codes, in + code_bytes<bits>(i), static_cast<std::size_t>(code_bytes<bits>(count - i)));
    if constexpr (adding) __builtin_memcpy(numbers, out + i * size, left);
    dequantize_some<Vector, format, bits, adding>(codes, decoder, numbers);
    __builtin_memcpy(out + i * size, numbers, left);
  }
}

template <class Vector, NumberFormat format, CodeBits bits>
void quantize(const Byte* in, Int count, Byte* out) {
  constexpr Int block = quantized_block<bits>;
  for (; count > block;
       count -= block, in += block * size_of<format>, out += scale_bytes<format> + code_bytes<bits>(block))
    quantize_block<Vector, format, bits>(in, block, out);
  quantize_block<Vector, format, bits>(in, count, out);
}

template <class Vector, NumberFormat format, CodeBits bits, bool adding>
void dequantize(const Byte* in, Int count, Byte* out) {
  constexpr Int block = quantized_block<bits>;
  for (; count > block;
       count -= block, in += scale_bytes<format> + code_bytes<bits>(block), out += block * size_of<format>)
    dequantize_block<Vector, format, bits, adding>(in, block, out);
  dequantize_block<Vector, format, bits, adding>(in, count, out);
}

template <class Vector>
constexpr QuantizeKernels quantize_table() {
  using enum NumberFormat;
  using enum CodeBits;
  return {{{quantize<Vector, float32, int4>, quantize<Vector, float32, int8>},
           {quantize<Vector, float64, int4>, quantize<Vector, float64, int8>},
           {quantize<Vector, float16, int4>, quantize<Vector, float16, int8>},
           {quantize<Vector, bfloat16, int4>, quantize<Vector, bfloat16, int8>}},
          {{dequantize<Vector, float32, int4, false>, dequantize<Vector, float32, int8, false>},
           {dequantize<Vector, float64, int4, false>, dequantize<Vector, float64, int8, false>},
           {dequantize<Vector, float16, int4, false>, dequantize<Vector, float16, int8, false>},
           {dequantize<Vector, bfloat16, int4, false>, dequantize<Vector, bfloat16, int8, false>}},
          {{dequantize<Vector, float32, int4, true>, dequantize<Vector, float32, int8, true>},
           {dequantize<Vector, float64, int4, true>, dequantize<Vector, float64, int8, true>}}};
}

}  // namespace bestride::inline kernels::BESTRIDE_TARGET
