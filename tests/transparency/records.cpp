// SPDX-License-Identifier: Apache-2.0
#include "tests/transparency/records.hpp"

#include <cstddef>

namespace bestride::test {
namespace {

Record record(int index) { return {index, index * 0.5, static_cast<char>(index)}; }

/// Sends with one type, receives with the other.
void exchange(MPI_Datatype sent_as, MPI_Datatype received_as, int count, MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const int peer = 1 - rank;
  const std::vector<Record> out = records(count, rank);
  std::vector<Record> in(static_cast<std::size_t>(count));
  MPI_Request send;
  MPI_Status status;
  CHECK_EQUAL(MPI_SUCCESS, MPI_Isend(out.data(), count, sent_as, peer, count % 1000, comm, &send));
  CHECK_EQUAL(MPI_SUCCESS, error_class(MPI_Recv(in.data(), count, received_as, peer, count % 1000, comm, &status)));
  CHECK_EQUAL(MPI_SUCCESS, MPI_Wait(&send, MPI_STATUS_IGNORE));
  int received = -1;
  MPI_Get_count(&status, received_as, &received);
  CHECK_EQUAL(count, received);
  CHECK_EQUAL(0, wrong_records(in.data(), count, peer));
}

}  // namespace

MPI_Datatype make_record_type(MPI_Datatype integer, MPI_Datatype real) {
  const int lengths[] = {1, 1, 1};
  const MPI_Aint places[] = {offsetof(Record, number), offsetof(Record, value), offsetof(Record, letter)};
  const MPI_Datatype members[] = {integer, real, MPI_CHAR};
  MPI_Datatype tight, type;
  MPI_Type_create_struct(3, lengths, places, members, &tight);
  MPI_Type_create_resized(tight, 0, sizeof(Record), &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&tight);
  return type;
}

std::vector<Record> records(int count, int first) {
  std::vector<Record> all(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) all[static_cast<std::size_t>(i)] = record(first + i);
  return all;
}

int wrong_records(const Record* got, int count, int first) {
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    const Record expected = record(first + i);
    wrong += got[i].number != expected.number || got[i].value != expected.value || got[i].letter != expected.letter;
  }
  return wrong;
}

void check_record_type(MPI_Datatype type, MPI_Comm comm) {
  const ReturnErrors returned(comm);
  MPI_Datatype own = make_record_type();
  for (const int count : record_counts) {
    exchange(own, type, count, comm);
    exchange(type, own, count, comm);
  }
  MPI_Type_free(&own);
  check_record_type_alone(type);
}

void check_record_type_alone(MPI_Datatype type) {
  const ReturnErrors returned(MPI_COMM_SELF);
  for (const int count : record_counts) {
    const std::vector<Record> out = records(count, 3);
    std::vector<Record> unpacked(out.size()), received(out.size());
    std::vector<char> packed(out.size() * 13);
    int position = 0;
    CHECK_EQUAL(MPI_SUCCESS, MPI_Pack(out.data(), count, type, packed.data(), static_cast<int>(packed.size()),
                                      &position, MPI_COMM_SELF));
    CHECK_EQUAL(static_cast<int>(packed.size()), position);
    position = 0;
    CHECK_EQUAL(MPI_SUCCESS, MPI_Unpack(packed.data(), static_cast<int>(packed.size()), &position, unpacked.data(),
                                        count, type, MPI_COMM_SELF));
    CHECK_EQUAL(0, wrong_records(unpacked.data(), count, 3));
    MPI_Request send;
    MPI_Isend(out.data(), count, type, 0, 0, MPI_COMM_SELF, &send);
    CHECK_EQUAL(MPI_SUCCESS,
                error_class(MPI_Recv(received.data(), count, type, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE)));
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    CHECK_EQUAL(0, wrong_records(received.data(), count, 3));
  }
}

}  // namespace bestride::test
