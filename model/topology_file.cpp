// SPDX-License-Identifier: Apache-2.0
#include "model/topology_file.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/input_file.hpp"

namespace bestride::inline model {
namespace {

constexpr std::string_view blanks = " \t\r";
constexpr const char* ignored = "; the file is ignored";

/// Removes and returns the text up to one of the characters `ends`; removes that character, too.
std::string_view take(std::string_view& text, std::string_view ends) {
  const std::size_t end = text.find_first_of(ends);
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return taken;
}

bool parse_number(std::string_view text, int* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && *number >= 0;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty())
    if (const std::string_view word = take(line, blanks); !word.empty()) words.push_back(word);
  return words;
}

/// True if `pattern` matches the host, by its full name or by the part before the first dot.
bool matches(const std::string& pattern, const std::string& host) {
  return fnmatch(pattern.c_str(), host.c_str(), 0) == 0 ||
         fnmatch(pattern.c_str(), host.substr(0, host.find('.')).c_str(), 0) == 0;
}

}  // namespace

Result<std::string> TopologyFile::read(const std::string& path) {
  const auto refused = [&path](const std::string& why) {
    return Error{"topology file '" + path + "' " + why + ignored};
  };
  Result<InputFile> file = InputFile::open(path, max_bytes);
  if (!file)
    return refused(
        "can't be read: " + file.error().text +
        "; set BESTRIDE_TOPOLOGY to a file that rank 0 can read, of at most 64 KiB (hosts as patterns, ranks as "
        "ranges)");
  std::string text(file->size(), '\0');
  text.resize(file->read(text.data(), text.size()));
  return text;
}

Error TopologyFile::error(const Line& line, const std::string& text) const {
  return {"topology file '" + name_ + "', line " + std::to_string(line.number) + ": " + text + ignored};
}

bool TopologyFile::parse_ranks(std::string_view word, std::vector<Ranks>& ranks) {
  while (!word.empty()) {
    std::string_view step = take(word, ",");
    const bool stepped = step.find(':') != std::string_view::npos;
    std::string_view last = take(step, ":");
    const bool ranged = last.find('-') != std::string_view::npos;
    Ranks one{0, 0, 1};
    if (!parse_number(take(last, "-"), &one.first)) return false;
    one.last = one.first;
    if (ranged && (!parse_number(last, &one.last) || one.last < one.first)) return false;
    if (stepped && (!parse_number(step, &one.step) || one.step == 0)) return false;
    ranks.push_back(one);
  }
  return true;
}

Result<TopologyFile> TopologyFile::parse(std::string_view text, std::string_view name) {
  TopologyFile file;
  file.name_ = name;
  for (int number = 1; !text.empty(); ++number) {
    std::string_view rest = take(text, "\n");
    const std::vector<std::string_view> words = words_of(take(rest, "#"));
    if (words.empty()) continue;
    Line line;
    line.number = number;
    line.group = words[0] == "group";
    if (!line.group && words[0] != "node")
      return file.error(line, "'" + std::string(words[0]) + "' is not known; a line begins with node or group");
    if (words.size() == 1)
      return file.error(line, "nothing is named; write ranks (0-3,8) or hosts after '" + std::string(words[0]) + "'");
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i].find_first_not_of("0123456789,-:") != std::string_view::npos)
        line.hosts.emplace_back(words[i]);
      else if (!parse_ranks(words[i], line.ranks))
        return file.error(line, "'" + std::string(words[i]) + "' is no list of ranks; write it as 0-3,8 or 0-14:2");
    }
    file.lines_.push_back(std::move(line));
  }
  return file;
}

bool TopologyFile::names_hosts() const noexcept {
  return std::any_of(lines_.begin(), lines_.end(), [](const Line& line) { return !line.hosts.empty(); });
}

Result<std::vector<int>> TopologyFile::members(const Line& line, int ranks, std::span<const std::string> hosts) const {
  std::vector<bool> named(static_cast<std::size_t>(ranks));
  for (const Ranks& some : line.ranks) {
    if (some.last >= ranks)
      return error(line, "rank " + std::to_string(some.last) + " is not among the job's " + std::to_string(ranks) +
                             " ranks; take it out");
    for (int rank = some.first; rank <= some.last && rank >= 0; rank += std::min(some.step, ranks))
      named[static_cast<std::size_t>(rank)] = true;
  }
  for (std::size_t rank = 0; rank < hosts.size() && rank < named.size(); ++rank)
    for (const std::string& pattern : line.hosts)
      if (!named[rank]) named[rank] = matches(pattern, hosts[rank]);
  std::vector<int> members;
  for (int rank = 0; rank < ranks; ++rank)
    if (named[static_cast<std::size_t>(rank)]) members.push_back(rank);
  return members;
}

Result<bool> TopologyFile::apply_nodes(std::span<const std::string> hosts, std::vector<RankLocation>& places) const {
  int next = 0;
  for (const RankLocation& place : places) next = std::max(next, place.node + 1);
  const std::vector<RankLocation> found = places;
  std::vector<int> named_by(places.size(), 0);
  for (const Line& line : lines_) {
    if (line.group) continue;
    const Result<std::vector<int>> ranks = members(line, static_cast<int>(places.size()), hosts);
    if (!ranks) return ranks.error();
    for (const int rank : *ranks) {
      const std::size_t i = static_cast<std::size_t>(rank);
      const int first = ranks->front();
      if (found[i].node != found[static_cast<std::size_t>(first)].node)
        return error(line, "ranks " + std::to_string(first) + " and " + std::to_string(rank) +
                               " are put on one node, but the MPI library says that they share no memory; put them on "
                               "different lines");
      if (named_by[i] != 0)
        return error(line, "rank " + std::to_string(rank) + " is on the node of line " + std::to_string(named_by[i]) +
                               " already; name it once");
      named_by[i] = line.number;
      places[i].node = next;
    }
    ++next;
  }
  return true;
}

Result<bool> TopologyFile::apply_groups(std::span<const std::string> hosts, std::vector<RankLocation>& places) const {
  if (std::none_of(lines_.begin(), lines_.end(), [](const Line& line) { return line.group; })) return true;
  struct Named {
    int rank, line;
  };
  std::map<int, Named> groups;  // by node
  for (const Line& line : lines_) {
    if (!line.group) continue;
    const Result<std::vector<int>> ranks = members(line, static_cast<int>(places.size()), hosts);
    if (!ranks) return ranks.error();
    for (const int rank : *ranks) {
      const Named& known =
          groups.try_emplace(places[static_cast<std::size_t>(rank)].node, Named{rank, line.number}).first->second;
      if (known.line != line.number)
        return error(line, "rank " + std::to_string(rank) + " is on the node of rank " + std::to_string(known.rank) +
                               ", which line " + std::to_string(known.line) +
                               " put into another group; name each node in one group");
    }
  }
  for (RankLocation& place : places) {
    const auto known = groups.find(place.node);
    place.group = known == groups.end() ? RankLocation::unknown : known->second.line;
  }
  return true;
}

Result<std::vector<RankLocation>> TopologyFile::apply(std::span<const RankLocation> found,
                                                      std::span<const std::string> hosts) const {
  std::vector<RankLocation> places(found.begin(), found.end());
  const Result<bool> nodes = apply_nodes(hosts, places);
  if (!nodes) return nodes.error();
  const Result<bool> groups = apply_groups(hosts, places);
  if (!groups) return groups.error();
  return places;
}

}  // namespace bestride::inline model
