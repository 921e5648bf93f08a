// SPDX-License-Identifier: Apache-2.0
#include "spelling.hpp"

namespace spellings {
namespace {

MPI_Datatype resized(MPI_Datatype type, MPI_Aint extent) {
  MPI_Datatype made;
  MPI_Type_create_resized(type, 0, extent, &made);
  MPI_Type_commit(&made);
  return made;
}

MPI_Datatype strided(int count, int length, MPI_Aint stride_bytes, MPI_Datatype of) {
  MPI_Datatype made;
  MPI_Type_create_hvector(count, length, stride_bytes, of, &made);
  MPI_Type_commit(&made);
  return made;
}

MPI_Datatype repeated(int count, MPI_Datatype of) {
  MPI_Datatype made;
  MPI_Type_contiguous(count, of, &made);
  MPI_Type_commit(&made);
  return made;
}

/// A loop of `turns` with a stride of `stride` bytes over (length x body): as a user's type, and with the turns as the
/// count.
Shape loop(std::string name, int turns, int length, MPI_Aint stride, MPI_Datatype body) {
  int size = 0;
  MPI_Type_size(body, &size);
  Shape shape;
  shape.name = std::move(name);
  shape.step = turns * stride;
  shape.bytes = MPI_Aint{turns} * length * size;
  shape.plain = {1, strided(turns, length, stride, body)};
  shape.tiled = {1, resized(shape.plain.type, shape.step)};
  shape.respelled = {turns, resized(length == 1 ? body : repeated(length, body), stride)};
  return shape;
}

/// `turns` elements of a type with gaps as one type: contiguous(turns, element).
Shape array(std::string name, int turns, MPI_Datatype element) {
  MPI_Aint lower = 0, extent = 0;
  int size = 0;
  MPI_Type_get_extent(element, &lower, &extent);
  MPI_Type_size(element, &size);
  Shape shape;
  shape.name = std::move(name);
  shape.step = turns * extent;
  shape.bytes = MPI_Aint{turns} * size;
  shape.plain = shape.tiled = {1, repeated(turns, element)};
  shape.respelled = {turns, element};
  return shape;
}

MPI_Datatype pair() {
  const int lengths[] = {1, 1};
  const MPI_Aint at[] = {0, 8};
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
  MPI_Datatype made;
  MPI_Type_create_struct(2, lengths, at, types, &made);
  return resized(made, 16);
}

MPI_Datatype short_list() {
  const int at[] = {0, 2, 3, 6, 8, 11, 13, 14};
  MPI_Datatype made;
  MPI_Type_create_indexed_block(8, 1, at, MPI_DOUBLE, &made);
  return resized(made, 17 * 8);
}

}  // namespace

std::vector<Shape> shapes_of(int payload) {
  std::vector<Shape> shapes;
  shapes.push_back(loop("vector 8 B of 16", payload / 8, 1, 16, MPI_DOUBLE));
  shapes.push_back(loop("vector 64 B of 128", payload / 64, 8, 128, MPI_DOUBLE));
  shapes.push_back(loop("nest 16 x 8 B of 16", payload / 128, 1, 512, strided(16, 1, 16, MPI_DOUBLE)));
  shapes.push_back(array("structs of int, double", payload / 12, pair()));
  shapes.back().doubles = false;
  shapes.push_back(array("lists of 8 x 8 B", payload / 64, short_list()));
  return shapes;
}

}  // namespace spellings
