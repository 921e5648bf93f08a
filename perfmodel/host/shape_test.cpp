// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/host/shape.hpp"

#include <gtest/gtest.h>

#include "datatype/build.hpp"
#include "datatype/expression.hpp"

namespace bestride::inline perfmodel {
namespace {

Shape shape_of(const char* type, const TypeRepresentation& spelling = {}) {
  auto parsed = parse_type(type);
  EXPECT_TRUE(parsed) << parsed.error().text;
  auto evaluated = evaluate(*parsed);
  EXPECT_TRUE(evaluated) << evaluated.error().text;
  return Shape::of(*intern(evaluated->bytes), spelling);
}

TEST(Shape, NamesTheClasses) {
  using enum Shape::Class;
  EXPECT_EQ(shape_of("contiguous(100,double)").kind, contiguous);
  EXPECT_EQ(shape_of("vector(100,1,2,double)").kind, vector);
  EXPECT_EQ(shape_of("subarray([32,32,32],[30,30,1],[1,1,1],c,double)").kind, nest);
  EXPECT_EQ(shape_of("contiguous(100,resized(0,40,struct([1,1,3],[0,12,20],[int,char,float])))").kind, record);
  EXPECT_EQ(shape_of("indexed_block(1,[0,2,7,9,14,20,31,33,40,49,50,62,70,81,95],double)").kind, list);
  EXPECT_EQ(shape_of("struct([1,1],[0,100000],[vector(100,1,2,double),vector(200,1,3,double)])").kind, nest)
      << "two adjacent vectors cost as much as loops, not as lists";
}

TEST(Shape, CountsAndLengths) {
  const Shape vector = shape_of("vector(100,3,8,double)");
  EXPECT_EQ(vector.bytes, 2400);
  EXPECT_EQ(vector.blocks, 100);
  EXPECT_EQ(vector.block_bytes, 24);
  EXPECT_EQ(vector.inner_count, 100);
  EXPECT_EQ(vector.outer_count, 100);
  EXPECT_EQ(vector.jump, 64);
  EXPECT_EQ(vector.footprint, 99 * 64 + 24);
  EXPECT_EQ(vector.unit_bytes, 2400);

  const Shape face = shape_of("subarray([64,64,64],[62,62,1],[1,1,1],c,double)");
  EXPECT_EQ(face.loops, 2);
  EXPECT_EQ(face.inner_count, 62);
  EXPECT_EQ(face.outer_count, 62);
  EXPECT_NEAR(static_cast<double>(face.jump), 512, 16);
}

TEST(Shape, JumpIsTheGeometricMean) {
  const Shape list = shape_of("indexed_block(1,[0,8,1,9,3,11,4,12,2,10,30],double)");
  EXPECT_EQ(list.kind, Shape::Class::list);
  EXPECT_NEAR(static_cast<double>(list.jump), 64, 8) << "steps of 7, 8 and one of 20 doubles, forth and back";
  EXPECT_EQ(shape_of("hvector(50,1,-256,double)").jump, 256);
  EXPECT_EQ(shape_of("hvector(50,1,0,double)").jump, 1) << "overlapping blocks: no distance at all";
}

TEST(Shape, KeepsTheTypesStructure) {
  const Shape shape = shape_of("vector(100,1,2,int)", {.unit_bytes = 4, .leaf = TypeRepresentation::leaf_of(4)});
  EXPECT_EQ(shape.unit_bytes, 4);
  EXPECT_EQ(shape.leaf, Leaf::four);
  EXPECT_EQ(TypeRepresentation::leaf_of(0), Leaf::mixed);
  EXPECT_EQ(TypeRepresentation::leaf_of(1), Leaf::four);
  EXPECT_EQ(TypeRepresentation::leaf_of(16), Leaf::eight);
}

TEST(Shape, UnitIsTheInnermostLoopAsSpelled) {
  const auto unit_of = [](const char* type) { return evaluate(*parse_type(type))->unit_bytes; };
  EXPECT_EQ(unit_of("vector(100,3,8,double)"), 2400);
  EXPECT_EQ(unit_of("contiguous(100,resized(0,16,double))"), 800);
  EXPECT_EQ(unit_of("resized(0,16,double)"), 8) << "the loop is the count of the call";
  EXPECT_EQ(unit_of("subarray([64,64,64],[64,64,1],[0,0,1],c,double)"), 512)
      << "one loop in the layout, rows in the spelling";
  EXPECT_EQ(unit_of("subarray([64,64,64],[64,64,1],[0,0,1],fortran,double)"), 32768) << "one block";
  EXPECT_EQ(unit_of("hvector(10,1,4096,vector(100,1,2,double))"), 800);
  EXPECT_EQ(unit_of("vector(10,3,100,resized(0,16,double))"), 24);
  EXPECT_EQ(unit_of("indexed_block(1,[0,2,4,6],double)"), 32) << "a list, even if it is regular";
  EXPECT_EQ(unit_of("contiguous(50,resized(0,40,struct([1,1],[0,16],[double,int])))"), 12);
  EXPECT_EQ(unit_of("struct([1,1],[0,100000],[vector(100,1,2,double),vector(200,1,3,double)])"), 1600);
}

TEST(Shape, Empty) {
  const Shape shape = Shape::of(Layout(0, nullptr));
  EXPECT_EQ(shape.bytes, 0);
  EXPECT_EQ(shape.kind, Shape::Class::contiguous);
}

}  // namespace
}  // namespace bestride::inline perfmodel
