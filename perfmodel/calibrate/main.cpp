// SPDX-License-Identifier: Apache-2.0
// bestride-measure-<abi>: measures one part (perfmodel/calibrate/common/options.hpp) of a machine profile. `bestride
// calibrate` starts it under MPI, reads its events (perfmodel/calibrate/common/events.hpp) and its state file.
#include <mpi.h>

#include <exception>

#include "perfmodel/calibrate/collective/measure.hpp"
#include "perfmodel/calibrate/collective/one_node.hpp"
#include "perfmodel/calibrate/collective/preload.hpp"
#include "perfmodel/calibrate/common/bound_pair.hpp"
#include "perfmodel/calibrate/common/events.hpp"
#include "perfmodel/calibrate/messages/measure.hpp"
#include "perfmodel/profile/machine.hpp"

namespace {

using namespace bestride;

/// Has a fifth field if ranks have rails, because measurements without them belong to another configuration.
std::string configuration(const std::string& rails) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  PMPI_Get_library_version(version, &length);
  const MachineFingerprint here = fingerprint_here(std::string_view(version, static_cast<std::size_t>(length)));
  return here.cpu + " | " + here.mpi_library + " | " + here.host_class + " | " + here.bestride +
         (rails == "off" ? "" : " | rails " + rails);
}

/// False, after rank 0 has reported it, if the two ranks are not bound to processors at the requested distance.
bool on_near_processors(const JobTopology& place, const Result<bool>& bound) {
  int all = bound && *bound && place.topology.nodes() == 1;
  PMPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (!all && place.rank == 0) {
    print_event("no-pair %s", bound ? "" : bound.error().text.c_str());
    print_event("end 0 0 0");
  }
  return all;
}

/// `bound`: whether this rank was bound, if options.near is set.
void measure(const MeasureOptions& options, const Result<bool>& bound) {
  const JobTopology place = find_job_topology();
  const std::string config = configuration(options.rails);
  if (place.rank == 0) {
    print_event("config %s", config.c_str());
    print_event("hosts %s", place.topology.nodes() > 1 ? "different" : "same");
  }
  if (options.near && place.topology.ranks() == 2 && !on_near_processors(place, bound)) return;
  switch (options.part) {
    case MeasuredPart::messages: return measure_messages(options, place, config);
    case MeasuredPart::links:
    case MeasuredPart::collectives: return measure_collectives(options, place, config);
    case MeasuredPart::exchange: return measure_exchange(options, place);
    case MeasuredPart::one_node: return measure_one_node(options, place);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Result<MeasureOptions> options = parse_options(argc, argv);
  if (!options) {
    print_event("error %s", options.error().text.c_str());
    return 1;
  }
  if (!options->preload.empty() && !options->restarted && !restart_preloaded(*options, argc, argv)) return 1;
  const Result<bool> bound = options->near ? bind_at(*options->near) : Result<bool>(false);
  MPI_Init(&argc, &argv);
  try {
    measure(*options, bound);
  } catch (const std::exception& error) {
    print_event("error %s", error.what());
    PMPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
