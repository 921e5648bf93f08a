// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "cases.hpp"

namespace messages {
namespace {

Shape floats() { return Shape::named(MPI_FLOAT); }
Shape doubles() { return Shape::named(MPI_DOUBLE); }

/// Members one after another in memory, each at the next multiple of 64.
struct Arrays {
  std::vector<int> lengths;
  std::vector<std::ptrdiff_t> places;
  std::vector<Shape> members;
  std::ptrdiff_t end = 0;

  void add(Shape shape, std::ptrdiff_t array_bytes, std::ptrdiff_t first_byte = 0) {
    lengths.push_back(1);
    places.push_back(end + first_byte);
    members.push_back(std::move(shape));
    end += (array_bytes + 63) / 64 * 64;
  }
  Shape joined() const { return Shape::structure(lengths, places, members); }
};

/// WRF: four 2-D, three 3-D and two 4-D arrays of floats in one struct; part (si, sj, sk) at offset (i, j) of (d1, d2,
/// d3).
struct Wrf {
  int d1, d2, d3, si, sk, sj, i, j;

  Shape plane() const { return floats().vector(sj, si, d1); }
  Shape brick() const { return floats().vector(sk, si, d1).hvector(sj, 1, std::ptrdiff_t(4) * d1 * d2); }

  Message as_vectors() const {
    const std::ptrdiff_t area = std::ptrdiff_t(4) * d1 * d3, volume = std::ptrdiff_t(4) * d1 * d2 * d3;
    const std::ptrdiff_t in_plane = std::ptrdiff_t(4) * (j * d1 + i), in_brick = std::ptrdiff_t(4) * (j * d1 * d2 + i);
    Arrays arrays;
    for (int count = 0; count < 4; ++count) arrays.add(plane(), area, in_plane);
    for (int count = 0; count < 3; ++count) arrays.add(brick(), volume, in_brick);
    for (int count = 0; count < 2; ++count) arrays.add(brick().hvector(1, 1, volume), 2 * volume, volume + in_brick);
    return arrays.joined();
  }
  Message as_subarrays() const {
    const std::ptrdiff_t area = std::ptrdiff_t(4) * d1 * d3, volume = std::ptrdiff_t(4) * d1 * d2 * d3;
    Arrays arrays;
    for (int count = 0; count < 4; ++count) arrays.add(floats().subarray({d3, d1}, {sj, si}, {j, i}), area);
    for (int count = 0; count < 3; ++count)
      arrays.add(floats().subarray({d3, d2, d1}, {sj, sk, si}, {j, 0, i}), volume);
    for (int count = 0; count < 2; ++count)
      arrays.add(floats().subarray({2, d3, d2, d1}, {1, sj, sk, si}, {1, j, 0, i}), 2 * volume);
    return arrays.joined();
  }
};

void add_wrf(std::vector<Case>& cases) {
  const std::pair<const char*, Wrf> sizes[] = {{"y/2x2", {32, 65, 52, 23, 65, 3, 5, 7}},
                                               {"y/8x8", {19, 65, 24, 11, 65, 3, 4, 7}},
                                               {"x/2x2", {32, 65, 52, 3, 65, 44, 22, 4}},
                                               {"x/8x8", {19, 65, 24, 3, 65, 16, 9, 4}}};
  for (const auto& [name, wrf] : sizes) {
    cases.push_back({"wrf", std::string("wrf/") + name + "/vector", [wrf = wrf] { return wrf.as_vectors(); }});
    cases.push_back({"wrf", std::string("wrf/") + name + "/subarray", [wrf = wrf] { return wrf.as_subarrays(); }});
  }
}

void add_milc(std::vector<Case>& cases) {
  for (const std::array<int, 4> d : {std::array{16, 16, 16, 16}, {8, 16, 16, 16}, {8, 8, 8, 16}, {8, 8, 8, 8}}) {
    const auto name =
        std::to_string(d[0]) + "x" + std::to_string(d[1]) + "x" + std::to_string(d[2]) + "x" + std::to_string(d[3]);
    cases.push_back(
        {"milc", "milc/" + name, [d] {
           const int run = d[0] * d[1] / 2, step = d[0] * d[1] * d[2] / 2;
           return Message(
               floats().contiguous(6).vector(d[3], run, step).hvector(2, 1, std::ptrdiff_t(24) * step * d[3]));
         }});
  }
}

void add_nas(std::vector<Case>& cases) {
  for (const int d : {12, 33, 64, 102, 162, 408, 1020}) {
    cases.push_back({"nas_lu", "nas_lu/x/" + std::to_string(d), [d] { return Message(doubles().contiguous(5 * d)); }});
    cases.push_back({"nas_lu", "nas_lu/y/" + std::to_string(d),
                     [d] { return Message(doubles().contiguous(5).vector(d, 1, d + 2)); }});
  }
  for (const std::array<int, 3> d : {std::array{34, 18, 18}, {130, 66, 66}, {258, 130, 130}, {514, 258, 258}}) {
    const auto name = std::to_string(d[0]);
    cases.push_back({"nas_mg", "nas_mg/x/" + name, [d] {
                       return Message(
                           doubles().vector(d[1] - 2, 1, d[0]).hvector(d[2] - 2, 1, std::ptrdiff_t(8) * d[0] * d[1]));
                     }});
    cases.push_back(
        {"nas_mg", "nas_mg/y/" + name, [d] { return Message(doubles().vector(d[2] - 2, d[0] - 2, d[0] * d[1])); }});
    cases.push_back(
        {"nas_mg", "nas_mg/z/" + name, [d] { return Message(doubles().vector(d[1] - 2, d[0] - 2, d[0])); }});
  }
}

/// `count` different numbers below `limit` in random order, the same on both ranks.
std::vector<int> drawn(int limit, int count, unsigned seed) {
  std::vector<int> all(limit);
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), std::mt19937(seed));
  all.resize(count);
  return all;
}

/// Atoms selected from arrays per property: the first array has three values per atom, the `others` one. The receiver
/// is contiguous.
Message lammps(int others, int atoms, int count) {
  std::vector<int> picked = drawn(atoms, count, 7), triples = picked;
  for (int& place : triples) place *= 3;
  Arrays from, to;
  from.add(doubles().indexed_block(3, triples), std::ptrdiff_t(24) * atoms);
  to.add(doubles().contiguous(3 * count), std::ptrdiff_t(24) * count);
  for (int other = 0; other < others; ++other) {
    from.add(doubles().indexed_block(1, picked), std::ptrdiff_t(8) * atoms);
    to.add(doubles().contiguous(count), std::ptrdiff_t(8) * count);
  }
  return {from.joined(), to.joined()};
}

void add_lammps(std::vector<Case>& cases) {
  for (const auto& [atoms, count] : {std::pair{3534, 3062}, {2597, 2243}, {1907, 1662}})
    cases.push_back({"lammps", "lammps/full/" + std::to_string(count),
                     [atoms = atoms, count = count] { return lammps(5, atoms, count); }});
  for (const auto& [atoms, count] : {std::pair{4084, 243}, {2157, 145}, {1217, 114}})
    cases.push_back({"lammps", "lammps/atomic/" + std::to_string(count),
                     [atoms = atoms, count = count] { return lammps(3, atoms, count); }});
}

void add_specfem(std::vector<Case>& cases) {
  for (const auto& [size, count] : {std::pair{88881, 3225}, {38585, 1897}, {12857, 877}, {3697, 493}})
    cases.push_back({"specfem", "specfem/oc/" + std::to_string(count), [size = size, count = count] {
                       return Message(floats().indexed_block(1, drawn(size, count, 11)));
                     }});
  struct Mantle {
    int crust, core, crust_count, core_count;
  };
  for (const Mantle m : {Mantle{834917, 51153, 11797, 3009},
                         {396849, 22477, 7125, 1729},
                         {152001, 7209, 3801, 801},
                         {39929, 1225, 1957, 245}})
    cases.push_back({"specfem", "specfem/cm/" + std::to_string(m.crust_count), [m] {
                       Arrays arrays;
                       for (const auto& [size, count] : {std::pair{m.crust, m.crust_count}, {m.core, m.core_count}}) {
                         std::vector<int> triples = drawn(size, count, 13);
                         for (int& place : triples) place *= 3;
                         arrays.add(floats().indexed_block(3, triples), std::ptrdiff_t(12) * size);
                       }
                       return Message(arrays.joined());
                     }});
  for (const int count : {7600, 6400, 5600})
    cases.push_back({"specfem", "specfem/mt/" + std::to_string(count), [count] {
                       const Shape triple = floats().contiguous(3);
                       return Message(triple.vector(count, 1, 2), triple.contiguous(count));
                     }});
}

/// One block of a distributed transpose between two ranks: sends columns, receives rows of columns.
void add_fft(std::vector<Case>& cases) {
  constexpr int ranks = 2, bytes = 16;
  for (const int n : {256, 512, 768}) {
    const auto make = [n](int length) {
      const Shape complex = doubles().contiguous(2);
      const Shape part = length == 1
                             ? complex.vector(n / ranks, 1, n).resized(bytes).contiguous(n / ranks)
                             : complex.vector(n / ranks, n / ranks, n).resized(std::ptrdiff_t(bytes) * n / ranks);
      return Message(part);
    };
    cases.push_back({"fft2d", "fft2d/scatter/" + std::to_string(n), [=] { return make(1); }});
    cases.push_back({"fft2d", "fft2d/gather/" + std::to_string(n), [=] { return make(n / ranks); }});
  }
}

}  // namespace

void add_ddtbench(std::vector<Case>& cases) {
  add_wrf(cases);
  add_milc(cases);
  add_nas(cases);
  add_lammps(cases);
  add_specfem(cases);
  add_fft(cases);
}

}  // namespace messages
