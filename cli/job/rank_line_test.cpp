// SPDX-License-Identifier: Apache-2.0
#include "cli/job/rank_line.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include "telemetry/waits/sample_window.hpp"

namespace bestride::inline cli {
namespace {

class Names : public testing::Test {
 protected:
  /// A communicator of rank 0 of eight without a name, created by this function at no known place.
  CommunicatorSnapshot& made_by(const std::string& function) {
    RankSnapshot& rank = job.ranks[0];
    rank.sites.emplace_back().function = telemetry::number_of(function);
    CommunicatorSnapshot made{1, 5, 1, 0, 2, 0, 0, 4, CommunicatorKind::intra, ""};
    made.site = static_cast<std::uint32_t>(rank.sites.size() - 1);
    return rank.communicators.emplace_back(made);
  }
  std::string text() { return communicator_text(job.ranks[0], 1, sites); }

  telemetry::SampleJob job{8};
  CallSites sites;
};

TEST_F(Names, OfCommunicatorsWithoutOneSayWhatTheyAre) {
  CommunicatorSnapshot& part = made_by("MPI_Comm_split");
  EXPECT_EQ(text(), "communicator of ranks 0,4 (split from MPI_COMM_WORLD)");
  part.parent_uid = 99;
  EXPECT_EQ(text(), "communicator of ranks 0,4 (split)");
  part.stride = 0;
  EXPECT_EQ(text(), "communicator of 2 ranks (split)");
  part.size = 8;
  part.site = no_index;
  EXPECT_EQ(text(), "communicator of all ranks");
  part.name = "rows";
  EXPECT_EQ(text(), "rows");
}

TEST_F(Names, OfDuplicatesGridsAndIntercommunicators) {
  made_by("MPI_Comm_dup").size = 8;
  EXPECT_EQ(text(), "communicator of all ranks (duplicate of MPI_COMM_WORLD)");
  job.ranks[0].communicators.pop_back();
  made_by("MPI_Cart_create");
  EXPECT_EQ(text(), "communicator of ranks 0,4 (MPI_Cart_create of MPI_COMM_WORLD)");
  job.ranks[0].communicators.pop_back();
  CommunicatorSnapshot& inter = made_by("MPI_Intercomm_create");
  inter.kind = CommunicatorKind::inter;
  inter.local_size = 6;
  inter.parent_uid = 0;
  EXPECT_EQ(text(), "intercommunicator of 6 and 2 ranks (MPI_Intercomm_create)");
}

TEST_F(Names, OfWindowsAndFilesHaveTheirKind) {
  CommunicatorSnapshot& window = made_by("MPI_Win_create");
  window.kind = CommunicatorKind::window;
  EXPECT_EQ(text(), "window of ranks 0,4 (MPI_Win_create of MPI_COMM_WORLD)");
  window.name = "halo";
  EXPECT_EQ(text(), "window halo");
  window.kind = CommunicatorKind::file;
  window.name = "field.h5";
  EXPECT_EQ(text(), "file field.h5");
  CallSnapshot call;
  call.function = telemetry::number_of("MPI_File_close");
  call.communicator = 1;
  call.ordinal = 3;
  EXPECT_EQ(call_text(job.ranks[0], call, sites), "MPI_File_close(file field.h5 #3)");
}

TEST(EndOfRank, SaysWhetherMpiFinalizeHasReturned) {
  telemetry::SampleJob job(1);
  RankSnapshot& rank = job.ranks[0];
  rank.alive = false;
  rank.wait_status = 1 << 8;
  rank.state = ProcessState::finalizing;
  job.call(0, "MPI_Finalize");
  EXPECT_EQ(end_of_rank(rank), "exited with code 1 before MPI_Finalize");
  rank.threads[0].finished.push_back(*rank.threads[0].current);
  job.leave(0);
  EXPECT_EQ(end_of_rank(rank), "exited with code 1 after MPI_Finalize");
  rank.wait_status = 9;
  EXPECT_EQ(end_of_rank(rank), "killed by signal 9 (Killed) after MPI_Finalize");
  rank.wait_status = -1;
  EXPECT_EQ(end_of_rank(rank), "killed, or ended by _exit(), after MPI_Finalize");
  rank.threads[0].finished.back().function = telemetry::number_of("MPI_Barrier");
  EXPECT_EQ(end_of_rank(rank), "killed, or ended by _exit(), before MPI_Finalize");
  rank.threads[0].finished.front().function = telemetry::number_of("MPI_Abort");  // has returned
  EXPECT_EQ(end_of_rank(rank), "called MPI_Abort");
}

/// Places in the sample library (argument of the program).
TEST(Places, OfCallsInInstalledHeadersAreTheProgramsOwn) {
  if (!Symbolizer::available()) GTEST_SKIP() << "no libdw in this build";
  const std::string path = testing::internal::GetArgvs().at(1);
  void* const library = dlopen(path.c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  link_map* map = nullptr;
  dlinfo(library, RTLD_DI_LINKMAP, &map);
  const auto frame = [&](void* return_address) {
    return FrameSnapshot{reinterpret_cast<std::uint64_t>(return_address) - 1 - map->l_addr, 0};
  };
  void *inlined = nullptr, *caller = nullptr;
  void* const inner =
      reinterpret_cast<void* (*)(void**, void**)>(dlsym(library, "sample_library_calls"))(&inlined, &caller);

  telemetry::SampleJob job(1);
  RankSnapshot& rank = job.ranks[0];
  rank.modules.emplace_back().path = path;
  SiteSnapshot& site = rank.sites.emplace_back();
  site.module = 0;
  CallSites sites;
  site.address = frame(inlined).address;
  EXPECT_EQ(sites.text(rank, 0), "sample_library_calls (sample.cpp:201)");
  site.address = frame(inner).address;
  EXPECT_EQ(sites.text(rank, 0), "receive (exchange.hpp:101)") << "no other frame is known";
  site.stack.push_back(frame(caller));
  EXPECT_EQ(sites.text(rank, 0), "sample_library_calls (sample.cpp:202)");
}

}  // namespace
}  // namespace bestride::inline cli
