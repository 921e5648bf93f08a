// SPDX-License-Identifier: Apache-2.0
// bestride-measure-collectives-<abi>: measures links and collectives between hosts. `bestride calibrate` starts it on
// all ranks of a job. perfmodel/calibrate/messages/main.cpp lists the lines that it writes to stdout; in addition it
// writes
//   preload yes|no      whether MPI_ names lead to the preload library, so that there are two variants to measure
//
// With --exchange it measures only whether rails are worth using, and writes
//   rails NAMES         the --candidates that all hosts have
//   no-rails WHY        not all hosts have them, or ranks were not given the --rails
//   bytes N             of an exchange
//   exchange S S ...    seconds of each node
//
// With --preload it restarts itself on every host with the library in LD_PRELOAD, before it calls MPI, because
// launchers differ in which environment variables they pass on.
#include <dlfcn.h>
#include <mpi.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "perfmodel/calibrate/collective/link_point.hpp"
#include "perfmodel/calibrate/collective/piece_point.hpp"
#include "perfmodel/calibrate/collective/point.hpp"
#include "perfmodel/calibrate/collective/rail_point.hpp"
#include "perfmodel/calibrate/collective/state.hpp"
#include "perfmodel/profile/machine.hpp"

#include "base/library_names.hpp"  // after mpi.h

namespace {

using namespace bestride;

struct Arguments {
  std::string state, preload, profile;
  std::string rails = "off";  ///< as BESTRIDE_NICS
  std::string candidates;     ///< with --exchange and without rails: NICs that could be rails
  std::int64_t bytes = 0;     ///< of an exchange; 0: determined by NodeExchange::enough_bytes()
  double budget = 100;
  bool restart = false, quick = false, links_only = false, exchange = false, started_anew = false;
  double limit() const { return quick ? 0.1 : 0.5; }  ///< for a point, in seconds
};

[[noreturn]] void stop(const std::string& text) {
  std::printf("error %s\n", text.c_str());
  std::fflush(stdout);
  PMPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

/// Called before MPI_Init. Returns an unknown argument in *unknown; the caller reports it.
Arguments read_arguments(int argc, char** argv, std::string* unknown) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto next = [&]() -> std::string { return ++i < argc ? argv[i] : ""; };
    if (word == "--state")
      arguments.state = next();
    else if (word == "--budget")
      arguments.budget = std::atof(next().c_str());
    else if (word == "--preload")
      arguments.preload = next();
    else if (word == "--profile")
      arguments.profile = next();
    else if (word == "--rails")
      arguments.rails = next();
    else if (word == "--candidates")
      arguments.candidates = next();
    else if (word == "--bytes")
      arguments.bytes = std::atoll(next().c_str());
    else if (word == "--exchange")
      arguments.exchange = true;
    else if (word == "--restart")
      arguments.restart = true;
    else if (word == "--quick")
      arguments.quick = true;
    else if (word == "--links")
      arguments.links_only = true;
    else if (word == "--started-anew")
      arguments.started_anew = true;
    else
      *unknown = word;
  }
  return arguments;
}

/// Restarts the program with the preload library. Ends the program if the library is missing on this host, because the
/// other ranks assume that all have it. Returns only if the restart is not possible; then there is only one variant to
/// measure, which is reported later.
void start_anew(const Arguments& arguments, int argc, char** argv) {
  if (::access(arguments.preload.c_str(), R_OK) != 0) {
    std::printf("error can't read the library '%s' on every host: %s\n", arguments.preload.c_str(),
                std::strerror(errno));
    std::fflush(stdout);
    std::exit(1);
  }
  const char* before = std::getenv("LD_PRELOAD");
  ::setenv("LD_PRELOAD", before && *before ? (arguments.preload + ":" + before).c_str() : arguments.preload.c_str(), 1);
  ::unsetenv("BESTRIDE_DISABLE");
  ::setenv("BESTRIDE_ALL_RANKS", "1", 1);  // otherwise nothing would go through the hierarchy
  ::setenv("BESTRIDE_COLLECTIVES", "hierarchical", 1);
  ::setenv("BESTRIDE_CACHE_BYTES", "0", 1);  // because every call sends the same content
  ::setenv("BESTRIDE_NICS", arguments.rails.c_str(), 1);
  if (!arguments.profile.empty()) ::setenv("BESTRIDE_PROFILE", arguments.profile.c_str(), 1);
  std::string word = "--started-anew";
  std::vector<char*> words(argv, argv + argc);
  words.push_back(word.data());
  words.push_back(nullptr);
  ::execv("/proc/self/exe", words.data());
}

/// True if the MPI_ name refers to the preload library.
bool preloaded() {
  Dl_info mpi{};
  void* const outer = ::dlsym(RTLD_DEFAULT, "MPI_Allgather");
  return outer && ::dladdr(outer, &mpi) && mpi.dli_fname && std::strstr(mpi.dli_fname, "libbestride");
}

/// Has a fifth field if ranks have rails, because measurements without them belong to another configuration.
std::string configuration(const std::string& rails) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  PMPI_Get_library_version(version, &length);
  const MachineFingerprint here = fingerprint_here(std::string_view(version, static_cast<std::size_t>(length)));
  return here.cpu + " | " + here.mpi_library + " | " + here.host_class + " | " + here.bestride +
         (rails == "off" ? "" : " | rails " + rails);
}

CollectiveSetting setting_of(const JobPlace& place) {
  const CollectiveShape shape = shape_of(Collective::allgather, 1, true, place.topology);
  CollectiveSetting setting;
  setting.nodes = shape.nodes, setting.ranks = shape.ranks, setting.most_on_a_node = shape.most_on_a_node;
  setting.least_on_a_node = shape.least_on_a_node, setting.ring_entries = shape.ring_entries;
  return setting;
}

/// The list of what is measured, links first; the same on all ranks.
class Work {
 public:
  Work(const Arguments& arguments, const JobPlace& place)
      : place_(place), limit_(arguments.limit()), piece_rounds_(arguments.quick ? 3 : 7) {
    if (!arguments.links_only) points_ = make_collective_plan(arguments.quick);
    links_ = arguments.links_only ? link_fields.size() + 1 : 0;
  }
  /// Number of links; they come first.
  std::size_t links() const { return links_; }
  std::size_t size() const { return links_ + points_.size(); }
  std::string id(std::size_t i) const {
    if (i >= links_) return points_[i - links_].id();
    return i < link_fields.size() ? std::string(link_fields[i].name) : piece_id;
  }
  /// Called on all ranks; ranks without a writer store nothing.
  void measure(std::size_t i, CollectiveStateWriter* writer) {
    if (i < links_ && i == link_fields.size()) {
      const std::int64_t bytes = measure_piece(place_, piece_rounds_);
      if (writer) writer->piece(bytes);
      return;
    }
    if (i < links_) {
      const double seconds = measure_link(link_fields[i], place_, limit_);
      if (writer && seconds > 0) writer->link(link_fields[i], seconds);
      return;
    }
    const BothWays both = measurer_.measure(points_[i - links_], limit_);
    if (writer) writer->point(points_[i - links_], both);
  }

 private:
  const JobPlace& place_;
  const double limit_;
  const int piece_rounds_;
  std::vector<CollectivePoint> points_;
  std::size_t links_ = 0;
  CollectiveMeasurer measurer_;
};

constexpr int nothing_more = -1;

/// On rank 0: tells all ranks which one comes next.
void drive(const Arguments& arguments, const JobPlace& place, Work& work, const std::string& config) {
  const CollectiveSetting setting = setting_of(place);
  const CollectiveState before =
      arguments.restart ? CollectiveState{} : read_collective_state(arguments.state, config, &setting);
  auto writer = CollectiveStateWriter::open(arguments.state, config, setting, before.done.empty());
  if (!writer) stop(writer.error().text);
  std::size_t known = 0;
  for (std::size_t i = 0; i < work.size(); ++i) known += before.done.count(work.id(i));
  std::printf("plan %zu %zu\n", work.size(), known);
  const double start = PMPI_Wtime();
  int measured = 0, left_out = 0;
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (before.done.count(work.id(i))) continue;
    // The links are always measured, because the points can't be used without them.
    if (i >= work.links() && PMPI_Wtime() - start > arguments.budget) {
      ++left_out;
      continue;
    }
    std::printf("at %zu %s\n", known + static_cast<std::size_t>(++measured), work.id(i).c_str());
    std::fflush(stdout);
    int next = static_cast<int>(i);
    PMPI_Bcast(&next, 1, MPI_INT, 0, MPI_COMM_WORLD);
    work.measure(i, &*writer);
  }
  int next = nothing_more;
  PMPI_Bcast(&next, 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::printf("end %d %d %.1f\n", measured, left_out, PMPI_Wtime() - start);
}

void follow(Work& work) {
  for (;;) {
    int next = nothing_more;
    PMPI_Bcast(&next, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (next == nothing_more) return;
    work.measure(static_cast<std::size_t>(next), nullptr);
  }
}

/// Prints on rank 0 only.
void say(const JobPlace& place, const std::string& line) {
  if (place.rank != 0) return;
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

/// False if there are no rails to compare; the reason is printed.
bool has_rails(const Arguments& arguments, const JobPlace& place) {
  if (arguments.rails == "off") {
    const Result<Rails> found = rails_of_all_hosts(arguments.candidates, place);
    say(place, found ? "rails " + list_of(*found) : "no-rails " + found.error().text);
    return static_cast<bool>(found);
  }
  const Result<Rails> rails = rails_of_list(arguments.rails);
  const Result<bool> taken = rails ? all_took(*rails, place) : Result<bool>(rails.error());
  if (!taken) say(place, "no-rails " + taken.error().text);
  return static_cast<bool>(taken);
}

void measure_exchange(const Arguments& arguments, const JobPlace& place) {
  const int rounds = arguments.quick ? 3 : 5;
  const double start = PMPI_Wtime();
  reach_all(place);
  NodeExchange exchange(place);
  const std::int64_t bytes = arguments.bytes > 0 ? arguments.bytes : exchange.enough_bytes();
  say(place, "bytes " + std::to_string(bytes));
  exchange.seconds(bytes);
  for (int round = 0; round < rounds; ++round) {
    std::string line = "exchange";
    for (double seconds : exchange.seconds(bytes)) line += " " + std::to_string(seconds);
    say(place, line);
  }
  say(place, "end " + std::to_string(rounds) + " 0 " + std::to_string(PMPI_Wtime() - start));
}

void measure(const Arguments& arguments) {
  const JobPlace place = find_place();
  const bool first = place.rank == 0, between_hosts = place.topology.nodes() > 1;
  const std::string config = configuration(arguments.rails);
  int two_ways = arguments.links_only || arguments.exchange || preloaded();
  PMPI_Allreduce(MPI_IN_PLACE, &two_ways, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first)
    std::printf("config %s\nhosts %s\npreload %s\n", config.c_str(), between_hosts ? "different" : "same",
                preloaded() ? "yes" : "no");
  if (!between_hosts || !two_ways || (arguments.exchange && !has_rails(arguments, place)))
    return say(place, "end 0 0 0");
  if (arguments.exchange) return measure_exchange(arguments, place);
  Work work(arguments, place);
  if (first)
    drive(arguments, place, work, config);
  else
    follow(work);
}

}  // namespace

int main(int argc, char** argv) {
  std::string unknown;
  const Arguments arguments = read_arguments(argc, argv, &unknown);
  if (!arguments.preload.empty() && !arguments.started_anew) start_anew(arguments, argc, argv);
  MPI_Init(&argc, &argv);
  try {
    if (!unknown.empty()) stop("unknown argument '" + unknown + "'");
    if (arguments.state.empty() && !arguments.exchange) stop("--state FILE is missing");
    measure(arguments);
  } catch (const std::exception& error) {
    stop(error.what());
  }
  MPI_Finalize();
  return 0;
}
