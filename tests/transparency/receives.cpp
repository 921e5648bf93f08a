// SPDX-License-Identifier: Apache-2.0
// Every receiving call, under both names and with both count types, receives the data of every sending call. Two
// ranks: rank 0 sends, rank 1 receives.
#include <algorithm>
#include <complex>

#include "tests/support/memory.hpp"
#include "tests/transparency/records.hpp"
#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

enum Sender { send, pmpi_send, isend, ssend, issend, send_init, ssend_init, send_c, sender_count };

/// Sends records from rank 0 and waits for completion. `answer`: the bytes that rank 1 sends meanwhile, -1 if none.
void send_records(Sender how, int count, MPI_Datatype type, int answer) {
  const std::vector<Record> out = records(count);
  std::vector<char> back(static_cast<std::size_t>(answer > 0 ? answer : 1));
  MPI_Request answered = MPI_REQUEST_NULL, request = MPI_REQUEST_NULL;
  // MPI_PACKED: MPICH 4.0.2 cannot receive more than one fragment of records from its own MPI_Sendrecv_replace.
  if (answer >= 0) MPI_Irecv(back.data(), answer, MPI_PACKED, 1, 1, MPI_COMM_WORLD, &answered);
  switch (how) {
    case send: MPI_Send(out.data(), count, type, 1, 0, MPI_COMM_WORLD); break;
    case pmpi_send: PMPI_Send(out.data(), count, type, 1, 0, MPI_COMM_WORLD); break;
    case isend: MPI_Isend(out.data(), count, type, 1, 0, MPI_COMM_WORLD, &request); break;
    case ssend: MPI_Ssend(out.data(), count, type, 1, 0, MPI_COMM_WORLD); break;
    case issend: MPI_Issend(out.data(), count, type, 1, 0, MPI_COMM_WORLD, &request); break;
    case send_init: MPI_Send_init(out.data(), count, type, 1, 0, MPI_COMM_WORLD, &request); break;
    case ssend_init: MPI_Ssend_init(out.data(), count, type, 1, 0, MPI_COMM_WORLD, &request); break;
    default: MPI_Send_c(out.data(), count, type, 1, 0, MPI_COMM_WORLD); break;
  }
  if (how == send_init || how == ssend_init) MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  MPI_Wait(&answered, MPI_STATUS_IGNORE);
}

struct Target {
  Record* at;
  int count;
  MPI_Datatype type;
  MPI_Status* status;
};

using Receiver = int (*)(const Target&);
enum class Answer { none, token, records };

/// Rank 0 sends records with each sending call; rank 1 receives them with `receiver`.
void receive_from_every_sender(Receiver receiver, Answer answer = Answer::none, bool has_status = true) {
  watch_for_hang();
  const ReturnErrors returned(MPI_COMM_WORLD);
  MPI_Datatype type = make_record_type();
  for (int how = 0; how < sender_count; ++how)
    for (const int count : record_counts) {
      if (world_rank() == 0) {
        send_records(static_cast<Sender>(how), count, type,
                     answer == Answer::none    ? -1
                     : answer == Answer::token ? 1
                                               : 13 * count);
      } else if (world_rank() == 1) {
        std::vector<Record> in(static_cast<std::size_t>(count));
        MPI_Status status;
        CHECK_EQUAL(MPI_SUCCESS, error_class(receiver({in.data(), count, type, &status})));
        CHECK_EQUAL(0, wrong_records(in.data(), count));
        if (!has_status) continue;
        int received = -1;
        MPI_Get_count(&status, type, &received);
        CHECK_EQUAL(count, received);
        CHECK_EQUAL(0, status.MPI_SOURCE);
      }
    }
  MPI_Type_free(&type);
}

int waited(int started, MPI_Request* request, MPI_Status* status) {
  return started ? started : MPI_Wait(request, status);
}

int started_and_waited(int made, MPI_Request* request, MPI_Status* status) {
  if (made) return made;
  MPI_Start(request);
  const int result = MPI_Wait(request, status);
  MPI_Request_free(request);
  return result;
}

char token = 1;

}  // namespace

// The cases of one family of names: MPI or PMPI, count type int or MPI_Count.
#define RECEIVERS(prefix, P, C)                                                                                       \
  int prefix##recv(const Target& p) { return P##_Recv##C(p.at, p.count, p.type, 0, 0, MPI_COMM_WORLD, p.status); }    \
  int prefix##irecv(const Target& p) {                                                                                \
    MPI_Request request;                                                                                              \
    return waited(P##_Irecv##C(p.at, p.count, p.type, 0, 0, MPI_COMM_WORLD, &request), &request, p.status);           \
  }                                                                                                                   \
  int prefix##recv_init(const Target& p) {                                                                            \
    MPI_Request request;                                                                                              \
    return started_and_waited(P##_Recv_init##C(p.at, p.count, p.type, 0, 0, MPI_COMM_WORLD, &request), &request,      \
                              p.status);                                                                              \
  }                                                                                                                   \
  int prefix##mrecv(const Target& p) {                                                                                \
    MPI_Message message;                                                                                              \
    P##_Mprobe(0, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);                                                    \
    return P##_Mrecv##C(p.at, p.count, p.type, &message, p.status);                                                   \
  }                                                                                                                   \
  int prefix##imrecv(const Target& p) {                                                                               \
    MPI_Message message;                                                                                              \
    MPI_Request request;                                                                                              \
    for (int found = 0; !found;)                                                                                      \
      P##_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &message, MPI_STATUS_IGNORE);                  \
    return waited(P##_Imrecv##C(p.at, p.count, p.type, &message, &request), &request, p.status);                      \
  }                                                                                                                   \
  int prefix##sendrecv(const Target& p) {                                                                             \
    return P##_Sendrecv##C(&token, 1, MPI_CHAR, 0, 1, p.at, p.count, p.type, 0, 0, MPI_COMM_WORLD, p.status);         \
  }                                                                                                                   \
  int prefix##sendrecv_replace(const Target& p) {                                                                     \
    return P##_Sendrecv_replace##C(p.at, p.count, p.type, 0, 1, 0, 0, MPI_COMM_WORLD, p.status);                      \
  }                                                                                                                   \
  int prefix##isendrecv(const Target& p) {                                                                            \
    /* MPICH 4.0.2 does not fill in the status of MPI_Isendrecv. */                                                   \
    MPI_Request request;                                                                                              \
    return waited(P##_Isendrecv##C(&token, 1, MPI_CHAR, 0, 1, p.at, p.count, p.type, 0, 0, MPI_COMM_WORLD, &request), \
                  &request, MPI_STATUS_IGNORE);                                                                       \
  }

namespace {
RECEIVERS(, MPI, )
RECEIVERS(c_, MPI, _c)
RECEIVERS(pmpi_, PMPI, )
RECEIVERS(pmpi_c_, PMPI, _c)
}  // namespace

MPI_CASE(by_recv) { receive_from_every_sender(recv); }
MPI_CASE(by_irecv) { receive_from_every_sender(irecv); }
MPI_CASE(by_recv_init) { receive_from_every_sender(recv_init); }
MPI_CASE(by_mrecv) { receive_from_every_sender(mrecv); }
MPI_CASE(by_imrecv) { receive_from_every_sender(imrecv); }
MPI_CASE(by_sendrecv) { receive_from_every_sender(sendrecv, Answer::token); }
MPI_CASE(by_sendrecv_replace) { receive_from_every_sender(sendrecv_replace, Answer::records); }
MPI_CASE(by_isendrecv) { receive_from_every_sender(isendrecv, Answer::token, false); }
MPI_CASE(by_recv_c) { receive_from_every_sender(c_recv); }
MPI_CASE(by_irecv_c) { receive_from_every_sender(c_irecv); }
MPI_CASE(by_recv_init_c) { receive_from_every_sender(c_recv_init); }
MPI_CASE(by_mrecv_c) { receive_from_every_sender(c_mrecv); }
MPI_CASE(by_imrecv_c) { receive_from_every_sender(c_imrecv); }
MPI_CASE(by_sendrecv_c) { receive_from_every_sender(c_sendrecv, Answer::token); }
MPI_CASE(by_sendrecv_replace_c) { receive_from_every_sender(c_sendrecv_replace, Answer::records); }
MPI_CASE(by_isendrecv_c) { receive_from_every_sender(c_isendrecv, Answer::token, false); }
MPI_CASE(by_pmpi_recv) { receive_from_every_sender(pmpi_recv); }
MPI_CASE(by_pmpi_irecv) { receive_from_every_sender(pmpi_irecv); }
MPI_CASE(by_pmpi_recv_init) { receive_from_every_sender(pmpi_recv_init); }
MPI_CASE(by_pmpi_mrecv) { receive_from_every_sender(pmpi_mrecv); }
MPI_CASE(by_pmpi_imrecv) { receive_from_every_sender(pmpi_imrecv); }
MPI_CASE(by_pmpi_sendrecv) { receive_from_every_sender(pmpi_sendrecv, Answer::token); }
MPI_CASE(by_pmpi_sendrecv_replace) { receive_from_every_sender(pmpi_sendrecv_replace, Answer::records); }
MPI_CASE(by_pmpi_isendrecv) { receive_from_every_sender(pmpi_isendrecv, Answer::token, false); }
MPI_CASE(by_pmpi_recv_c) { receive_from_every_sender(pmpi_c_recv); }
MPI_CASE(by_pmpi_irecv_c) { receive_from_every_sender(pmpi_c_irecv); }
MPI_CASE(by_pmpi_recv_init_c) { receive_from_every_sender(pmpi_c_recv_init); }
MPI_CASE(by_pmpi_mrecv_c) { receive_from_every_sender(pmpi_c_mrecv); }
MPI_CASE(by_pmpi_imrecv_c) { receive_from_every_sender(pmpi_c_imrecv); }
MPI_CASE(by_pmpi_sendrecv_c) { receive_from_every_sender(pmpi_c_sendrecv, Answer::token); }
MPI_CASE(by_pmpi_sendrecv_replace_c) { receive_from_every_sender(pmpi_c_sendrecv_replace, Answer::records); }
MPI_CASE(by_pmpi_isendrecv_c) { receive_from_every_sender(pmpi_c_isendrecv, Answer::token, false); }

namespace {

/// Receives 5000 records with a count that stands for 2.2 GB of packed data.
void receive_in_vast_room(Receiver receiver, Answer answer = Answer::none) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  constexpr int room = 170000000, count = 5000;
  MPI_Datatype type = make_record_type();
  if (world_rank() == 0) {
    send_records(send, count, type, answer == Answer::none ? -1 : 1);
  } else {
    VastSpace space(room * sizeof(Record));
    auto* const in = reinterpret_cast<Record*>(space.data());
    MPI_Status status;
    CHECK_EQUAL(MPI_SUCCESS, error_class(receiver({in, room, type, &status})));
    int received = -1;
    MPI_Get_count(&status, type, &received);
    CHECK_EQUAL(count, received);
    CHECK_EQUAL(0, wrong_records(in, count));
  }
  MPI_Type_free(&type);
}

}  // namespace

MPI_CASE(room_for_more_than_2_gib_by_recv) { receive_in_vast_room(recv); }
MPI_CASE(room_for_more_than_2_gib_by_irecv) { receive_in_vast_room(irecv); }
MPI_CASE(room_for_more_than_2_gib_by_recv_init) { receive_in_vast_room(recv_init); }
MPI_CASE(room_for_more_than_2_gib_by_mrecv) { receive_in_vast_room(mrecv); }
MPI_CASE(room_for_more_than_2_gib_by_imrecv) { receive_in_vast_room(imrecv); }
MPI_CASE(room_for_more_than_2_gib_by_sendrecv) { receive_in_vast_room(sendrecv, Answer::token); }
MPI_CASE(room_for_more_than_2_gib_by_recv_c) { receive_in_vast_room(c_recv); }

/// How UCX cuts a message of bytes depends on its settings. Each message is the first of its type on the receiver, so
/// the library unpacks it, and it can't unpack a part of an element.
MPI_CASE(new_types_of_16_byte_elements) {
  constexpr int blocks = 1000, rounds = 60;
  using Number = std::complex<double>;
  const auto type_of_round = [](int round) {
    std::vector<int> at;
    for (int i = 0; i < blocks; ++i) at.push_back(3 * i + (i * i + round) % 3);
    MPI_Datatype type;
    MPI_Type_create_indexed_block(blocks, 1, at.data(), MPI_C_DOUBLE_COMPLEX, &type);
    return type;
  };
  std::vector<Number> memory(3 * blocks, Number(1, 2));
  // A duplicate of an uncommitted type is not served by the engine. It is used so often that it is decoded.
  MPI_Datatype original = type_of_round(0), sent;
  MPI_Type_dup(original, &sent);
  MPI_Type_free(&original);
  MPI_Type_commit(&sent);
  for (int round = 0; round < rounds; ++round) {
    if (world_rank() == 0) {
      MPI_Send(memory.data(), 1, sent, 1, 0, MPI_COMM_WORLD);
    } else {
      std::fill(memory.begin(), memory.end(), Number(0));
      MPI_Datatype type = type_of_round(round);
      MPI_Type_commit(&type);
      CHECK_EQUAL(MPI_SUCCESS, error_class(MPI_Recv(memory.data(), 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)));
      CHECK_EQUAL(blocks, static_cast<int>(std::count(memory.begin(), memory.end(), Number(1, 2))));
      MPI_Type_free(&type);
    }
  }
  MPI_Type_free(&sent);
}

namespace {

/// `count` elements as one element of a type: next to each other, or with gaps.
MPI_Datatype type_of_elements(int count, MPI_Datatype element, bool gaps) {
  MPI_Datatype type;
  MPI_Type_vector(count, 1, gaps ? 2 : 1, element, &type);
  MPI_Type_commit(&type);
  return type;
}

/// Sends `count` elements from rank 0 to rank 1, which has room for `room`.
void move_elements(int count, int room, MPI_Datatype element, MPI_Aint size, bool gaps, bool synchronous) {
  std::vector<char> memory(static_cast<std::size_t>(2 * room * size));
  MPI_Datatype type = type_of_elements(world_rank() == 0 ? count : room, element, gaps);
  const MPI_Aint step = gaps ? 2 * size : size;
  if (world_rank() == 0) {
    for (int i = 0; i < count; ++i) std::fill_n(memory.begin() + i * step, size, static_cast<char>(i % 100 + 1));
    (synchronous ? MPI_Ssend : MPI_Send)(memory.data(), 1, type, 1, 0, MPI_COMM_WORLD);
  } else {
    MPI_Status status;
    CHECK_EQUAL(MPI_SUCCESS, error_class(MPI_Recv(memory.data(), 1, type, 0, 0, MPI_COMM_WORLD, &status)));
    int received = 0, wrong = 0;
    MPI_Get_elements(&status, element, &received);
    CHECK_EQUAL(count, received);
    for (int i = 0; i < count; ++i)
      wrong += std::count(memory.begin() + i * step, memory.begin() + i * step + size, i % 100 + 1) != size;
    CHECK_EQUAL(0, wrong);
  }
  MPI_Type_free(&type);
}

}  // namespace

/// Fragments end at other bytes in a synchronous message. The library alone receives all of these: elements that lie
/// next to each other wherever a fragment ends, those with gaps because their sender ends fragments between elements.
MPI_CASE(fragments_of_any_element) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  for (const MPI_Datatype element : {MPI_INT, MPI_DOUBLE, MPI_C_DOUBLE_COMPLEX}) {
    MPI_Aint low = 0, size = 0;
    MPI_Type_get_extent(element, &low, &size);
    for (MPI_Aint bytes = 8096; bytes < 40000; bytes += bytes < 8384 ? 16 : 1776)
      for (int how = 0; how < 4; ++how) {
        const int count = static_cast<int>(bytes / size);
        move_elements(count, static_cast<int>(bytes / 16 % 3 + 1) * count, element, size, how >= 2, how % 2 == 1);
      }
  }
}

int main(int argc, char** argv) { return run_watched_cases(argc, argv); }
