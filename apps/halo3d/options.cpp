// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <cstdio>

#include "apps/common/command_line.hpp"

namespace halo3d {
namespace {

using namespace command_line;

constexpr Named<Method> methods[] = {{Method::isend_waitall, "isend-waitall"},
                                     {Method::isend_waitany, "isend-waitany"},
                                     {Method::sendrecv, "sendrecv"},
                                     {Method::persistent, "persistent"},
                                     {Method::neighbor_alltoallw, "neighbor-alltoallw"}};
constexpr Named<Spelling> spellings[] = {
    {Spelling::subarray, "subarray"}, {Spelling::vector, "vector"}, {Spelling::hindexed, "hindexed"}};
constexpr Named<Element> elements[] = {{Element::float32, "float"}, {Element::float64, "double"}};
constexpr Named<Storage> storages[] = {{Storage::separate, "separate"}, {Storage::interleaved, "interleaved"}};
constexpr Named<Messages> messagings[] = {{Messages::joined, "joined"}, {Messages::separate, "separate"}};

Setter neighbor_count(int& target) {
  return [&target](const std::string& text) {
    if (text == "6" || text == "26") return target = text == "6" ? 6 : 26, std::string();
    return std::string("6 or 26");
  };
}

/// "X,Y,Z": ranks along x, y, z.
Setter rank_grid(Triple& target) {
  return [&target](const std::string& text) {
    Triple grid{};
    char rest = 0;
    const bool good = std::sscanf(text.c_str(), "%d,%d,%d%c", &grid[2], &grid[1], &grid[0], &rest) == 3 &&
                      grid[0] >= 0 && grid[1] >= 0 && grid[2] >= 0;
    if (good) return target = grid, std::string();
    return std::string("three numbers X,Y,Z (0: chosen)");
  };
}

}  // namespace

Parsed parse(const std::vector<std::string>& arguments) {
  Options options;
  const command_line::Valued valued = {
      {"--nx", whole(options.cells[2], 1, 1 << 20)},
      {"--ny", whole(options.cells[1], 1, 1 << 20)},
      {"--nz", whole(options.cells[0], 1, 1 << 20)},
      {"--grid", rank_grid(options.grid)},
      {"--radius", whole(options.radius, 1, 1024)},
      {"--quantities", whole(options.quantities, 1, 256)},
      {"--exchanged", whole(options.exchanged, 1, 256)},
      {"--iterations", whole(options.iterations, 1, 1 << 30)},
      {"--warmup", whole(options.warmup, 0, 1 << 30)},
      {"--damage", whole(options.damage, 0, 1 << 20)},
      {"--type", one_of(options.element, elements)},
      {"--storage", one_of(options.storage, storages)},
      {"--messages", one_of(options.messages, messagings)},
      {"--method", one_of(options.method, methods)},
      {"--spelling", one_of(options.spelling, spellings)},
      {"--neighbours", neighbor_count(options.neighbors)},
      {"--json", file_name(options.json)},
  };
  const command_line::Flags flags = {
      {"--periodic", [&] { options.periodic = true; }},
      {"--open", [&] { options.periodic = false; }},
      {"--device", [&] { options.device = true; }},
      {"--force", [&] { options.force = true; }},
      {"--sweep", [&] { options.sweep = true; }},
      {"--help", [&] { options.help = true; }},
      {"-h", [&] { options.help = true; }},
  };
  if (std::string problem = command_line::parse(arguments, valued, flags); !problem.empty()) return {{}, problem};
  return {options, ""};
}

std::string validate(const Options& options, int ranks) {
  for (int dimension = 0; dimension < 3; ++dimension)
    if (options.cells[dimension] < options.radius)
      return "--radius " + std::to_string(options.radius) + " is more than the " +
             std::to_string(options.cells[dimension]) + " cells a rank has along " + "zyx"[dimension];
  if (options.exchanged > options.quantities)
    return "--exchanged " + std::to_string(options.exchanged) + " is more than --quantities " +
           std::to_string(options.quantities);
  long long fixed = 1;
  bool open = false;
  for (const int along : options.grid) along ? void(fixed *= along) : void(open = true);
  if (open ? ranks % fixed != 0 : ranks != fixed)
    return "--grid does not fit " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
  return "";
}

std::string usage() {
  return "halo3d: a checked 3-D halo exchange\n"
         "  --nx N --ny N --nz N      interior cells of each rank (32)\n"
         "  --grid X,Y,Z              ranks along x, y, z; 0 is chosen (0,0,0)\n"
         "  --radius N                halo width in cells (1)\n"
         "  --quantities N            values per cell (1);  --exchanged N: only the first N are exchanged (all)\n"
         "  --storage S               separate: an array per quantity | interleaved: an array of structs (separate)\n"
         "  --messages M              joined: one message per neighbor | separate: one per neighbor and quantity "
         "(joined)\n"
         "  --type T                  double | float (double)\n"
         "  --spelling S              subarray | vector | hindexed: datatype of a face (subarray)\n"
         "  --method M                isend-waitall | isend-waitany | sendrecv | persistent | neighbor-alltoallw\n"
         "  --neighbours N            6 | 26 (26)\n"
         "  --periodic | --open       whether the domain wraps around (periodic)\n"
         "  --device                  the arrays are in GPU memory, filled and checked there; needs the preload or a "
         "GPU-aware MPI\n"
         "  --force                   with --device: pass device pointers to any MPI\n"
         "  --iterations N --warmup N measured and unmeasured exchanges (20, 2); all are checked\n"
         "  --json FILE               the report as JSON; - for standard output\n"
         "  --sweep                   every method, spelling, neighborhood and border at radius 1 to 3, on a small "
         "domain\n"
         "  --damage N                spoil N received cells after each exchange, to see the check find them\n";
}

const char* name_of(Method value) { return name_in(methods, value); }
const char* name_of(Spelling value) { return name_in(spellings, value); }
const char* name_of(Element value) { return name_in(elements, value); }
const char* name_of(Storage value) { return name_in(storages, value); }
const char* name_of(Messages value) { return name_in(messagings, value); }

}  // namespace halo3d
