// SPDX-License-Identifier: Apache-2.0
// messages [--pack] [--seconds S] [--list] [--exact] [NAME...]: measures the cases whose names start with one of NAME
// (or, with --exact, equal one of them), one JSON line each. With --pack it measures MPI_Pack and MPI_Unpack of the
// sent types on one rank instead of messages between two. With --seconds 0 it only checks the received bytes. Plain
// MPI: not linked with the library whose effect it measures.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "packing.hpp"
#include "pingpong.hpp"

namespace {

using namespace messages;

bool wanted(const std::string& name, const std::vector<std::string>& given, bool exact) {
  for (const std::string& one : given)
    if (exact ? name == one : name.starts_with(one)) return true;
  return given.empty();
}

void print(const Case& one, const char* what, const Timing& timing) {
  std::printf(
      "{\"case\": \"%s%s\", \"family\": \"%s\", \"bytes\": %td, \"block\": %.1f, \"typed_us\": %.4f, "
      "\"typed_fastest_us\": %.4f, "
      "\"contiguous_us\": %.4f, \"by_hand_us\": %.4f, "
      "\"samples\": %d, \"right\": %s}\n",
      one.name.c_str(), what, one.family.c_str(), timing.payload, timing.block, timing.typed_us,
      timing.typed_fastest_us, timing.contiguous_us, timing.by_hand_us, timing.samples,
      timing.right ? "true" : "false");
  std::fflush(stdout);
}

int run(const std::vector<std::string>& arguments) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  double seconds = 0.05;
  bool list = false, exact = false, packing = false;
  std::vector<std::string> names;
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    if (arguments[at] == "--list")
      list = true;
    else if (arguments[at] == "--exact")
      exact = true;
    else if (arguments[at] == "--pack")
      packing = true;
    else if (arguments[at] == "--seconds" && at + 1 < arguments.size())
      seconds = std::atof(arguments[++at].c_str());
    else
      names.push_back(arguments[at]);
  }
  if (ranks != (packing ? 1 : 2) && !list) {
    if (rank == 0) std::fprintf(stderr, "messages: runs on %d ranks, not %d\n", packing ? 1 : 2, ranks);
    return 2;
  }
  std::vector<Case> cases;
  add_plain(cases);
  add_ddtbench(cases);
  if (!packing && !list) send_long_messages();
  int wrong = 0, found = 0;
  for (const Case& one : cases) {
    if (!wanted(one.name, names, exact)) continue;
    ++found;
    if (list) {
      if (rank == 0) std::printf("%s\n", one.name.c_str());
      continue;
    }
    if (packing) {
      const Packing timing = measure_packing(one, seconds);
      wrong += !timing.pack.right || !timing.unpack.right;
      print(one, "/pack", timing.pack);
      print(one, "/unpack", timing.unpack);
      continue;
    }
    const Timing timing = measure(one, seconds);
    wrong += !timing.right;
    if (rank == 0) print(one, "", timing);
  }
  if (found == 0 && rank == 0) std::fprintf(stderr, "messages: no case has such a name (--list shows them)\n");
  return found == 0 ? 2 : wrong ? 1 : 0;
}

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  const int code = run({arguments + 1, arguments + count});
  MPI_Finalize();
  return code;
}
