// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/call_kind.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

#include "telemetry/record/functions.hpp"

namespace bestride::inline telemetry {
namespace {

std::string_view group_of(std::uint16_t function) {
  const auto functions = recorded_functions();
  return function < functions.size() ? functions[function].group : "";
}

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string name_without_c(std::uint16_t function) {
  std::string name = recorded_functions()[function].name;
  if (name.ends_with("_c")) name.resize(name.size() - 2);
  return name;
}

/// "MPI_Ialltoallv_c", "MPI_Alltoallv_init" -> "alltoallv".
std::string stem_of(std::uint16_t function) {
  std::string stem = name_without_c(function).substr(4);
  for (char& c : stem) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::string_view group = group_of(function);
  if (stem.ends_with("_init") && !one_of(group, {"init", "session"})) stem.resize(stem.size() - 5);
  if (group.ends_with("-nonblocking") || one_of(stem, {"ibarrier", "iprobe", "improbe"})) stem.erase(0, 1);
  return stem;
}

CallKind kind_of_collective(std::string_view stem) {
  if (one_of(stem, {"bcast", "scatter", "scatterv"})) return CallKind::from_root;
  if (one_of(stem, {"gather", "gatherv", "reduce"})) return CallKind::to_root;
  if (one_of(stem, {"scan", "exscan"})) return CallKind::from_lower;
  return stem.starts_with("neighbor_") ? CallKind::neighborhood : CallKind::from_all;
}

CallKind find_kind(std::uint16_t function, bool collective) {
  const std::string stem = stem_of(function);
  if (stem == "finalize") return CallKind::finalize;
  if (one_of(stem, {"win_lock", "win_lock_all"})) return CallKind::lock;
  if (one_of(stem, {"win_start", "win_complete"})) return CallKind::access;
  if (one_of(stem, {"win_wait", "win_test"})) return CallKind::exposure;
  if (group_of(function) == "one-sided" || one_of(stem, {"win_flush", "win_flush_local", "win_unlock"}))
    return CallKind::one_sided;
  if (collective) return kind_of_collective(stem);
  const std::string_view group = group_of(function);
  if (group.starts_with("p2p-") || group == "partitioned" || group == "probe") {
    if (one_of(stem, {"send", "ssend", "rsend", "psend"})) return CallKind::send;
    if (one_of(stem, {"recv", "precv", "probe", "mprobe"})) return CallKind::receive;
    if (one_of(stem, {"sendrecv", "sendrecv_replace"})) return CallKind::exchange;
    return CallKind::local;  // buffered sends; receives of matched messages
  }
  if (one_of(stem, {"wait", "waitall"})) return CallKind::wait_all;
  if (one_of(stem, {"waitany", "waitsome"})) return CallKind::wait_any;
  if (group.starts_with("collective-") || group.starts_with("neighborhood-") || group == "synchronisation")
    return kind_of_collective(stem);
  if (one_of(group, {"communicator", "topology", "window", "file", "io", "process", "init", "session", "bsend-buffer"}))
    return CallKind::other;
  return CallKind::local;
}

bool find_may_block(std::uint16_t function, CallKind kind) {
  const std::string_view group = group_of(function);
  if (group.ends_with("-nonblocking") || group.ends_with("-persistent") || group == "partitioned") return false;
  const std::string name = name_without_c(function);
  if (one_of(name, {"MPI_Ibarrier", "MPI_Barrier_init", "MPI_Iprobe", "MPI_Improbe", "MPI_Comm_idup",
                    "MPI_Comm_idup_with_info"}) ||
      name.starts_with("MPI_File_i"))
    return false;
  return kind != CallKind::local;
}

/// What is known of a function, by whether it is called with an ordinal.
struct Traits {
  std::string name = "an MPI call";
  std::array<CallKind, 2> kind{CallKind::other, CallKind::other};
  std::array<bool, 2> may_block{true, true};
  bool synchronous_send = false;
};

const Traits& traits_of(std::uint16_t function) {
  static const std::vector<Traits> all = [] {
    std::vector<Traits> result(recorded_functions().size() + 1);  // the last one: unknown functions
    for (std::uint16_t i = 0; i + 1u < result.size(); ++i) {
      Traits& traits = result[i];
      traits.name = name_without_c(i);
      for (const bool collective : {false, true}) {
        traits.kind[collective] = find_kind(i, collective);
        traits.may_block[collective] = find_may_block(i, traits.kind[collective]);
      }
      traits.synchronous_send = traits.kind[0] == CallKind::send && stem_of(i) == "ssend";
    }
    return result;
  }();
  return all[std::min<std::size_t>(function, all.size() - 1)];
}

}  // namespace

const std::string& function_name(std::uint16_t function) { return traits_of(function).name; }
CallKind kind_of(std::uint16_t function, bool collective) { return traits_of(function).kind[collective]; }
bool may_block(std::uint16_t function, bool collective) { return traits_of(function).may_block[collective]; }
bool is_synchronous_send(std::uint16_t function) { return traits_of(function).synchronous_send; }

}  // namespace bestride::inline telemetry
