// SPDX-License-Identifier: Apache-2.0
// Checks what each rank's record contains about communicators, windows and files, and about what its calls exchange.
// Two ranks with the preload library.
#include <optional>
#include <string>

#include "tests/recording/own_record.hpp"
#include "tests/support/harness.hpp"

using namespace bestride;
using namespace bestride::test;

namespace {

/// The object of the last call.
std::optional<CommunicatorSnapshot> last_object() {
  const RankSnapshot record = own_record();
  const CommunicatorSnapshot* const known = communicator(record, last_call(record).communicator);
  CHECK(known);
  return known ? std::optional(*known) : std::nullopt;
}

/// The function of the place that created it.
std::string origin(const CommunicatorSnapshot& object) {
  const RankSnapshot record = own_record();
  return object.site < record.sites.size() ? name_of(record.sites[object.site].function) : "none";
}

MPI_Group group_of_peer() {
  MPI_Group world, one;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  const int other = peer();
  MPI_Group_incl(world, 1, &other, &one);
  MPI_Group_free(&world);
  return one;
}

EpochSnapshot epoch_with_peer() {
  const RankSnapshot record = own_record();
  for (const EpochSnapshot& epoch : record.epochs)
    if (epoch.rank == peer()) return epoch;
  return {};
}

}  // namespace

MPI_CASE(names_of_windows_and_files) {
  int word = 0;
  MPI_Win window;
  MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  auto object = last_object();
  CHECK(object && object->name.empty() && origin(*object) == "MPI_Win_create");
  MPI_Win_set_name(window, "halo");
  MPI_Win_fence(0, window);
  object = last_object();
  CHECK(object && object->name == "halo" && object->kind == CommunicatorKind::window);
  MPI_Win_free(&window);
  MPI_File file;
  const std::string path = "/tmp/bestride_objects." + std::to_string(getppid());
  MPI_File_open(MPI_COMM_SELF, (path + std::to_string(world_rank())).c_str(),
                MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  MPI_File_sync(file);
  object = last_object();
  CHECK(object && object->kind == CommunicatorKind::file && object->name.starts_with("bestride_objects."));
  MPI_File_close(&file);
}

MPI_CASE(places_that_create_communicators) {
  MPI_Comm part, copy;
  MPI_Comm_split(MPI_COMM_WORLD, 0, world_rank(), &part);
  MPI_Barrier(part);
  auto object = last_object();
  CHECK(object && origin(*object) == "MPI_Comm_split");
  MPI_Comm_dup(part, &copy);
  MPI_Barrier(copy);
  object = last_object();
  CHECK(object && origin(*object) == "MPI_Comm_dup");
  MPI_Comm_free(&copy);
  MPI_Comm_free(&part);
}

MPI_CASE(intercommunicators) {
  MPI_Comm own, both[2], merged, copy;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank(), 0, &own);
  std::uint64_t uids[2] = {0, 0};
  for (int i : {0, 1}) {
    MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, peer(), i, &both[i]);
    MPI_Barrier(both[i]);
    const auto object = last_object();
    CHECK(object && object->kind == CommunicatorKind::inter && object->uid != 0 && object->size == 1 &&
          object->local_size == 1 && object->rank == 0 && object->first_member == peer());
    uids[i] = object ? object->uid : 0;
    CHECK(agreed(uids[i]));
    CHECK(object && !agreed(object->side));
  }
  CHECK(uids[0] != uids[1]);
  MPI_Intercomm_merge(both[0], 0, &merged);
  MPI_Barrier(merged);
  auto object = last_object();
  CHECK(object && object->kind == CommunicatorKind::intra && object->size == 2 && object->uid != 0 &&
        agreed(object->uid));
  MPI_Comm_dup(both[0], &copy);
  MPI_Barrier(copy);
  object = last_object();
  CHECK(object && object->kind == CommunicatorKind::inter && object->uid != uids[0] && agreed(object->uid) &&
        object->first_member == peer());
  for (MPI_Comm* comm : {&copy, &merged, &both[0], &both[1], &own}) MPI_Comm_free(comm);
}

MPI_CASE(epochs_of_a_window) {
  int word = 0;
  MPI_Win window;
  MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Group other = group_of_peer();
  for (std::uint32_t round = 1; round <= 2; ++round) {
    MPI_Win_post(other, 0, window);
    CHECK(epoch_with_peer().posts == round && epoch_with_peer().completes == round - 1);
    MPI_Win_start(other, 0, window);
    MPI_Put(&word, 1, MPI_INT, peer(), 0, 1, MPI_INT, window);
    CHECK(epoch_with_peer().starts == round);
    MPI_Win_complete(window);
    CHECK(epoch_with_peer().completes == round);
    MPI_Win_wait(window);
  }
  MPI_Group_free(&other);
  MPI_Win_free(&window);
  CHECK(epoch_with_peer().rank == no_rank && own_record().epochs_dropped == 0);
}

/// The library's own call reports it, and nothing else does.
MPI_CASE(an_invalid_group_is_not_asked_for) {
  int word = 0;
  MPI_Win window;
  MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  const ReturnErrors errors(MPI_COMM_WORLD);  // whose handler MPICH calls
  // Not one that was freed: its handle may be that of a group which the library has made since.
  CHECK(MPI_Win_start(static_cast<MPI_Group>(0x1234), 0, window) != MPI_SUCCESS);
  CHECK(MPI_Win_start(MPI_GROUP_NULL, 0, window) != MPI_SUCCESS);
  CHECK(epoch_with_peer().starts == 0);
  MPI_Win_free(&window);
}

/// Of the last call; without a call (ordinal 0) if it has given none.
AmountsSnapshot last_amounts() {
  const RankSnapshot record = own_record();
  const CallSnapshot call = last_call(record);
  for (const AmountsSnapshot& amounts : record.amounts)
    if (amounts.ordinal == call.ordinal && amounts.communicator == call.communicator) return amounts;
  return {};
}

MPI_CASE(amounts_of_an_alltoallv) {
  using Values = std::vector<std::uint32_t>;
  const int counts_out[2] = {1, 2}, counts_in[2] = {world_rank() == 0 ? 1 : 2, world_rank() == 0 ? 1 : 2};
  const int offsets[2] = {0, 2};
  std::int64_t sent[4] = {}, received[4] = {};
  MPI_Alltoallv(sent, counts_out, offsets, MPI_INT64_T, received, counts_in, offsets, MPI_INT64_T, MPI_COMM_WORLD);
  AmountsSnapshot amounts = last_amounts();
  const std::uint32_t of_each = world_rank() == 0 ? 8 : 16;
  CHECK(amounts.ordinal > 0 && amounts.sent == Values({8, 16}) && amounts.received == Values({of_each, of_each}));
  MPI_Gatherv(sent, world_rank() + 1, MPI_INT64_T, received, counts_out, offsets, MPI_INT64_T, 1, MPI_COMM_WORLD);
  amounts = last_amounts();
  const bool root = world_rank() == 1;
  CHECK((amounts.ordinal > 0) == root && (!root || amounts.received == Values({8, 16})));
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, received, counts_out, offsets, MPI_INT64_T, MPI_COMM_WORLD);
  amounts = last_amounts();
  CHECK(amounts.ordinal > 0 && amounts.sent.empty() && amounts.received == Values({8, 16}));
}

int main(int argc, char** argv) { return run_cases(argc, argv, MPI_THREAD_SERIALIZED); }
