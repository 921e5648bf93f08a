// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/hierarchical/rail.hpp"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>

#include "base/message.hpp"
#include "base/variables.hpp"
#include "interpose/back/locality.hpp"
#include "interpose/back/runtime.hpp"
#include "model/rails.hpp"

namespace bestride {
namespace {

/// Ranks of the job, from the launcher; 0: it does not say.
int ranks_of_job() noexcept {
  for (const char* name : {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"})
    if (const char* text = std::getenv(name); text && std::atoi(text) > 0) return std::atoi(text);
  return 0;
}

/// Returns how many of the variables were free.
int hand_over(const std::string& rail) noexcept {
  int handed = 0;
  for (const char* name : device_variables(rail)) {
    const char* before = std::getenv(name);
    if (before && *before) continue;
    handed += setenv(name, rail.c_str(), 1) == 0;
  }
  return handed;
}

/// Who says which rails there are. What a user names was meant, and what a profile names other hosts may take, so it is said where it can't be had.
enum class Chosen { by_user, by_nics, by_profile };

struct Choice {
  Chosen chosen;
  std::string rails;  ///< the list; by_nics: "auto"
  auto say() const noexcept { return chosen == Chosen::by_nics ? say_info : say_once; }
  std::string text() const { return (chosen == Chosen::by_profile ? "the profile's rails " : "BESTRIDE_RAILS=") + rails; }
};

void take_one_of(const Rails& rails, const Locality& here, const Choice& choice) {
  const std::string& rail = rails[static_cast<std::size_t>(rail_of(here.local_rank, static_cast<int>(rails.size())))];
  if (hand_over(rail) > 0)
    say_info("rails.taken", "local rank %d takes rail %s%s", here.local_rank, rail.c_str(), choice.chosen == Chosen::by_profile ? ", as the profile says" : "");
  else if (choice.chosen == Chosen::by_user && here.local_rank == 0)
    say_once("rails", "BESTRIDE_RAILS is not used: %s is set; unset one of them", device_variables(rail)[0]);
}

void take(const Choice& choice) {
  const bool named = choice.chosen == Chosen::by_user;
  // How many ranks there are in all is not needed to know which of its host's this one is.
  const Locality here = Locality::from_environment(0, std::numeric_limits<int>::max());
  if (here.local_ranks == 0) {
    if (named)
      say_once("rails", "BESTRIDE_RAILS is not used: this launcher does not tell ranks their number on their host; set UCX_NET_DEVICES for each");
    return;
  }
  if (!named && ranks_of_job() <= here.local_ranks) return;
  const Result<Rails> rails = choice.chosen == Chosen::by_nics ? equal_rails(nics_here()) : named_rails(choice.rails, nics_here());
  if (!rails) {
    if (here.local_rank == 0)
      choice.say()("rails", "%s: %s; the MPI library's own choice stands%s", choice.text().c_str(), rails.error().text.c_str(),
                   choice.chosen == Chosen::by_profile ? "; if the job can't connect, set BESTRIDE_RAILS=off or calibrate again" : "");
    return;
  }
  // With fewer ranks than NICs some NIC would lie idle that a transport of several rails would use.
  if (!named && here.local_ranks < static_cast<int>(rails->size())) return;
  take_one_of(*rails, here, choice);
}

/// Nothing: no rank is to take one.
std::optional<Choice> choice_of(const std::string& wanted) {
  if (wanted == "off") return std::nullopt;
  if (wanted == "auto") return Choice{Chosen::by_nics, wanted};
  if (!wanted.empty() && wanted != "profile") return Choice{Chosen::by_user, wanted};
  const Rails& measured = runtime().chooser().profile().rails;
  if (measured.empty()) return std::nullopt;
  return Choice{Chosen::by_profile, list_of(measured)};
}

}  // namespace

void take_a_rail() noexcept {
  static std::atomic<bool> done{false};
  if (done.exchange(true)) return;
  try {
    if (const auto choice = choice_of(Settings::get().text("BESTRIDE_RAILS"))) take(*choice);
  } catch (...) {
    say_once("rails", "no memory to choose a rail; the MPI library's own choice stands");
  }
}

}  // namespace bestride
