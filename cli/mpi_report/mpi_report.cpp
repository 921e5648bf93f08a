// SPDX-License-Identifier: Apache-2.0
#include "cli/mpi_report/mpi_report.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "cli/job/rank_line.hpp"
#include "telemetry/report/quantity.hpp"
#include "telemetry/waits/call_kind.hpp"
#include "telemetry/waits/members.hpp"

namespace bestride::inline cli {
namespace {

std::vector<MpiReport::Communicator> communicators_of(const JobView& view) {
  static constexpr const char* kinds[] = {"", "communicator", "intercommunicator", "window", "file"};
  CallSites sites;
  // Those of one member, as MPI_COMM_SELF, are counted together.
  std::map<std::tuple<std::uint64_t, std::string, std::string, std::int32_t>, MpiReport::Communicator> found;
  for (const RankSnapshot& rank : view.job.ranks)
    for (const CommunicatorSnapshot& known : rank.communicators) {
      const std::string kind = kinds[std::min<std::size_t>(static_cast<std::size_t>(known.kind), 4)];
      const std::int32_t size = telemetry::member_count(known);
      const std::string name =
          size == 1 || !known.name.empty() ? known.name : communicator_text(rank, known.index, sites);
      MpiReport::Communicator& sum = found[{size == 1 ? 0 : known.uid, name, kind, size}];
      sum.name = name;
      sum.kind = kind;
      sum.size = size;
      ++sum.members_seen;
      sum.collectives = std::max<std::uint64_t>(sum.collectives, known.collectives);
    }
  std::vector<MpiReport::Communicator> result;
  result.reserve(found.size());
  for (auto& [key, communicator] : found) result.push_back(std::move(communicator));
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) {
    return std::pair(a.collectives, a.size) > std::pair(b.collectives, b.size);
  });
  return result;
}

void note(std::vector<std::string>& notes, std::uint64_t number, const std::string& text) {
  if (number > 0) notes.push_back(count_text(number) + " " + text);
}

std::vector<std::string> notes_of(const JobTime& time, const JobView& view) {
  std::vector<std::string> notes;
  const auto size = static_cast<std::size_t>(std::max(time.size, 0));
  if (size > time.ranks.size())
    notes.push_back(std::to_string(size - time.ranks.size()) + " of " + std::to_string(size) +
                    " ranks are left out: they have no record here (on another host, or without the preload library)");
  const auto incomplete = std::count_if(time.ranks.begin(), time.ranks.end(), [](auto& r) { return r.incomplete; });
  if (incomplete > 0)
    notes.push_back(std::to_string(incomplete) + " of " + std::to_string(time.ranks.size()) +
                    " ranks did not return from MPI_Finalize; their times end where they were last seen");
  if (std::any_of(time.ranks.begin(), time.ranks.end(),
                  [](const RankTime& rank) { return rank.mpi.timed < rank.mpi.calls; }))
    notes.push_back("times are estimates: some of the calls were timed, " + count_text(time.mpi.timed) + " of " +
                    count_text(time.mpi.calls));
  note(notes, time.untimed, "calls are at places none of whose calls was timed; their time is missing");
  note(notes, time.sites_dropped, "places did not fit in the records (512 a rank); their calls are missing");
  note(notes, time.peers_dropped, "messages did not fit in the records' tables of peers (512 a rank)");
  note(notes, time.threads_dropped, "threads did not fit in the records (32 a rank); their calls are missing");
  note(notes, time.foreign_peers, "peers are not known as ranks of MPI_COMM_WORLD and are missing in the matrix");
  if (time.other_table)
    notes.push_back("another version of bestride wrote these records, so functions can't be named; use its command");
  if (!time.ranks.empty() && time.sites.empty())
    notes.push_back("the records have no call sites: the ranks made no recorded MPI call");
  for (std::size_t i = 0; i < view.job.problems.size() && i < 2; ++i) notes.push_back(view.job.problems[i]);
  if (view.job.problems.size() > 2)
    notes.push_back(std::to_string(view.job.problems.size() - 2) + " more records can't be read");
  return notes;
}

/// Without words that carry no information.
std::string shortened(std::string place) {
  static const std::string anonymous = "(anonymous namespace)::";
  for (std::size_t at; (at = place.find(anonymous)) != std::string::npos;) place.erase(at, anonymous.size());
  return place;
}

/// Of Served, what the library did first.
std::vector<std::string> names_of(std::uint16_t served) {
  constexpr std::pair<Served, const char*> names[] = {
      {served_by_engine, "engine"},   {served_packed, "pack"},          {served_respelled, "respell"},
      {served_from_device, "device"}, {served_in_one_node, "one node"}, {served_hierarchically, "hierarchical"},
      {served_by_mpi, "MPI"}};
  std::vector<std::string> result;
  for (const auto& [bit, name] : names)
    if (served & bit) result.emplace_back(name);
  return result;
}

MpiReport::Function row_of(const std::string& name, const CallSums& sums) {
  return {name, sums.calls, sums.timed, sums.bytes, sums.seconds};
}

}  // namespace

double MpiReport::mean_share() const noexcept {
  double sum = 0;
  for (const Rank& rank : ranks) sum += rank.share();
  return ranks.empty() ? 0 : sum / static_cast<double>(ranks.size());
}

MpiReport make_mpi_report(const JobView& view, double started, CallSites& places) {
  const JobTime time = measure_job(view.job.ranks, started);
  MpiReport report;
  report.bestride = BESTRIDE_VERSION;
  report.job = view.job.name;
  report.started = started;
  report.size = time.size;
  report.seconds = time.seconds;
  report.total = row_of("", time.mpi);
  report.collective_wait = {time.collective_wait.instances, time.collective_wait.seconds, time.collective_wait.waited};
  for (const RankTime& found : time.ranks) {
    const RankSnapshot& rank = view.job.ranks[found.snapshot];
    if (report.ranks.empty()) report.executable = rank.executable, report.abi = rank.abi;
    report.ranks.push_back({rank.world_rank, rank.host, rank.pid, found.seconds, found.mpi.seconds, found.mpi.calls,
                            found.mpi.timed, found.mpi.bytes, found.polls, rank.sampling, found.incomplete});
  }
  for (const SiteTime& site : time.sites)
    report.sites.push_back({function_name(site.function),
                            shortened(places.text(view.job.ranks[site.snapshot], site.site)),
                            site.sums.calls,
                            site.sums.timed,
                            site.sums.bytes,
                            site.sums.seconds,
                            site.most_seconds,
                            site.ranks,
                            site.least_rank,
                            site.most_rank,
                            site.least_total,
                            site.most_total,
                            site.variation,
                            {site.histogram.begin(), site.histogram.end()},
                            names_of(site.served),
                            site.saved_seconds});
  std::map<std::string, CallSums> functions;  // a function and its large-count form have one name
  for (const FunctionTime& function : time.functions) functions[function_name(function.function)].add(function.sums);
  for (const auto& [name, sums] : functions) report.functions.push_back(row_of(name, sums));
  std::stable_sort(report.functions.begin(), report.functions.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  for (const PairTraffic& pair : time.pairs)
    report.pairs.push_back(
        {static_cast<std::uint64_t>(pair.from), static_cast<std::uint64_t>(pair.to), pair.messages, pair.bytes});
  report.communicators = communicators_of(view);
  report.notes = notes_of(time, view);
  for (const std::string& problem : places.problems()) report.notes.push_back("no source lines: " + problem);
  return report;
}

}  // namespace bestride::inline cli
