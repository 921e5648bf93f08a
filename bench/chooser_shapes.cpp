// SPDX-License-Identifier: Apache-2.0
#include "bench/chooser_shapes.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace bestride {
namespace {

constexpr double largest_footprint = 200e6;

double log_uniform(std::mt19937& random, double low, double high) {
  return std::exp(std::uniform_real_distribution<double>(std::log(low), std::log(high))(random));
}
int below(std::mt19937& random, int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

struct LeafType {
  MPI_Datatype type;
  int size;
  const char* name;
};
LeafType random_leaf(std::mt19937& random) {
  const LeafType leaves[] = {{MPI_DOUBLE, 8, "double"},
                             {MPI_FLOAT, 4, "float"},
                             {MPI_INT, 4, "int"},
                             {MPI_DOUBLE, 8, "double"},
                             {MPI_C_DOUBLE_COMPLEX, 16, "dcomplex"}};
  return leaves[below(random, 5)];
}

std::string text_of(const char* format, auto... values) {
  char text[160];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

/// A vector, or count x resized(block), which has the same bytes.
RandomType random_vector(std::mt19937& random, double bytes) {
  const LeafType leaf = random_leaf(random);
  const int block = std::max(1, static_cast<int>(log_uniform(random, 4, 6000) / leaf.size));
  const int stride = std::max(block + 1, static_cast<int>(block * log_uniform(random, 1.2, 40)));
  const int count =
      std::max(2, static_cast<int>(std::min(bytes / (block * leaf.size), largest_footprint / (stride * leaf.size))));
  RandomType result;
  if (below(random, 4) == 0) {
    MPI_Datatype body;
    MPI_Type_contiguous(block, leaf.type, &body);
    MPI_Type_create_resized(body, 0, static_cast<MPI_Aint>(stride) * leaf.size, &result.type);
    MPI_Type_free(&body);
    result.count = count;
    result.text = text_of("%d x resized(0,%d,contiguous(%d,%s))", count, stride * leaf.size, block, leaf.name);
  } else {
    MPI_Type_vector(count, block, stride, leaf.type, &result.type);
    result.text = text_of("vector(%d,%d,%d,%s)", count, block, stride, leaf.name);
  }
  return result;
}

/// A face, edge or inner box of a cube.
RandomType random_box(std::mt19937& random, double bytes) {
  const LeafType leaf = random_leaf(random);
  const int halo = 1 + below(random, 4), axis = below(random, 3);
  const int side = std::clamp(static_cast<int>(std::sqrt(bytes / (halo * leaf.size))), 4,
                              static_cast<int>(std::cbrt(largest_footprint / leaf.size)) - 12);
  int sizes[3], parts[3], starts[3];
  for (int d = 0; d < 3; ++d) {
    sizes[d] = side + 2 * halo + below(random, 5);
    parts[d] = d == axis ? halo : side;
    starts[d] = halo;
  }
  RandomType result;
  MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, leaf.type, &result.type);
  result.text = text_of("subarray([%d,%d,%d],[%d,%d,%d],c,%s)", sizes[0], sizes[1], sizes[2], parts[0], parts[1],
                        parts[2], leaf.name);
  return result;
}

/// Arrays of structs without some of the members.
RandomType random_records(std::mt19937& random, double bytes) {
  const int members = 2 + below(random, 4);
  const bool mixed = below(random, 2);
  std::vector<int> lengths;
  std::vector<MPI_Aint> at;
  std::vector<MPI_Datatype> types;
  MPI_Aint next = 0;
  double packed = 0;
  for (int m = 0; m < members; ++m) {
    const bool is_double = !mixed || below(random, 2);
    // Pairs of integers: the other side of every measurement is contiguous, and MPICH 4.0.2 cannot receive from a
    // contiguous sender if a fragment ends inside a basic element (docs/strategies.md).
    const int length = is_double ? 1 + below(random, 4) : 2 + 2 * below(random, 2);
    lengths.push_back(length);
    types.push_back(is_double ? MPI_DOUBLE : MPI_INT);
    at.push_back(next);
    const int size = length * (is_double ? 8 : 4);
    packed += size;
    next += (size + 7) / 8 * 8 + 8 * below(random, 3);
  }
  next += 8;
  const int count = std::max(2, static_cast<int>(bytes / packed));
  MPI_Datatype record, resized;
  MPI_Type_create_struct(members, lengths.data(), at.data(), types.data(), &record);
  MPI_Type_create_resized(record, 0, next, &resized);
  RandomType result;
  if (below(random, 2)) {
    MPI_Type_contiguous(count, resized, &result.type);
    MPI_Type_free(&resized);
  } else {
    result.type = resized;
    result.count = count;
  }
  MPI_Type_free(&record);
  result.text = text_of("%d records of %d %s members, %.0f of %ld bytes, count %d", count, members,
                        mixed ? "mixed" : "double", packed, static_cast<long>(next), result.count);
  return result;
}

RandomType random_list(std::mt19937& random, double bytes) {
  const LeafType leaf = random_leaf(random);
  const int block = std::max(1, static_cast<int>(log_uniform(random, 4, 500) / leaf.size));
  const int gap = std::max(2, static_cast<int>(block * log_uniform(random, 0.5, 20)));
  const int count = std::max(
      10,
      static_cast<int>(std::min({bytes / (block * leaf.size), largest_footprint / ((block + gap) * leaf.size), 5e5})));
  std::vector<int> at;
  int next = 0;
  for (int i = 0; i < count; ++i) {
    at.push_back(next);
    next += block + 1 + below(random, gap);
  }
  if (below(random, 3) == 0) std::shuffle(at.begin(), at.end(), random);
  RandomType result;
  MPI_Type_create_indexed_block(count, block, at.data(), leaf.type, &result.type);
  result.text = text_of("indexed_block(%d blocks of %d, gaps to %d,%s)%s", count, block, gap, leaf.name,
                        at[0] || at[1] < at[0] ? " shuffled" : "");
  return result;
}

}  // namespace

RandomType make_random_type(std::mt19937& random) {
  const double bytes = log_uniform(random, 100, 8e6);
  RandomType result;
  switch (below(random, 9)) {
    case 0:
    case 1:
    case 2: result = random_vector(random, bytes); break;
    case 3:
    case 4: result = random_box(random, bytes); break;
    case 5:
    case 6: result = random_records(random, bytes); break;
    case 7: result = random_list(random, bytes); break;
    default:
      result.count = std::max(1, static_cast<int>(bytes / 8));
      MPI_Type_contiguous(1, MPI_DOUBLE, &result.type);
      result.text = text_of("%d doubles", result.count);
  }
  MPI_Type_commit(&result.type);
  return result;
}

}  // namespace bestride
