// SPDX-License-Identifier: Apache-2.0
// Quantization for the baseline machine: the reference for all other targets.
#define BESTRIDE_TARGET scalar
#include "kernels/quantize/target/blocks.hpp"

namespace bestride::inline kernels {

namespace scalar {
namespace {

struct Pair {
  static constexpr int width = 2;
  static constexpr Int stride = 8;

  struct Values {
    int code[2];
  };

  template <NumberFormat format>
  static BitsOf<format> largest(const Byte* from, Int bytes) {
    BitsOf<format> most = 0;
    for (Int i = 0; i < bytes; i += size_of<format>) {
      const auto magnitude = static_cast<BitsOf<format>>(read<BitsOf<format>>(from + i) & ~Number<format>::sign);
      most = magnitude > most ? magnitude : most;
    }
    return most;
  }

  template <NumberFormat format, CodeBits bits>
  static void encode(const Byte* from, const Encoder& encoder, Byte* to) {
    for (int i = 0; i < width; ++i)
      put_code<bits>(
          to, i,
          encode_number<format>(Number<format>::to_double(read<BitsOf<format>>(from + i * size_of<format>)), encoder));
  }

  template <CodeBits bits>
  static Values decode(const Byte* from, const Decoder&) {
    return {{get_code<bits>(from, 0), get_code<bits>(from, 1)}};
  }

  template <NumberFormat format, bool adding = false>
  static void store(Byte* to, const Values& values, const Decoder& decoder) {
    for (int i = 0; i < width; ++i)
      put_number<format, adding>(to + i * size_of<format>,
                                 Number<format>::from_double(decode_number<format>(values.code[i], decoder)));
  }

  template <NumberFormat format>
  static void add(Byte* to, const Values& values, const Decoder& decoder) {
    store<format, true>(to, values, decoder);
  }
};

}  // namespace
}  // namespace scalar

const QuantizeKernels& scalar_quantize_kernels() {
  static constexpr QuantizeKernels table = scalar::quantize_table<scalar::Pair>();
  return table;
}

}  // namespace bestride::inline kernels
