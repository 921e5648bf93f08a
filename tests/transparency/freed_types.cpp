// SPDX-License-Identifier: Apache-2.0
// MPI_Type_free that fails, that is called from a delete callback, or that is called while a message is pending; and
// reused handle values, also of types whose free was not intercepted. Two ranks.
#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>

#include "tests/transparency/records.hpp"
#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

int callbacks = 0;

int errs(MPI_Datatype, int, void*, void*) {
  ++callbacks;
  return MPI_ERR_OTHER;
}

int counts(MPI_Datatype, int, void*, void*) {
  ++callbacks;
  return MPI_SUCCESS;
}

int uses_the_type(MPI_Datatype type, int, void*, void*) {
  ++callbacks;
  // Packing only: MPICH 4.0.2 frees a type in this state a second time when a request that holds it completes.
  const std::vector<Record> out = records(5000, 1);
  std::vector<Record> in(out.size());
  std::vector<char> packed(out.size() * 13);
  int position = 0;
  MPI_Pack(out.data(), 5000, type, packed.data(), static_cast<int>(packed.size()), &position, MPI_COMM_SELF);
  CHECK_EQUAL(65000, position);
  position = 0;
  MPI_Unpack(packed.data(), static_cast<int>(packed.size()), &position, in.data(), 5000, type, MPI_COMM_SELF);
  CHECK_EQUAL(0, wrong_records(in.data(), 5000, 1));
  return MPI_SUCCESS;
}

/// An attribute with this delete callback.
int key(MPI_Type_delete_attr_function* callback) {
  int value = MPI_KEYVAL_INVALID;
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, callback, &value, nullptr);
  callbacks = 0;
  return value;
}

struct ReturnAllErrors {
  ReturnErrors world{MPI_COMM_WORLD}, self{MPI_COMM_SELF};
};

/// Creates types until one has this handle value and frees the others. Returns that type, which is uncommitted and has
/// another layout than Record, or MPI_DATATYPE_NULL if there is none.
MPI_Datatype uncommitted_type_with_value(MPI_Datatype value) {
  std::vector<MPI_Datatype> others;
  MPI_Datatype found = MPI_DATATYPE_NULL;
  for (int i = 0; i < 500 && found == MPI_DATATYPE_NULL; ++i) {
    MPI_Datatype type;
    MPI_Type_vector(1000, 1, 2, MPI_INT, &type);
    if (type == value)
      found = type;
    else
      others.push_back(type);
  }
  for (MPI_Datatype& type : others) MPI_Type_free(&type);
  return found;
}

MPI_Datatype other_type_with_value(MPI_Datatype value) {
  MPI_Datatype found = uncommitted_type_with_value(value);
  if (found != MPI_DATATYPE_NULL) MPI_Type_commit(&found);
  return found;
}

/// Exchanges messages of every second int of 2000.
void check_vector_type(MPI_Datatype type) {
  const int peer = 1 - world_rank();
  std::vector<int> out(2000 * 20), in(out.size(), -1);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int>(i);
  MPI_Request send;
  MPI_Isend(out.data(), 1, type, peer, 0, MPI_COMM_WORLD, &send);
  CHECK_EQUAL(MPI_SUCCESS, MPI_Recv(in.data(), 1, type, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  int wrong = 0;
  for (std::size_t i = 0; i < 2000; ++i) wrong += in[i] != (i % 2 ? -1 : out[i]);
  CHECK_EQUAL(0, wrong);
}

/// The MPI library's own MPI_Type_free, which no preloaded library intercepts.
void free_unseen(MPI_Datatype* type) {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* loaded, std::size_t, void* found) {
        if (std::strstr(loaded->dlpi_name, "/libmpi")) *static_cast<std::string*>(found) = loaded->dlpi_name;
        return 0;
      },
      &path);
  void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  const auto free = library ? reinterpret_cast<decltype(&MPI_Type_free)>(dlsym(library, "PMPI_Type_free")) : nullptr;
  CHECK(free != nullptr);
  if (free) CHECK_EQUAL(MPI_SUCCESS, free(type));
  if (library) dlclose(library);
}

/// Frees `type` unseen and checks messages of another type with its handle value. Both ranks call it. Returns 1, or 0
/// if one of them got no such type.
int reuse_after_unseen_free(MPI_Datatype type) {
  const MPI_Datatype value = type;
  free_unseen(&type);
  MPI_Datatype other = other_type_with_value(value);
  const int mine = other != MPI_DATATYPE_NULL;
  int both = 0;
  MPI_Allreduce(&mine, &both, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (both) check_vector_type(other);
  if (mine) MPI_Type_free(&other);
  return both;
}

/// 1000 ints with gaps. It has too many blocks to be recognized by the arguments of its constructor.
MPI_Datatype make_type_of_many_blocks() {
  std::vector<int> places(1000);
  std::iota(places.begin(), places.end(), 0);
  for (int& place : places) place = place * 2 + place % 7;
  MPI_Datatype type;
  MPI_Type_create_indexed_block(1000, 1, places.data(), MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

/// Packs ten elements of make_type_of_many_blocks() on this rank alone.
void check_type_of_many_blocks(MPI_Datatype type) {
  MPI_Aint lower = 0, extent = 0;
  MPI_Type_get_extent(type, &lower, &extent);
  std::vector<int> data(static_cast<std::size_t>(extent / 4 * 10)), packed(10000);
  std::iota(data.begin(), data.end(), 0);
  int position = 0;
  MPI_Pack(data.data(), 10, type, packed.data(), 40000, &position, MPI_COMM_SELF);
  CHECK_EQUAL(40000, position);
  int wrong = 0;
  for (int i = 0; i < 10000; ++i)
    wrong +=
        packed[static_cast<std::size_t>(i)] != i / 1000 * static_cast<int>(extent / 4) + i % 1000 * 2 + i % 1000 % 7;
  CHECK_EQUAL(0, wrong);
}

struct Pair {
  double value;
  int index;
};

void check_pairs(MPI_Datatype type) {
  const int peer = 1 - world_rank();
  for (const int count : record_counts) {
    std::vector<Pair> out(static_cast<std::size_t>(count)), in(out.size());
    for (int i = 0; i < count; ++i) out[static_cast<std::size_t>(i)] = {i * 0.5, i + world_rank()};
    MPI_Request send;
    MPI_Isend(out.data(), count, type, peer, 0, MPI_COMM_WORLD, &send);
    CHECK_EQUAL(MPI_SUCCESS, error_class(MPI_Recv(in.data(), count, type, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)));
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    int wrong = 0;
    for (int i = 0; i < count; ++i)
      wrong += in[static_cast<std::size_t>(i)].index != i + peer || in[static_cast<std::size_t>(i)].value != i * 0.5;
    CHECK_EQUAL(0, wrong);
  }
}

}  // namespace

MPI_CASE(free_of_a_pair_type_fails) {
  const ReturnAllErrors returned;
  check_pairs(MPI_DOUBLE_INT);
  MPI_Datatype copy = MPI_DOUBLE_INT;
  CHECK(MPI_Type_free(&copy) != MPI_SUCCESS);
  check_pairs(MPI_DOUBLE_INT);
}

MPI_CASE(free_of_a_pair_type_fails_on_one_rank) {
  const ReturnAllErrors returned;
  if (world_rank() == 1) {
    MPI_Datatype copy = MPI_DOUBLE_INT;
    CHECK(MPI_Type_free(&copy) != MPI_SUCCESS);
  }
  check_pairs(MPI_DOUBLE_INT);
}

MPI_CASE(free_of_a_basic_type_fails) {
  const ReturnAllErrors returned;
  MPI_Datatype integer = MPI_INT, real = MPI_DOUBLE;
  CHECK(MPI_Type_free(&integer) != MPI_SUCCESS);
  CHECK(MPI_Type_free(&real) != MPI_SUCCESS);
  MPI_Datatype type = make_record_type();
  check_record_type(type);
  MPI_Type_free(&type);
}

// MPICH 4.0.2 ignores the error of a delete callback and frees the type, so the type is not used afterwards. In the
// same process a later error may have the class MPI_ERR_OTHER instead of its own, also without the preload library.
MPI_CASE_ALONE(delete_callback_returns_an_error) {
  const ReturnAllErrors returned;
  int callback = key(errs);
  for (int round = 0; round < 5; ++round) {
    MPI_Datatype type = make_record_type();
    MPI_Type_set_attr(type, callback, nullptr);
    check_record_type_alone(type);
    CHECK_EQUAL(MPI_SUCCESS, MPI_Type_free(&type));
    CHECK_EQUAL(round + 1, callbacks);
    CHECK(type == MPI_DATATYPE_NULL);
    MPI_Datatype next = make_record_type();
    check_record_type(next);
    MPI_Type_free(&next);
  }
  MPI_Type_free_keyval(&callback);
}

MPI_CASE(delete_callback_called_after_the_last_use) {
  // A type that another type uses is deleted together with it.
  int callback = key(counts);
  MPI_Datatype type = make_record_type(), outer;
  MPI_Type_set_attr(type, callback, nullptr);
  MPI_Type_contiguous(1, type, &outer);
  MPI_Type_commit(&outer);
  MPI_Type_free(&type);
  const int early = callbacks;
  check_record_type(outer);
  MPI_Type_free(&outer);
  CHECK_EQUAL(1, callbacks);
  CHECK_EQUAL(0, early);
  MPI_Type_free_keyval(&callback);
}

MPI_CASE(used_in_its_delete_callback) {
  int callback = key(uses_the_type);
  MPI_Datatype type = make_record_type();
  MPI_Type_set_attr(type, callback, nullptr);
  check_record_type(type);
  MPI_Type_free(&type);
  CHECK_EQUAL(1, callbacks);
  MPI_Type_free_keyval(&callback);
}

MPI_CASE(handle_value_reused_after_a_free) {
  for (int round = 0; round < 20; ++round) {
    MPI_Datatype type = make_record_type();
    const MPI_Datatype value = type;
    check_record_type_alone(type);
    MPI_Type_free(&type);
    MPI_Datatype other = other_type_with_value(value);
    if (other == MPI_DATATYPE_NULL) continue;
    check_vector_type(other);
    MPI_Type_free(&other);
  }
}

MPI_CASE(handle_value_reused_after_an_unseen_free) {
  int checked = 0;
  for (int round = 0; round < 20; ++round) {
    MPI_Datatype type = make_record_type();
    if (round % 4 != 0) check_record_type_alone(type);
    checked += reuse_after_unseen_free(type);
  }
  CHECK(checked > 0);
}

MPI_CASE(handle_value_of_many_blocks_reused_after_an_unseen_free) {
  int checked = 0;
  for (int round = 0; round < 20; ++round) {
    MPI_Datatype type = make_type_of_many_blocks();
    for (int use = 0; use < 3; ++use) {
      check_type_of_many_blocks(type);
      MPI_Type_commit(&type);
    }
    checked += reuse_after_unseen_free(type);
  }
  CHECK(checked > 0);
}

MPI_CASE(uncommitted_contents_after_all_handles_were_freed) {
  const ReturnAllErrors returned;
  MPI_Datatype type, outer;
  MPI_Type_vector(1000, 1, 2, MPI_INT, &type);
  MPI_Type_contiguous(2, type, &outer);
  MPI_Type_commit(&outer);
  MPI_Type_free(&type);
  for (int round = 0; round < 2; ++round) {
    int integer = 0;
    MPI_Aint address = 0;
    MPI_Type_get_contents(outer, 1, 0, 1, &integer, &address, &type);
    std::vector<int> data(8000);
    CHECK_EQUAL(MPI_ERR_TYPE, error_class(MPI_Send(data.data(), 4, type, 1 - world_rank(), 0, MPI_COMM_WORLD)));
    if (round == 1) {
      MPI_Type_commit(&type);
      check_vector_type(type);
    }
    MPI_Type_free(&type);
  }
  MPI_Type_free(&outer);
}

MPI_CASE(freed_while_a_message_is_pending) {
  const int peer = 1 - world_rank(), count = 100000;
  for (int round = 0; round < 10; ++round) {
    MPI_Datatype type = make_record_type();
    const MPI_Datatype value = type;
    std::vector<Record> in(count), out = records(count, world_rank());
    MPI_Request requests[2];
    MPI_Irecv(in.data(), count, type, peer, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out.data(), count, type, peer, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Type_free(&type);
    // The messages cannot complete before this point: both need progress on this rank.
    MPI_Datatype other = other_type_with_value(value);
    if (other != MPI_DATATYPE_NULL) check_vector_type(other);
    PMPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK_EQUAL(0, wrong_records(in.data(), count, peer));
    if (other == MPI_DATATYPE_NULL) other = other_type_with_value(value);
    const int mine = other != MPI_DATATYPE_NULL;
    int both = 0;
    MPI_Allreduce(&mine, &both, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (both) check_vector_type(other);
    if (mine) MPI_Type_free(&other);
  }
}

MPI_CASE(freed_while_a_persistent_request_uses_it) {
  const int peer = 1 - world_rank(), count = 5000;
  MPI_Datatype type = make_record_type();
  const MPI_Datatype value = type;
  std::vector<Record> in(count), out = records(count, world_rank());
  MPI_Request requests[2];
  MPI_Recv_init(in.data(), count, type, peer, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(out.data(), count, type, peer, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Type_free(&type);
  MPI_Datatype other = other_type_with_value(value);
  for (int round = 0; round < 5; ++round) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK_EQUAL(0, wrong_records(in.data(), count, peer));
    in.assign(in.size(), Record{});
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  if (other != MPI_DATATYPE_NULL) MPI_Type_free(&other);
}

namespace {

MPI_File open_own_file() {
  MPI_File file;
  const std::string name = "transparency_view." + std::to_string(world_rank());
  MPI_File_open(MPI_COMM_SELF, name.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                &file);
  return file;
}

/// The types that MPI_File_get_view returns after the view is set to these types. The caller frees them.
struct View {
  MPI_Datatype unit, type;
};
View set_and_get_view(MPI_File file, MPI_Datatype unit, MPI_Datatype type) {
  MPI_File_set_view(file, 0, unit, type, "native", MPI_INFO_NULL);
  View view;
  MPI_Offset displacement;
  char representation[MPI_MAX_DATAREP_STRING];
  MPI_File_get_view(file, &displacement, &view.unit, &view.type, representation);
  return view;
}

}  // namespace

MPI_CASE(type_of_a_file_view_used_to_receive) {
  MPI_Datatype type = make_record_type();
  MPI_File file = open_own_file();
  View view = set_and_get_view(file, MPI_BYTE, type);
  MPI_Type_free(&type);
  MPI_File_close(&file);
  check_record_type(view.type);
  MPI_Type_free(&view.type);
}

MPI_CASE(uncommitted_type_with_the_value_of_a_file_views) {
  const ReturnAllErrors returned;
  const int rank = world_rank();
  int checked = 0;
  for (int round = 0; round < 20; ++round) {
    MPI_Datatype type = make_record_type();
    MPI_File file = open_own_file();
    View view = set_and_get_view(file, MPI_BYTE, type);
    const MPI_Datatype value = view.type;
    MPI_Type_free(&view.type);
    if (MPI_Datatype other = uncommitted_type_with_value(value); other != MPI_DATATYPE_NULL) {
      ++checked;
      std::vector<int> data(8000);
      CHECK_EQUAL(MPI_ERR_TYPE, error_class(MPI_Send(data.data(), 4, other, 1 - rank, 0, MPI_COMM_WORLD)));
      MPI_Type_free(&other);
    }
    MPI_File_close(&file);
    MPI_Type_free(&type);
  }
  CHECK(checked > 0);
}

MPI_CASE(type_of_a_file_view_freed) {
  MPI_Datatype type = make_record_type();
  MPI_File file = open_own_file();
  View view = set_and_get_view(file, type, type);
  MPI_Type_free(&view.type);
  check_record_type(view.unit);
  MPI_Type_free(&view.unit);
  MPI_File_close(&file);
  check_record_type(type);
  MPI_Type_free(&type);
}

int main(int argc, char** argv) { return run_watched_cases(argc, argv); }
