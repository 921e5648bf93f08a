// SPDX-License-Identifier: Apache-2.0
// Programs with many datatypes. With 512 types alive, MPICH 4.0.2 moves too few bytes of contiguous types. A program
// with up to 384 types must not be affected by the types that the library creates itself
// (interpose/objects/respelled_types.hpp). One with more must not be affected by those that it no longer uses, nor by
// later ones. Two ranks. Every case is MPI_CASE_ALONE, because the library keeps the types of the layouts used last.
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/harness.hpp"
#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

constexpr int contiguous_types = 200, layouts = 250, layouts_in_use = 150, other_types = 300;

/// Sends and receives strided data of a layout that no other `kind` has.
void exchange_strided(MPI_Datatype type, int kind) {
  const int peer = 1 - world_rank();
  std::vector<int> out(static_cast<std::size_t>(kind + 2) * 12), in(out.size(), -1);
  std::iota(out.begin(), out.end(), world_rank() * 100'000);
  MPI_Sendrecv(out.data(), 4, type, peer, 1, in.data(), 4, type, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_EQUAL(peer * 100'000, in[0]);
  CHECK_EQUAL(-1, in[1]);
}
MPI_Datatype strided_type(int kind) {
  MPI_Datatype type;
  MPI_Type_vector(kind + 2, 1, 3, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

void use_and_free_layouts() {
  for (int kind = 0; kind < layouts; ++kind) {
    MPI_Datatype type = strided_type(kind);
    exchange_strided(type, kind);
    MPI_Type_free(&type);
  }
}

std::vector<MPI_Datatype> make_types(int count) {
  std::vector<MPI_Datatype> types(static_cast<std::size_t>(count));
  for (MPI_Datatype& type : types) {
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Type_commit(&type);
  }
  return types;
}

/// Checks that contiguous types of 1, 3, 5... chars that exist at the same time each transfer all of their chars.
void check_contiguous_types(int count = contiguous_types) {
  const int peer = 1 - world_rank();
  std::vector<char> attached(1 << 16);
  MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
  std::vector<MPI_Datatype> types;
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    const int chars = 2 * i + 1;
    MPI_Datatype type;
    MPI_Type_contiguous(chars, MPI_CHAR, &type);
    MPI_Type_commit(&type);
    types.push_back(type);
    const std::string mine(static_cast<std::size_t>(chars), static_cast<char>('a' + world_rank())),
        theirs(mine.size(), static_cast<char>('a' + peer));
    std::string both = mine, packed(mine.size(), '-'), buffered(mine.size(), '-');
    MPI_Sendrecv_replace(both.data(), 1, type, peer, 2, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    wrong += both != theirs;
    int position = 0;
    MPI_Pack(mine.data(), 1, type, packed.data(), chars, &position, MPI_COMM_WORLD);
    wrong += packed != mine;
    MPI_Bsend(mine.data(), 1, type, peer, 3, MPI_COMM_WORLD);
    MPI_Recv(buffered.data(), 1, type, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    wrong += buffered != theirs;
  }
  CHECK_EQUAL(0, wrong);
  for (MPI_Datatype& type : types) MPI_Type_free(&type);
  void* detached;
  int bytes;
  MPI_Buffer_detach(&detached, &bytes);
}

}  // namespace

MPI_CASE_ALONE(contiguous_types_after_many_layouts) {
  use_and_free_layouts();
  check_contiguous_types();
}

MPI_CASE_ALONE(contiguous_types_beside_many_layouts) {
  std::vector<MPI_Datatype> types;
  for (int kind = 0; kind < layouts_in_use; ++kind) {
    types.push_back(strided_type(kind));
    exchange_strided(types.back(), kind);
  }
  check_contiguous_types();
  for (MPI_Datatype& type : types) MPI_Type_free(&type);
}

MPI_CASE_ALONE(many_layouts_beside_many_types) {
  std::vector<MPI_Datatype> types = make_types(other_types);
  use_and_free_layouts();
  for (std::size_t i = 0; i < types.size(); i += 2) MPI_Type_free(&types[i]);
  check_contiguous_types();
  for (std::size_t i = 1; i < types.size(); i += 2) MPI_Type_free(&types[i]);
}

MPI_CASE_ALONE(most_types_after_many_layouts) {
  constexpr int others = 420, last = 40;
  // A thread's last plans use their types until it ends.
  std::thread(use_and_free_layouts).join();
  std::vector<MPI_Datatype> types = make_types(others);
  check_contiguous_types(last);
  for (MPI_Datatype& type : types) MPI_Type_free(&type);
}

MPI_CASE_ALONE(layouts_beside_most_types) {
  constexpr int others = 390, in_use = 60, last = 40;
  std::vector<MPI_Datatype> types = make_types(others);
  for (int kind = 0; kind < in_use; ++kind) {
    types.push_back(strided_type(kind));
    exchange_strided(types.back(), kind);
  }
  check_contiguous_types(last);
  for (MPI_Datatype& type : types) MPI_Type_free(&type);
}

int main(int argc, char** argv) { return run_watched_cases(argc, argv, MPI_THREAD_SERIALIZED); }
