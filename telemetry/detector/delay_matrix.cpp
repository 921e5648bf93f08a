// SPDX-License-Identifier: Apache-2.0
#include "telemetry/detector/delay_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/median.hpp"
#include "telemetry/detector/median_polish.hpp"

namespace bestride::inline telemetry {
namespace {

constexpr std::size_t least_messages = 5;  ///< of a pair and size
constexpr std::size_t least_pairs = 4;     ///< of a size
constexpr std::size_t least_entries = 6;   ///< of a matrix
constexpr std::size_t least_lines = 4;     ///< rows or columns with an effect
constexpr std::uint32_t line_entries = 3;  ///< of a row or column with an effect
constexpr double entry_spreads = 5, line_spreads = 3;
constexpr double slow_share = 0.75;  ///< of the entries of a slow row or column
constexpr std::size_t most_paths = 4;
constexpr double least_delay = 1e-7;  ///< seconds

/// Sizes that differ by less than a fifth.
int size_class(std::uint32_t bytes) { return static_cast<int>(std::lround(4 * std::log2(bytes + 1.0))); }

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto at = std::min(static_cast<std::size_t>(share * static_cast<double>(values.size())), values.size() - 1);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

/// Messages of one pair and size.
struct PairClass {
  std::uint32_t from = 0, to = 0;
  int size = 0;
  std::size_t messages = 0;
  std::uint32_t bytes = 0;
  double seconds = 0;
  bool exact = false;
};

std::vector<PairClass> pair_classes(std::span<const MessageDelay> delays,
                                    const std::function<std::uint32_t(std::int32_t)>& node_of) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, int>, std::vector<const MessageDelay*>> messages;
  for (const MessageDelay& each : delays)
    messages[{node_of(each.from), node_of(each.to), size_class(each.bytes)}].push_back(&each);
  std::vector<PairClass> result;
  for (const auto& [key, all] : messages) {
    const auto& [from, to, size] = key;
    if (from == to) continue;
    std::vector<double> seconds, exact;
    for (const MessageDelay* each : all) {
      seconds.push_back(std::max(each->seconds, least_delay));
      if (each->exact) exact.push_back(seconds.back());
    }
    const bool is_exact = exact.size() >= least_messages;
    const std::vector<double>& used = is_exact ? exact : seconds;
    if (used.size() >= least_messages)
      result.push_back({from, to, size, used.size(), all.front()->bytes, quantile(used, 0.25), is_exact});
  }
  return result;
}

/// True if row or column `line` is slower than the others by more than their spread.
bool is_slow_line(const std::vector<double>& effects, const std::vector<std::uint32_t>& entries, std::uint32_t line,
                  double residual_spread, double least_excess) {
  if (entries[line] < line_entries || effects[line] < least_excess) return false;
  std::vector<double> others;
  for (std::uint32_t i = 0; i < effects.size(); ++i)
    if (i != line && entries[i] >= line_entries) others.push_back(effects[i]);
  if (others.size() + 1 < least_lines) return false;
  const double center = median_of(others);
  for (double& other : others) other = std::abs(other - center);
  return effects[line] - center > std::max({least_excess, line_spreads * quantile(others, 0.75), 2 * residual_spread});
}

class PathFinder {
 public:
  PathFinder(std::span<const PairDelay> pairs, std::uint32_t nodes, double least_excess)
      : pairs_(pairs), least_excess_(least_excess), near_slow_(nodes, 0) {
    std::vector<MatrixEntry> entries;
    for (const PairDelay& pair : pairs) entries.push_back({pair.from, pair.to, pair.excess});
    polish_ = median_polish(entries, nodes, line_entries);
    std::vector<double> sizes;
    for (const double residual : polish_.residuals) sizes.push_back(std::abs(residual));
    // A median polish makes many residuals 0, so their median does not measure the spread.
    spread_ = 1.5 * quantile(sizes, 0.75);
  }

  std::vector<SlowNodePath> find() {
    for (std::uint32_t node = 0; node < near_slow_.size(); ++node) add_node(node);
    keep_causes();
    add_links();
    std::stable_sort(found_.begin(), found_.end(), [](const SlowNodePath& a, const SlowNodePath& b) {
      return std::pair(!is_link(a.kind), a.factor) > std::pair(!is_link(b.kind), b.factor);
    });
    if (found_.size() > most_paths) found_.resize(most_paths);
    return std::move(found_);
  }

 private:
  double excess(const PairDelay& pair) const { return pair.excess - polish_.overall; }

  /// Most entries of the line are slow, not only its median.
  bool is_slow_throughout(std::uint32_t node, bool row) const {
    std::size_t all = 0, slow = 0;
    for (const PairDelay& pair : pairs_)
      if ((row ? pair.from : pair.to) == node) ++all, slow += excess(pair) > least_excess_;
    return static_cast<double>(slow) >= slow_share * static_cast<double>(all);
  }

  void add_node(std::uint32_t node) {
    const bool sends =
        is_slow_line(polish_.rows, polish_.row_entries, node, spread_, least_excess_) && is_slow_throughout(node, true);
    const bool receives = is_slow_line(polish_.columns, polish_.column_entries, node, spread_, least_excess_) &&
                          is_slow_throughout(node, false);
    if (!sends && !receives) return;
    SlowNodePath path;
    path.kind = sends && receives ? PathKind::node : sends ? PathKind::send : PathKind::receive;
    path.node = path.other = node;
    path.factor = std::exp(std::max(sends ? polish_.rows[node] : 0, receives ? polish_.columns[node] : 0));
    const PairDelay* most = nullptr;
    for (const PairDelay& pair : pairs_) {
      if (!(sends && pair.from == node) && !(receives && pair.to == node)) continue;
      path.messages += pair.messages;
      path.exact = path.exact && pair.exact;
      if (!most || pair.messages > most->messages) most = &pair;
    }
    path.own_calls = path.exact;
    describe(path, *most);
    found_.push_back(path);
  }

  /// A call that waits for a slow node's message also completes other messages late, so neighbors of the node may seem
  /// slow, too. The node with the largest share of slow entries is the cause.
  void keep_causes() {
    std::vector<double> shares(near_slow_.size(), 0), entries(near_slow_.size(), 0);
    for (const PairDelay& pair : pairs_)
      for (const std::uint32_t node : {pair.from, pair.to})
        ++entries[node], shares[node] += excess(pair) > least_excess_;
    for (std::size_t node = 0; node < shares.size(); ++node) shares[node] /= std::max(entries[node], 1.0);
    std::stable_sort(found_.begin(), found_.end(), [&](const SlowNodePath& a, const SlowNodePath& b) {
      return std::pair(shares[a.node], a.factor) > std::pair(shares[b.node], b.factor);
    });
    std::vector<SlowNodePath> causes;
    for (const SlowNodePath& path : found_) {
      if (!path.exact && near_slow_[path.node]) continue;
      causes.push_back(path);
      for (const PairDelay& pair : pairs_)
        if (pair.from == path.node || pair.to == path.node) near_slow_[pair.from] = near_slow_[pair.to] = 1;
    }
    found_ = std::move(causes);
  }

  static void describe(SlowNodePath& path, const PairDelay& pair) {
    path.bytes = pair.bytes;
    path.seconds = pair.seconds;
    path.typical = pair.typical;
  }

  void add_links() {
    const double limit = std::max(least_excess_, entry_spreads * spread_);
    std::vector<const PairDelay*> links;
    for (std::size_t i = 0; i < pairs_.size(); ++i)
      if (polish_.residuals[i] > limit && excess(pairs_[i]) > limit &&
          (pairs_[i].exact || (!near_slow_[pairs_[i].from] && !near_slow_[pairs_[i].to])))
        links.push_back(&pairs_[i]);
    std::map<std::uint32_t, std::vector<const PairDelay*>> by_node;
    for (const PairDelay* link : links) by_node[link->from].push_back(link), by_node[link->to].push_back(link);
    const auto reversed = [](const PairDelay& a, const PairDelay& b) { return a.from == b.to && a.to == b.from; };
    for (const PairDelay* link : links) {
      const PairDelay* back = nullptr;
      bool alone = true;
      for (const std::uint32_t node : {link->from, link->to})
        for (const PairDelay* other : by_node[node])
          if (other != link) {
            if (reversed(*link, *other))
              back = other;
            else
              alone = false;
          }
      // Two links of one node whose messages were completed together seem slow: either may be the cause.
      if (!link->exact && !alone) continue;
      if (back && link->from > link->to && (back->exact || alone)) continue;  // reported with the other direction
      SlowNodePath path;
      path.kind = back ? PathKind::two_way_link : PathKind::link;
      path.node = link->from;
      path.other = link->to;
      path.factor = std::exp(back ? std::max(excess(*link), excess(*back)) : excess(*link));
      path.messages = link->messages + (back ? back->messages : 0);
      path.exact = link->exact || back;  // between two nodes there is no other pair to take for it
      path.own_calls = link->exact && (!back || back->exact);
      describe(path, *link);
      found_.push_back(path);
    }
  }

  const std::span<const PairDelay> pairs_;
  const double least_excess_;
  std::vector<char> near_slow_;  ///< by node: it is slow, or has messages with a slow one
  MedianPolish polish_;
  double spread_ = 0;  ///< of the residuals
  std::vector<SlowNodePath> found_;
};

}  // namespace

std::vector<PairDelay> pair_delays(std::span<const MessageDelay> delays,
                                   const std::function<std::uint32_t(std::int32_t)>& node_of) {
  const std::vector<PairClass> classes = pair_classes(delays, node_of);
  std::map<int, std::vector<double>> by_size;
  for (const PairClass& each : classes) by_size[each.size].push_back(each.seconds);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<const PairClass*>> by_pair;
  for (const PairClass& each : classes)
    if (by_size[each.size].size() >= least_pairs) by_pair[{each.from, each.to}].push_back(&each);
  std::map<int, double> typical;
  for (auto& [size, seconds] : by_size) typical[size] = median_of(std::move(seconds));
  std::vector<PairDelay> result;
  for (const auto& [nodes, all] : by_pair) {
    PairDelay pair;
    pair.from = nodes.first;
    pair.to = nodes.second;
    std::vector<double> excess;
    std::size_t exact = 0, most = 0;
    for (const PairClass* each : all) {
      excess.push_back(std::log(each->seconds / typical[each->size]));
      pair.messages += each->messages;
      exact += each->exact ? each->messages : 0;
      if (each->messages <= most) continue;
      most = each->messages;
      pair.bytes = each->bytes;
      pair.seconds = each->seconds;
      pair.typical = typical[each->size];
    }
    pair.excess = median_of(std::move(excess));
    pair.exact = 2 * exact > pair.messages;
    result.push_back(pair);
  }
  return result;
}

std::vector<SlowNodePath> find_slow_paths(std::span<const PairDelay> pairs, std::uint32_t nodes, double least_factor) {
  if (pairs.size() < least_entries) return {};
  return PathFinder(pairs, nodes, std::log(least_factor)).find();
}

}  // namespace bestride::inline telemetry
