// SPDX-License-Identifier: Apache-2.0
#include "bench/pack_cases.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace bestride::bench {
namespace {

using Int = std::int64_t;

Placed block(Int size) { return *make_block(0, size); }
Placed repeat(const Placed& body, Int count, Int stride) { return *make_repeat(body, count, stride); }
Placed vector(Int count, Int size, Int stride) { return repeat(block(size), count, stride); }
Placed at(Placed placed, Int offset) { return {placed.offset + offset, placed.node}; }

/// `counts` elements of `element` bytes at `starts` in an array of `sizes`. The last dimension is the fastest.
Placed subarray(const std::vector<Int>& sizes, const std::vector<Int>& counts, const std::vector<Int>& starts,
                Int element) {
  Placed all = block(element);
  Int stride = element, offset = 0;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    all = repeat(all, counts[d], stride);
    offset += starts[d] * stride;
    stride *= sizes[d];
  }
  return at(all, offset);
}

Placed random_blocks(Int n, Int blocks, Int element, Int slots, unsigned seed, Int base = 0) {
  std::mt19937_64 random(seed);
  std::vector<Int> all(static_cast<std::size_t>(slots));
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), random);
  std::vector<Int> offsets, lengths(static_cast<std::size_t>(n), blocks * element);
  for (Int i = 0; i < n; ++i) offsets.push_back(base + all[static_cast<std::size_t>(i)] * blocks * element);
  return *make_blocks(offsets, lengths);
}

/// WRF halo: two-, three- and four-dimensional float arrays of one struct. j, k, i: rows, levels, columns.
Placed wrf(Int d1, Int d2, Int d3, Int si, Int sk, Int sj, Int oi, Int oj) {
  std::vector<Placed> parts;
  Int base = 0;
  for (int i = 0; i < 4; ++i) {
    parts.push_back(at(subarray({d3, d1}, {sj, si}, {oj, oi}, 4), base));
    base += d1 * d3 * 4 + 4096;
  }
  for (int i = 0; i < 3; ++i) {
    parts.push_back(at(subarray({d3, d2, d1}, {sj, sk, si}, {oj, 0, oi}, 4), base));
    base += d1 * d2 * d3 * 4 + 4096;
  }
  for (int i = 0; i < 2; ++i) {
    parts.push_back(at(subarray({2, d3, d2, d1}, {1, sj, sk, si}, {1, oj, 0, oi}, 4), base));
    base += 2 * d1 * d2 * d3 * 4 + 4096;
  }
  return *make_sequence(parts);
}

Placed lammps(Int slots, Int n) {
  std::vector<Placed> parts{random_blocks(n, 3, 8, slots, 1)};
  Int base = slots * 24 + 4096;
  for (unsigned i = 0; i < 5; ++i) {
    parts.push_back(random_blocks(n, 1, 8, slots, 2 + i, base));
    base += slots * 8 + 4096;
  }
  return *make_sequence(parts);
}

Placed aos(Int records) {  // double[4], char[5] in 40 bytes
  const Placed record = *make_sequence(std::vector<Placed>{block(32), at(block(5), 34)});
  return repeat(record, records, 40);
}

Placed wide_aos(Int records) {  // five fields in 96 bytes, 56 of them sent
  const Placed record = *make_sequence(
      std::vector<Placed>{block(8), at(block(12), 16), at(block(4), 36), at(block(24), 48), at(block(8), 80)});
  return repeat(record, records, 96);
}

std::string bytes(Int n) { return n >= 1 << 20 ? std::to_string(n >> 20) + "M" : std::to_string(n >> 10) + "K"; }

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Int size : {Int{1} << 10, Int{64} << 10, Int{1} << 20, Int{16} << 20}) {
    for (const Int width : {1, 2, 4, 8, 12, 16, 24, 32, 40, 64, 100, 128, 256, 512, 1024, 2048})
      if (width < size)
        all.push_back({"vector/" + std::to_string(width) + "/" + bytes(size),
                       [=] { return vector(size / width, width, 2 * width); }});
    all.push_back({"resized/8of24/" + bytes(size), [=] { return vector(size / 8, 8, 24); }});
    all.push_back({"resized/4of64/" + bytes(size), [=] { return vector(size / 4, 4, 64); }});
    all.push_back({"resized/8of80/" + bytes(size), [=] { return vector(size / 8, 8, 80); }});
    all.push_back({"resized/16of48/" + bytes(size), [=] { return vector(size / 16, 16, 48); }});
    all.push_back({"aos/37of40/" + bytes(size), [=] { return aos(size / 37); }});
    all.push_back({"aos/56of96/" + bytes(size), [=] { return wide_aos(size / 56); }});
    all.push_back(
        {"nest3/16/" + bytes(size), [=] { return repeat(repeat(vector(4, 16, 40), 4, 200), size / 256, 1000); }});
    all.push_back({"indexed/4/" + bytes(size), [=] { return random_blocks(size / 4, 1, 4, size / 2, 7); }});
    all.push_back({"indexed/12/" + bytes(size), [=] { return random_blocks(size / 12, 3, 4, size / 6, 7); }});
    all.push_back({"indexed/64/" + bytes(size), [=] { return random_blocks(size / 64, 8, 8, size / 32, 7); }});
  }
  for (const Int width : {8, 64, 1024})
    for (const Int size : {Int{4} << 20, Int{64} << 20, Int{256} << 20})
      all.push_back({"large/" + std::to_string(width) + "/" + bytes(size),
                     [=] { return vector(size / width, width, 2 * width); }});
  for (const Int n : {64, 256, 512})
    for (const Int w : {1, 2, 3}) {
      const std::string end = "/" + std::to_string(n) + "/w" + std::to_string(w);
      const Int m = n - 2;
      all.push_back({"face/i" + end, [=] { return subarray({n, n, n}, {m, m, w}, {1, 1, 1}, 8); }});
      all.push_back({"face/j" + end, [=] { return subarray({n, n, n}, {m, w, m}, {1, 1, 1}, 8); }});
      all.push_back({"face/k" + end, [=] { return subarray({n, n, n}, {w, m, m}, {1, 1, 1}, 8); }});
    }
  all.push_back({"WRF_y", [] { return wrf(32, 65, 52, 23, 65, 3, 5, 7); }});
  all.push_back({"WRF_x", [] { return wrf(32, 65, 52, 3, 65, 44, 22, 4); }});
  all.push_back({"MILC/16", [] {
                   const Int d = 16;
                   return repeat(vector(d, d * d / 2 * 24, d * d * d / 2 * 24), 2, 24 * d * d * d * d / 2);
                 }});
  all.push_back({"MILC/8", [] {
                   const Int d = 8;
                   return repeat(vector(d, d * d / 2 * 24, d * d * d / 2 * 24), 2, 24 * d * d * d * d / 2);
                 }});
  for (const Int d : {12, 64, 408})
    all.push_back({"NAS_LU_y/" + std::to_string(d), [=] { return vector(d, 40, 40 * (d + 2)); }});
  for (const Int d : {66, 130, 258}) {
    const std::string end = std::to_string(d);
    all.push_back({"NAS_MG_x/" + end, [=] { return repeat(vector(d - 2, 8, 8 * d), d - 2, 8 * d * d); }});
    all.push_back({"NAS_MG_y/" + end, [=] { return vector(d - 2, 8 * (d - 2), 8 * d * d); }});
    all.push_back({"NAS_MG_z/" + end, [=] { return vector(d - 2, 8 * (d - 2), 8 * d); }});
  }
  all.push_back({"LAMMPS_full/3062", [] { return lammps(3534, 3062); }});
  all.push_back({"LAMMPS_full/1662", [] { return lammps(1907, 1662); }});
  all.push_back({"SPECFEM_oc/3225", [] { return random_blocks(3225, 1, 4, 88881, 3); }});
  all.push_back({"SPECFEM_cm", [] {
                   return *make_sequence(std::vector<Placed>{random_blocks(11797, 3, 4, 834917 / 3, 4),
                                                             random_blocks(3009, 3, 4, 51153 / 3, 5, 834917 * 12)});
                 }});
  all.push_back({"SPECFEM_mt/7600", [] { return vector(7600, 12, 24); }});
  for (const Int n : {256, 512, 1024, 1536}) {
    const Int p = 4;
    all.push_back({"FFT2D/send/" + std::to_string(n), [=] { return repeat(vector(n / p, 16, n * 16), n / p, 16); }});
    all.push_back({"FFT2D/all/" + std::to_string(n), [=] { return repeat(vector(n, 16, n * 16), n, 16); }});
    all.push_back(
        {"FFT2D/recv/" + std::to_string(n), [=] { return repeat(vector(n / p, n / p * 16, n * 16), p, n / p * 16); }});
  }
  for (const Int w : {2, 4, 8, 12, 32})
    all.push_back(
        {"transpose/" + std::to_string(w) + "/1000", [=] { return repeat(vector(1000, w, 1000 * w), 1000, w); }});
  all.push_back({"soa/8x3", [] { return repeat(vector(3, 8, 1 << 20), 1 << 17, 8); }});
  all.push_back({"contiguous/1M", [] { return block(1 << 20); }});
  all.push_back({"contiguous/16M", [] { return block(16 << 20); }});
  all.push_back({"tiny/1x8", [] { return block(8); }});
  all.push_back({"tiny/10x8", [] { return vector(10, 8, 16); }});
  all.push_back({"tiny/struct", [] {
                   return *make_sequence(std::vector<Placed>{block(8), at(block(4), 12), at(block(16), 24)});
                 }});
  return all;
}

}  // namespace bestride::bench
