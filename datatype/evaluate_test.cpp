// SPDX-License-Identifier: Apache-2.0
// Type maps and bounds computed by hand. tests/fuzz compares random types with the MPI library's results.
#include <gtest/gtest.h>

#include <utility>

#include "datatype/expression.hpp"

namespace bestride::inline datatype {
namespace {

using Runs = std::vector<std::pair<std::int64_t, std::int64_t>>;

struct Flat {
  Runs runs;  ///< (offset, length), adjacent runs merged
  std::int64_t lower = 0, extent = 0;
  std::string error;
};

Flat flat(std::string_view text) {
  const auto parsed = parse_type(text);
  if (!parsed) return {{}, 0, 0, parsed.error().text};
  const auto type = evaluate(*parsed);
  if (!type) return {{}, 0, 0, type.error().text};
  Flat result{{}, type->lower_bound, type->extent, ""};
  if (type->bytes.node)
    for_each_block(*type->bytes.node, type->bytes.offset, [&](std::int64_t offset, std::int64_t length) {
      if (!result.runs.empty() && result.runs.back().first + result.runs.back().second == offset)
        result.runs.back().second += length;
      else
        result.runs.emplace_back(offset, length);
      return true;
    });
  return result;
}

void expect(std::string_view text, const Runs& runs, std::int64_t lower, std::int64_t extent) {
  const Flat found = flat(text);
  EXPECT_EQ(found.error, "") << text;
  EXPECT_EQ(found.runs, runs) << text;
  EXPECT_EQ(found.lower, lower) << text;
  EXPECT_EQ(found.extent, extent) << text;
}

TEST(Evaluate, PredefinedTypes) {
  expect("double", {{0, 8}}, 0, 8);
  expect("double_int", {{0, 12}}, 0, 16);
  expect("short_int", {{0, 2}, {4, 4}}, 0, 8);
  expect("contiguous(2,double_int)", {{0, 12}, {16, 12}}, 0, 32);
}

TEST(Evaluate, Vectors) {
  expect("vector(3,2,4,int)", {{0, 8}, {16, 8}, {32, 8}}, 0, 40);
  expect("vector(3,1,-2,int)", {{0, 4}, {-8, 4}, {-16, 4}}, -16, 20);
  expect("hvector(2,1,13,vector(4,1,2,byte))", {{0, 1}, {2, 1}, {4, 1}, {6, 1}, {13, 1}, {15, 1}, {17, 1}, {19, 1}}, 0,
         20);
  expect("hvector(3,1,0,int)", {{0, 4}, {0, 4}, {0, 4}}, 0, 4);
  expect("contiguous(0,int)", {}, 0, 0);
  expect("vector(0,3,4,int)", {}, 0, 0);
}

TEST(Evaluate, Indexed) {
  expect("indexed([2,0,1],[3,9,-1],int)", {{12, 8}, {-4, 4}}, -4, 24);
  expect("hindexed([2,1],[3,20],short)", {{3, 4}, {20, 2}}, 3, 19);
  expect("indexed_block(2,[4,0],int)", {{16, 8}, {0, 8}}, 0, 24);
  expect("hindexed_block(1,[5,1],byte)", {{5, 1}, {1, 1}}, 1, 5);
  expect("indexed([0,0],[3,9],int)", {}, 0, 0);
}

TEST(Evaluate, StructsArePaddedToTheirAlignment) {
  expect("struct([1,1],[0,8],[double,char])", {{0, 9}}, 0, 16);
  expect("struct([1,1],[3,11],[double,char])", {{3, 9}}, 3, 16);
  expect("struct([1,0],[0,99],[char,double])", {{0, 1}}, 0, 1);
  expect("struct([1,2],[0,5],[int,int])", {{0, 4}, {5, 8}}, 0, 13);
  // A struct of one basic type is not padded. An array of one element, taken whole, is that element; a part of a larger
  // array is not.
  expect("struct([1,1],[0,1],[subarray([1],[1],[0],c,int),unsigned])", {{0, 4}, {1, 4}}, 0, 5);
  expect("struct([1,1],[0,1],[subarray([2],[1],[0],c,int),unsigned])", {{0, 4}, {1, 4}}, 0, 8);
  expect("struct([],[],[])", {}, 0, 0);
}

TEST(Evaluate, Resized) {
  expect("contiguous(3,resized(-4,20,int))", {{0, 4}, {20, 4}, {40, 4}}, -4, 60);
  expect("contiguous(3,resized(0,-8,int))", {{0, 4}, {-8, 4}, {-16, 4}}, -16, 8);
  expect("contiguous(2,resized(0,2,int))", {{0, 4}, {2, 4}}, 0, 4);
}

TEST(Evaluate, Subarrays) {
  expect("subarray([4,6],[2,3],[1,2],c,int)", {{32, 12}, {56, 12}}, 0, 96);
  expect("subarray([4,6],[2,3],[1,2],fortran,int)", {{36, 8}, {52, 8}, {68, 8}}, 0, 96);
  expect("subarray([8,8,8],[1,8,8],[7,0,0],c,double)", {{3584, 512}}, 0, 4096);
  expect("contiguous(2,subarray([100],[10],[5],c,byte))", {{5, 10}, {105, 10}}, 0, 200);
}

TEST(Evaluate, Darrays) {
  expect("darray(3,0,[8],[block],[dflt],[3],c,byte)", {{0, 3}}, 0, 8);
  expect("darray(3,2,[8],[block],[dflt],[3],c,byte)", {{6, 2}}, 0, 8);
  expect("darray(5,4,[3],[block],[dflt],[5],c,byte)", {}, 0, 3);
  expect("darray(2,0,[9],[cyclic],[2],[2],c,byte)", {{0, 2}, {4, 2}, {8, 1}}, 0, 9);
  expect("darray(2,1,[9],[cyclic],[2],[2],c,byte)", {{2, 2}, {6, 2}}, 0, 9);
  // The process grid is numbered in C order, also for a Fortran array.
  expect("darray(4,1,[4,4],[block,block],[dflt,dflt],[2,2],fortran,byte)", {{8, 2}, {12, 2}}, 0, 16);
  expect("struct([1,1],[0,1],[darray(1,0,[1],[cyclic],[2],[1],c,float),float])", {{0, 4}, {1, 4}}, 0, 8);
  expect("struct([1,1],[0,1],[darray(1,0,[1],[cyclic],[1],[1],c,float),float])", {{0, 4}, {1, 4}}, 0, 5);
  expect("darray(2,1,[2,4],[none,block],[dflt,dflt],[1,2],c,byte)", {{2, 2}, {6, 2}}, 0, 8);
}

TEST(Evaluate, TransposeKeepsItsOrder) {
  expect("hvector(2,1,1,vector(3,1,2,byte))", {{0, 1}, {2, 1}, {4, 1}, {1, 1}, {3, 1}, {5, 1}}, 0, 6);
}

TEST(Evaluate, RejectsWhatMpiRejects) {
  for (const char* text :
       {"contiguous(-1,int)", "vector(1,-1,0,int)", "indexed([1],[0,1],int)", "indexed([-1],[0],int)",
        "subarray([4],[3],[2],c,int)", "subarray([4],[5],[0],c,int)", "subarray([],[],[],c,int)",
        "darray(4,4,[8],[block],[dflt],[4],c,int)", "darray(4,0,[8],[block],[1],[4],c,int)",
        "darray(4,0,[8],[block],[dflt],[2],c,int)", "darray(2,0,[8],[none],[dflt],[2],c,int)"})
    EXPECT_NE(flat(text).error, "") << text;
}

TEST(Evaluate, RejectsOverflow) {
  for (const char* text : {"hvector(3,1,9000000000000000000,int)", "contiguous(9000000000000000000,int)",
                           "contiguous(1G,contiguous(1G,contiguous(1G,int)))", "vector(1G,1,9000000000000000000,int)",
                           "resized(9000000000000000000,9000000000000000000,int)"})
    EXPECT_NE(flat(text).error, "") << text;
}

}  // namespace
}  // namespace bestride::inline datatype
