// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/rail_selection.hpp"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>

#include "base/message.hpp"
#include "base/variables.hpp"
#include "interpose/objects/runtime.hpp"
#include "interpose/peers/locality.hpp"
#include "model/rails.hpp"

namespace bestride::inline interpose {
namespace {

/// Returns the number of variables that were not set before.
int hand_over(const std::string& rail) noexcept {
  int handed = 0;
  for (const char* name : device_variables(rail)) {
    const char* before = std::getenv(name);
    if (before && *before) continue;
    handed += setenv(name, rail.c_str(), 1) == 0;
  }
  return handed;
}

/// Who named the rails. A rail that is not available on this host gives a warning if the user or the profile named it.
enum class ChosenBy { by_user, by_nics, by_profile };

struct RailChoice {
  ChosenBy chosen;
  std::string rails;  ///< the list; by_nics: "auto"
  auto say() const noexcept { return chosen == ChosenBy::by_nics ? log_info_once : warn_once; }
  std::string text() const {
    return (chosen == ChosenBy::by_profile ? "the profile's rails " : "BESTRIDE_NICS=") + rails;
  }
};

void take_one_of(const Rails& rails, const Locality& here, const RailChoice& choice) {
  const std::string& rail = rails[static_cast<std::size_t>(rail_of(here.local_rank, static_cast<int>(rails.size())))];
  if (hand_over(rail) > 0)
    log_info_once("rails.taken", "local rank %d uses NIC %s%s", here.local_rank, rail.c_str(),
                  choice.chosen == ChosenBy::by_profile ? " (from the profile)" : "");
  else if (choice.chosen == ChosenBy::by_user && here.local_rank == 0)
    warn_once("rails", "BESTRIDE_NICS is not used: %s is set; unset one of them", device_variables(rail)[0]);
}

void take(const RailChoice& choice) {
  const bool named = choice.chosen == ChosenBy::by_user;
  // The local rank is enough; the number of ranks in the job is not needed.
  const Locality here = Locality::from_environment(0, std::numeric_limits<int>::max());
  if (here.local_ranks == 0) {
    if (named)
      warn_once_per_job("rails",
                        "BESTRIDE_NICS is not used: the launcher does not provide the local rank; set UCX_NET_DEVICES "
                        "for each rank");
    return;
  }
  if (!named && ranks_of_job() <= here.local_ranks) return;
  const Result<Rails> rails =
      choice.chosen == ChosenBy::by_nics ? equal_rails(nics_here()) : named_rails(choice.rails, nics_here());
  if (!rails) {
    if (here.local_rank == 0)
      choice.say()(
          "rails", "%s: %s; the MPI library chooses the NIC%s", choice.text().c_str(), rails.error().text.c_str(),
          choice.chosen == ChosenBy::by_profile ? "; if the job can't connect, set BESTRIDE_NICS=off or calibrate again"
                                                : "");
    return;
  }
  // With fewer ranks than NICs, some NICs would be idle, although a multi-rail network layer would use them.
  if (!named && here.local_ranks < static_cast<int>(rails->size())) return;
  take_one_of(*rails, here, choice);
}

/// No value: ranks don't select a NIC.
std::optional<RailChoice> choice_of(const std::string& wanted) {
  if (wanted == "off") return std::nullopt;
  if (wanted == "auto") return RailChoice{ChosenBy::by_nics, wanted};
  if (!wanted.empty() && wanted != "profile") return RailChoice{ChosenBy::by_user, wanted};
  if (!profile_may_have_rails(find_profile_path())) return std::nullopt;
  const MachineProfile* const profile = runtime().loaded_profile();
  if (!profile || profile->rails.empty()) return std::nullopt;
  return RailChoice{ChosenBy::by_profile, list_of(profile->rails)};
}

}  // namespace

void select_rail() noexcept {
  static std::atomic<bool> done{false};
  if (done.exchange(true)) return;
  try {
    if (const auto choice = choice_of(Settings::get().text("BESTRIDE_NICS"))) take(*choice);
  } catch (...) {
    warn_once("rails", "no memory to choose a NIC; the MPI library chooses the NIC");
  }
}

}  // namespace bestride::inline interpose
