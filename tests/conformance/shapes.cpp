// SPDX-License-Identifier: Apache-2.0
// Datatypes that have broken datatype engines: each one is packed, unpacked and sent around the ring.
#include <cstring>

#include "tests/support/typed_data.hpp"

using namespace bestride::test;

namespace {

struct Options {
  int count = 1;
  std::size_t misaligned = 0;  ///< offset of the buffer from a cache line, in bytes
  int position = 0;            ///< bytes before it in the packed buffer
  bool receive = true;         ///< false: elements overlap, for sending only
};

void pack_and_unpack(const TypeExpression& type, const Options& options) {
  TypedData data(type, options.count, 5, options.misaligned);
  const Bytes expected = data.packed();
  int size = -1;
  MPI_Pack_size(data.count(), data.type(), MPI_COMM_WORLD, &size);
  CHECK(size >= static_cast<int>(expected.size()));
  const std::size_t before = static_cast<std::size_t>(options.position);
  Bytes packed = noise(before + expected.size() + 64, 6);
  Bytes whole = packed;
  if (!expected.empty()) std::memcpy(whole.data() + before, expected.data(), expected.size());
  int position = options.position;
  MPI_Pack(data.address(), data.count(), data.type(), packed.data(), static_cast<int>(before + expected.size()),
           &position, MPI_COMM_WORLD);
  CHECK_EQUAL(options.position + static_cast<int>(expected.size()), position);
  if (const auto wrong = difference(whole, packed)) fail_check(__FILE__, __LINE__, "packed " + *wrong);
  data.expect_untouched();
  // MPICH before 4.1 divides by zero in MPI_Unpack of a type without bytes.
  if (!options.receive || expected.empty()) return;
  TypedData other(type, options.count, 7, options.misaligned);
  position = options.position;
  MPI_Unpack(whole.data(), static_cast<int>(whole.size()), &position, other.address(), other.count(), other.type(),
             MPI_COMM_WORLD);
  CHECK_EQUAL(options.position + static_cast<int>(expected.size()), position);
  other.expect(expected);
}

void send_round(const TypeExpression& type, const Options& options) {
  const Ring ring;
  TypedData out(type, options.count, 1000 + static_cast<std::uint64_t>(ring.rank), options.misaligned);
  const Bytes expected = TypedData(type, options.count, 1000 + static_cast<std::uint64_t>(ring.previous)).packed();
  MPI_Status status;
  if (options.receive) {
    TypedData in(type, options.count, 77, options.misaligned);
    MPI_Sendrecv(out.address(), out.count(), out.type(), ring.next, 3, in.address(), in.count(), in.type(),
                 ring.previous, 3, MPI_COMM_WORLD, &status);
    check_status(status, ring.previous, 3, in.type(), expected.empty() ? 0 : options.count);
    in.expect(expected);
  } else {
    Bytes in(expected.size());
    MPI_Sendrecv(out.address(), out.count(), out.type(), ring.next, 3, in.data(), static_cast<int>(in.size()),
                 MPI_PACKED, ring.previous, 3, MPI_COMM_WORLD, &status);
    if (const auto wrong = difference(expected, in)) fail_check(__FILE__, __LINE__, "received " + *wrong);
  }
  out.expect_untouched();
}

void shape(const char* text, Options options = {}) {
  const TypeExpression type = type_from(text);
  pack_and_unpack(type, options);
  send_round(type, options);
}

}  // namespace

#define SHAPE(name, ...) \
  MPI_CASE(name) { shape(__VA_ARGS__); }

SHAPE(vector_of_bytes, "vector(64,8,512,byte)")
SHAPE(face_x_radius_1, "subarray([8,8,8],[8,8,1],[0,0,7],c,double)")
SHAPE(face_y_radius_1, "subarray([8,8,8],[8,1,8],[0,7,0],c,double)")
SHAPE(face_z_radius_1, "subarray([8,8,8],[1,8,8],[7,0,0],c,double)")
SHAPE(face_x_radius_2, "subarray([12,12,12],[8,8,2],[2,2,8],c,double)")
SHAPE(face_y_radius_2, "subarray([12,12,12],[8,2,8],[2,8,2],c,double)")
SHAPE(face_z_radius_2, "subarray([12,12,12],[2,8,8],[8,2,2],c,double)")
SHAPE(face_x_radius_3, "subarray([22,22,22],[16,16,3],[3,3,16],c,float)")
SHAPE(face_y_radius_3, "subarray([22,22,22],[16,3,16],[3,16,3],c,float)")
SHAPE(face_z_radius_3, "subarray([22,22,22],[3,16,16],[16,3,3],c,float)")
SHAPE(edge_and_corner,
      "struct([1,1],[0,4096],[subarray([8,8,8],[8,1,1],[0,7,0],c,double),subarray([8,8,8],[1,1,1],[7,7,7],c,double)])")
SHAPE(fortran_order, "subarray([8,9,10],[8,2,10],[0,7,0],fortran,double)")
SHAPE(part_of_a_row, "subarray([5,7],[1,4],[3,2],c,int)")
SHAPE(row_part_counted, "subarray([100],[10],[5],c,byte)", {.count = 3})
SHAPE(transpose, "hvector(6,1,4,vector(4,1,6,int))")
SHAPE(transpose_of_complex, "contiguous(64,resized(0,16,vector(64,1,64,double_complex)))")
SHAPE(block_8_stride_13, "vector(4,8,13,byte)")
SHAPE(base_misaligned, "vector(64,1,3,double)", {.misaligned = 1})
SHAPE(base_misaligned_long_blocks, "vector(40,100,130,byte)", {.misaligned = 31})
SHAPE(position_1, "vector(64,1,3,double)", {.position = 1})
SHAPE(count_0, "vector(64,1,3,double)", {.count = 0})
SHAPE(count_70000, "resized(0,8,vector(2,1,2,byte))", {.count = 70000})
SHAPE(named_float, "float", {.count = 1000})
SHAPE(indexed_blocks, "indexed([3,1,4,1,5,9],[0,7,11,40,50,100],float)", {.count = 3})
SHAPE(indexed_backwards, "indexed_block(2,[40,30,20,10,0],double)")
SHAPE(hindexed_unaligned, "hindexed([1,2,3],[1,14,39],int)")
SHAPE(resized_larger, "resized(-8,64,vector(3,1,2,double))", {.count = 5})
SHAPE(resized_smaller, "resized(0,8,vector(8,1,2,double))", {.count = 8, .receive = false})
SHAPE(resized_interleaved, "resized(0,8,vector(8,1,8,double))", {.count = 8})
SHAPE(duplicate, "dup(vector(9,2,5,short))", {.count = 2})
SHAPE(pair_double_int, "double_int", {.count = 9})
SHAPE(pair_short_int, "vector(3,1,2,short_int)", {.count = 2})
SHAPE(pair_float_int, "contiguous(5,float_int)", {.count = 2})
SHAPE(pair_long_int, "vector(4,2,3,long_int)")
SHAPE(negative_stride, "vector(9,2,-5,int)")
SHAPE(negative_lower_bound, "hindexed([2,2],[-64,-16],double)", {.count = 3})
SHAPE(negative_extent, "resized(0,-16,contiguous(3,int))", {.count = 4})
SHAPE(zero_count_type, "contiguous(0,int)", {.count = 4})
SHAPE(zero_block_length, "vector(5,0,3,int)", {.count = 2})
SHAPE(some_zero_blocks, "indexed([0,2,0,1,0],[9,1,5,7,3],int)", {.count = 2})
SHAPE(four_dimensions_by_hvectors, "contiguous(3,hvector(2,1,2048,hvector(3,1,512,vector(4,1,3,double))))")
SHAPE(four_dimensions, "subarray([6,7,8,9],[2,3,4,5],[1,2,3,4],c,float)")
SHAPE(array_of_structs, "resized(0,40,struct([1,1,3],[0,8,17],[double,int,char]))", {.count = 100})
SHAPE(struct_of_arrays, "struct([16,32,64],[0,256,1024],[double,int,char])")
SHAPE(struct_with_an_empty_part, "struct([1,1],[8,0],[contiguous(0,int),double])", {.count = 0})
SHAPE(deep_nest,
      "dup(contiguous(1,dup(hvector(2,1,900,dup(vector(3,1,2,dup(contiguous(2,dup(vector(2,1,3,int))))))))))")
SHAPE(darray_block_cyclic, "darray(4,2,[17,9],[cyclic,block],[3,dflt],[2,2],c,double)")
SHAPE(darray_fortran, "darray(6,5,[7,8,9],[block,none,cyclic],[dflt,dflt,2],[2,1,3],fortran,int)")
SHAPE(long_blocks, "vector(8,40000,50000,byte)")
SHAPE(strided_8_bytes, "vector(2,4,8,byte)")
SHAPE(strided_12_bytes, "vector(3,4,8,byte)")
SHAPE(strided_24_bytes, "vector(3,8,24,byte)")
SHAPE(strided_8_mib, "vector(131072,8,16,double)")

int main(int argc, char** argv) { return run_cases(argc, argv); }
