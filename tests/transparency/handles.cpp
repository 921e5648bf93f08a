// SPDX-License-Identifier: Apache-2.0
// A datatype still describes the same data after its handle is inspected, duplicated or committed again, and after a
// failed MPI_Type_free. Two ranks.
#include <string>

#include "tests/transparency/records.hpp"
#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

/// The only datatype that MPI_Type_get_contents returns for `outer`. The caller frees it.
MPI_Datatype inner_of(MPI_Datatype outer) {
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  MPI_Type_get_envelope(outer, &integers, &addresses, &types, &combiner);
  std::vector<int> all_integers(static_cast<std::size_t>(integers) + 1);
  std::vector<MPI_Aint> all_addresses(static_cast<std::size_t>(addresses) + 1);
  MPI_Datatype inner = MPI_DATATYPE_NULL;
  CHECK_EQUAL(1, types);
  MPI_Type_get_contents(outer, integers, addresses, types, all_integers.data(), all_addresses.data(), &inner);
  return inner;
}

MPI_Datatype contiguous(int count, MPI_Datatype type) {
  MPI_Datatype made;
  MPI_Type_contiguous(count, type, &made);
  MPI_Type_commit(&made);
  return made;
}

}  // namespace

MPI_CASE(contents_handle_freed) {
  MPI_Datatype type = make_record_type(), outer = contiguous(3, type), inner = inner_of(outer);
  MPI_Type_free(&inner);
  check_record_type(type);
  MPI_Type_free(&outer);
  check_record_type(type);
  MPI_Type_free(&type);
}

MPI_CASE(contents_handle_freed_on_one_rank) {
  MPI_Datatype type = make_record_type(), outer = contiguous(3, type);
  if (world_rank() == 1) {
    MPI_Datatype inner = inner_of(outer);
    MPI_Type_free(&inner);
  }
  check_record_type(type);
  MPI_Type_free(&outer);
  MPI_Type_free(&type);
}

MPI_CASE(contents_handle_freed_after_the_outer_type) {
  MPI_Datatype type = make_record_type(), outer = contiguous(3, type), inner = inner_of(outer);
  MPI_Type_free(&outer);
  check_record_type(type);
  MPI_Type_free(&inner);
  check_record_type(type);
  MPI_Type_free(&type);
}

MPI_CASE(contents_handle_freed_several_times) {
  MPI_Datatype type = make_record_type(), outer = contiguous(3, type);
  for (int i = 0; i < 3; ++i) {
    MPI_Datatype first = inner_of(outer), second = inner_of(outer);
    MPI_Type_free(&first);
    MPI_Type_free(&second);
    check_record_type(type);
  }
  MPI_Type_free(&outer);
  MPI_Type_free(&type);
}

MPI_CASE(contents_handle_used_after_the_application_freed_the_type) {
  MPI_Datatype type = make_record_type(), outer = contiguous(3, type), inner = inner_of(outer);
  MPI_Type_free(&type);
  MPI_Type_commit(&inner);
  check_record_type(inner);
  MPI_Type_free(&outer);
  check_record_type(inner);
  MPI_Type_free(&inner);
}

MPI_CASE(contents_handle_freed_after_the_applications) {
  MPI_Datatype type = make_record_type(), outer = contiguous(1, type), inner = inner_of(outer);
  MPI_Type_free(&type);
  MPI_Type_free(&inner);
  check_record_type(outer);
  MPI_Type_free(&outer);
}

MPI_CASE(contents_before_the_commit) {
  // MPI_Type_get_contents returns one more handle to the inner type, of which MPI_Type_commit cannot know.
  MPI_Datatype committed = make_record_type(), type, outer;
  MPI_Type_dup(committed, &type);
  MPI_Type_free(&committed);
  MPI_Datatype uncommitted;
  MPI_Type_create_resized(type, 0, sizeof(Record), &uncommitted);
  MPI_Type_contiguous(2, uncommitted, &outer);
  MPI_Datatype inner = inner_of(outer), again = inner_of(outer);
  MPI_Type_free(&again);
  MPI_Type_commit(&uncommitted);
  MPI_Type_free(&uncommitted);
  check_record_type(inner);
  MPI_Type_free(&outer);
  check_record_type(inner);
  MPI_Type_free(&inner);
  MPI_Type_free(&type);
}

MPI_CASE(committed_by_a_contents_handle) {
  MPI_Datatype committed = make_record_type(), type, outer;
  MPI_Type_create_resized(committed, 0, sizeof(Record), &type);
  MPI_Type_contiguous(2, type, &outer);
  MPI_Type_free(&type);
  MPI_Datatype inner = inner_of(outer);
  MPI_Type_commit(&inner);
  check_record_type(inner);
  MPI_Type_free(&inner);
  inner = inner_of(outer);
  check_record_type(inner);
  MPI_Type_free(&outer);
  check_record_type(inner);
  MPI_Type_free(&inner);
  // Other types, which may get the same handle value: of two records, of one.
  constexpr int pairs = 1000;
  const int peer = 1 - world_rank();
  const std::vector<Record> out = records(2 * pairs, world_rank());
  for (int i = 0; i < 20; ++i) {
    MPI_Datatype other;
    MPI_Type_contiguous(2, committed, &other);
    MPI_Type_commit(&other);
    std::vector<Record> in(out.size());
    MPI_Sendrecv(out.data(), pairs, other, peer, 0, in.data(), pairs, other, peer, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    CHECK_EQUAL(0, wrong_records(in.data(), 2 * pairs, peer));
    MPI_Type_free(&other);
    MPI_Type_create_resized(committed, 0, sizeof(Record), &other);
    MPI_Type_commit(&other);
    check_record_type_alone(other);
    MPI_Type_free(&other);
  }
  MPI_Type_free(&committed);
}

MPI_CASE(contents_after_all_handles_were_freed) {
  MPI_Datatype type = make_record_type(), outer = contiguous(3, type);
  MPI_Type_free(&type);
  MPI_Datatype inner = inner_of(outer);
  check_record_type(inner);
  MPI_Type_free(&outer);
  check_record_type(inner);
  MPI_Type_free(&inner);
}

MPI_CASE(contents_of_contents_freed) {
  MPI_Datatype type = make_record_type(), middle = contiguous(2, type), outer = contiguous(2, middle);
  MPI_Datatype middle_again = inner_of(outer), type_again = inner_of(middle_again);
  MPI_Type_free(&type_again);
  check_record_type(type);
  MPI_Type_free(&middle_again);
  check_record_type(type);
  MPI_Type_free(&outer);
  MPI_Type_free(&middle);
  check_record_type(type);
  MPI_Type_free(&type);
}

MPI_CASE(contents_of_a_struct_freed) {
  // The same type is contained twice: the contents have two handles of equal value, and both must be freed.
  MPI_Datatype type = make_record_type(), outer;
  const int lengths[] = {1, 1, 2};
  const MPI_Aint places[] = {0, sizeof(Record), 2 * sizeof(Record)};
  const MPI_Datatype members[] = {type, MPI_INT, type};
  MPI_Type_create_struct(3, lengths, places, members, &outer);
  MPI_Type_commit(&outer);
  int integers[4];
  MPI_Aint addresses[3];
  MPI_Datatype types[3];
  MPI_Type_get_contents(outer, 4, 3, 3, integers, addresses, types);
  MPI_Type_free(&types[0]);
  check_record_type(type);
  MPI_Type_free(&types[2]);
  check_record_type(type);
  MPI_Type_free(&outer);
  MPI_Type_free(&type);
}

MPI_CASE(contents_of_a_dup_freed) {
  MPI_Datatype type = make_record_type(), duplicate;
  MPI_Type_dup(type, &duplicate);
  MPI_Datatype inner = inner_of(duplicate);
  MPI_Type_free(&inner);
  check_record_type(type);
  check_record_type(duplicate);
  MPI_Type_free(&type);
  check_record_type(duplicate);
  MPI_Type_free(&duplicate);
}

MPI_CASE(dup_of_a_predefined_type) {
  MPI_Datatype integer, real;
  MPI_Type_dup(MPI_INT, &integer);
  MPI_Type_dup(MPI_DOUBLE, &real);
  MPI_Datatype type = make_record_type(integer, real);
  MPI_Type_free(&integer);
  check_record_type(type);
  MPI_Type_free(&real);
  check_record_type(type);
  MPI_Type_free(&type);
}

MPI_CASE(dup_of_a_pair_type) {
  MPI_Datatype pair;
  MPI_Type_dup(MPI_DOUBLE_INT, &pair);
  MPI_Datatype types[] = {pair, MPI_DOUBLE_INT};
  const int peer = 1 - world_rank();
  struct Pair {
    double value;
    int index;
  };
  for (int round = 0; round < 2; ++round) {
    for (const int count : record_counts) {
      std::vector<Pair> out(static_cast<std::size_t>(count)), in(out.size());
      for (int i = 0; i < count; ++i) out[static_cast<std::size_t>(i)] = {i * 0.5, i + world_rank()};
      MPI_Request send;
      MPI_Isend(out.data(), count, types[1], peer, 0, MPI_COMM_WORLD, &send);
      MPI_Recv(in.data(), count, types[round], peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Wait(&send, MPI_STATUS_IGNORE);
      int wrong = 0;
      for (int i = 0; i < count; ++i) wrong += in[static_cast<std::size_t>(i)].index != i + peer;
      CHECK_EQUAL(0, wrong);
    }
    if (round == 0) MPI_Type_free(&pair);
  }
}

MPI_CASE(uncommitted_dup_is_committed) {
  MPI_Datatype type = make_record_type(), chars, duplicate;
  // A dup of an uncommitted type is not committed.
  MPI_Type_contiguous(1, type, &chars);
  MPI_Type_dup(chars, &duplicate);
  MPI_Type_commit(&duplicate);
  MPI_Type_free(&chars);
  check_record_type(duplicate);
  MPI_Type_free(&type);
  check_record_type(duplicate);
  MPI_Type_free(&duplicate);
}

MPI_CASE(committed_again) {
  MPI_Datatype type = make_record_type();
  for (int i = 0; i < 5; ++i) {
    check_record_type(type);
    MPI_Type_commit(&type);
  }
  MPI_Request requests[2];
  const int count = 100000, peer = 1 - world_rank();
  std::vector<Record> in(count), out = records(count, world_rank());
  MPI_Irecv(in.data(), count, type, peer, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Type_commit(&type);
  MPI_Isend(out.data(), count, type, peer, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Type_commit(&type);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK_EQUAL(0, wrong_records(in.data(), count, peer));
  MPI_Type_free(&type);
}

MPI_CASE(types_by_precision) {
  MPI_Datatype integer, real;
  MPI_Type_create_f90_integer(9, &integer);
  MPI_Type_create_f90_real(15, 307, &real);
  MPI_Datatype type = make_record_type(integer, real);
  check_record_type(type);
  // The types are predefined, so they are not freed. The same arguments return the same types.
  MPI_Datatype again;
  MPI_Type_create_f90_real(15, 307, &again);
  CHECK(again == real);
  const int peer = 1 - world_rank(), count = 200000;
  std::vector<double> out(count, 2.5), in(count);
  MPI_Request send;
  MPI_Isend(out.data(), count, real, peer, 0, MPI_COMM_WORLD, &send);
  MPI_Recv(in.data(), count, real, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  CHECK(in == out);
  MPI_Type_free(&type);
}

MPI_CASE(a_thousand_levels) {
  MPI_Datatype deep = make_record_type(), type;
  for (int level = 0; level < 1005; ++level, deep = type) {
    MPI_Type_contiguous(1, deep, &type);
    MPI_Type_free(&deep);
  }
  MPI_Type_commit(&deep);
  check_record_type(deep);
  MPI_Type_free(&deep);
}

MPI_CASE(twenty_thousand_levels) {
  MPI_Datatype deep = make_record_type(), type;
  for (int level = 0; level < 20000; ++level, deep = type) {
    MPI_Type_contiguous(1, deep, &type);
    MPI_Type_free(&deep);
  }
  MPI_Type_commit(&deep);
  check_record_type(deep);
  MPI_Type_free(&deep);
}

MPI_CASE(deep_on_one_rank) {
  MPI_Datatype deep = make_record_type(), type;
  for (int level = 0; world_rank() == 1 && level < 1005; ++level, deep = type) {
    MPI_Type_contiguous(1, deep, &type);
    MPI_Type_free(&deep);
  }
  MPI_Type_commit(&deep);
  check_record_type(deep);
  MPI_Type_free(&deep);
}

int main(int argc, char** argv) { return run_watched_cases(argc, argv); }
