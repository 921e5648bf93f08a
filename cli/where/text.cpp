// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cli/job/dropped.hpp"
#include "cli/job/rank_line.hpp"
#include "cli/job/rank_list.hpp"
#include "cli/where/output.hpp"
#include "cli/where/verdict.hpp"
#include "telemetry/report/quantity.hpp"

namespace bestride::inline cli {
namespace {

constexpr std::size_t most_lines = 40;
constexpr std::size_t most_jobs = 4;
constexpr std::size_t most_names = 4;  // of jobs that have ended and are not shown

class Text {
 public:
  Text(const std::vector<JobView>& views, const WhereText& options) : options_(options) {
    const auto running = static_cast<std::size_t>(
        std::count_if(views.begin(), views.end(), [](const JobView& view) { return !view.ended(); }));
    // Ended jobs, which come last, are of interest if nothing runs.
    const std::size_t shown = std::min(running ? running : views.size(), most_jobs);
    // Besides its groups a job has an empty line, a heading, a line for what is left out, and the verdict.
    verdicts_ = shown == 1 ? 10 : shown == 2 ? 3 : shown <= 4 ? 2 : 1;
    groups_ = shown == 1 ? 24 : std::max<std::size_t>(7, most_lines / shown) - 6;
    stack_lines_ = shown == 1 ? 20 : 8;
    for (std::size_t i = 0; i < shown; ++i) {
      job(views[i]);
      if (i < options.stacks.size()) stacks(views[i], options.stacks[i]);
      if (options.calls > 0) calls(views[i]);
    }
    if (running > shown) line("and " + std::to_string(running - shown) + " more jobs; 'bestride where JOB' prints one");
    if (const std::size_t first = std::max(running, shown); first < views.size()) {
      const std::size_t ended = views.size() - first;
      std::string names;
      for (std::size_t i = first; i < std::min(views.size(), first + most_names); ++i)
        names += (names.empty() ? "" : ", ") + views[i].job.name;
      line("records of " + std::to_string(ended) + (running ? "" : " more") +
           (ended == 1 ? " job that has" : " jobs that have") + " ended (" + names +
           (ended > most_names ? ", ..." : "") +
           "): 'bestride where JOB' prints one, --json all, --clean removes them");
    }
    std::size_t problems = 0;
    for (const std::string& problem : sites_.problems())
      if (++problems <= 2) line("no source lines: " + problem);
  }
  const std::string& text() const { return text_; }

 private:
  void line(const std::string& content, const char* color = nullptr) {
    text_ += options_.color && color ? color + content + "\033[0m\n" : content + "\n";
  }

  static std::string heading(const JobView& view) {
    const auto& ranks = view.job.ranks;
    std::string text = "job " + fitted(view.job.name, 80);
    if (ranks.empty()) return text + ": no readable record";
    std::int32_t size = 0;
    std::size_t alive = 0, calling = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      size = std::max(size, ranks[i].world_size);
      alive += ranks[i].alive;
      calling += view.activities[i] == Activity::calling;
    }
    text += " on " + ranks[0].host + ": " + std::to_string(alive) + (alive == 1 ? " process" : " processes");
    if (size > 0) text += " of " + std::to_string(size) + (size == 1 ? " rank" : " ranks");
    if (view.ended()) return text + ", ended";
    return text + ", " +
           (calling == 0 ? "no progress"
                         : "progressing (" + std::to_string(calling) + " of " + std::to_string(alive) + ")");
  }

  /// The groups to print: all of them, or those of most interest, in the order of their ranks.
  static std::vector<const RankGroup*> chosen(const std::vector<RankGroup>& groups, std::size_t most) {
    std::vector<const RankGroup*> result;
    result.reserve(groups.size());
    for (const RankGroup& group : groups) result.push_back(&group);
    if (result.size() <= most) return result;
    std::stable_sort(result.begin(), result.end(), [](const RankGroup* a, const RankGroup* b) {
      return std::pair(a->urgent, a->ranks.size()) > std::pair(b->urgent, b->ranks.size());
    });
    result.resize(most);
    std::sort(result.begin(), result.end());  // the vector is in the order of the ranks
    return result;
  }

  void job(const JobView& view) {
    if (!text_.empty()) line("");
    line(heading(view));
    const std::vector<RankGroup> groups = rank_groups(view, sites_);
    std::size_t ranks_left = view.job.ranks.size();
    for (const RankGroup* const group : chosen(groups, groups_)) {
      line("  " + group->text(), group->urgent ? "\033[33m" : nullptr);
      ranks_left -= std::min(ranks_left, group->ranks.size());
    }
    if (groups.size() > groups_)
      line("  and " + std::to_string(ranks_left) + (ranks_left == 1 ? " more rank" : " more ranks") +
           "; --json has all");
    const std::vector<VerdictLine> lines = verdict(view);
    for (std::size_t i = 0; i < lines.size() && i < verdicts_; ++i)
      line("  => " + lines[i].text, lines[i].alarming ? "\033[1;31m" : nullptr);
    notes(view);
  }

  void stacks(const JobView& view, const JobStacks& stacks) {
    if (view.ended()) return line("  no stacks: the job has ended");
    line("  stacks:");
    for (const std::string& text : stack_lines(stacks, stack_lines_)) line("    " + text);
  }

  void notes(const JobView& view) {
    std::int32_t size = 0;
    bool other_table = false;
    for (const RankSnapshot& rank : view.job.ranks) {
      size = std::max(size, rank.world_size);
      other_table = other_table || !rank.functions_known;
    }
    const std::size_t known = view.graph.ranks.size();
    if (const std::size_t absent = static_cast<std::size_t>(size) - known; known > 0 && absent > 0 && absent < 1u << 31)
      line("  " + std::to_string(absent) + (absent == 1 ? " rank has" : " ranks have") +
           " no record on this host: on another host, or without the preload library");
    if (other_table)
      line("  another version of bestride wrote these records, so functions can't be named; use its 'bestride where'");
    for (const std::string& text : dropped_lines(view.job.ranks)) line("  " + text);
    for (std::size_t i = 0; i < view.job.problems.size() && i < 2; ++i) line("  " + view.job.problems[i]);
    if (view.job.problems.size() > 2)
      line("  and " + std::to_string(view.job.problems.size() - 2) + " more records that can't be read");
  }

  void calls(const JobView& view) {
    for (const RankSnapshot& rank : view.job.ranks)
      for (const ThreadSnapshot& thread : rank.threads) {
        if (thread.finished.empty()) continue;
        line("  last calls of rank " + std::to_string(rank.world_rank) + ", pid " + std::to_string(rank.pid) +
             (rank.threads.size() > 1 ? ", thread " + std::to_string(thread.tid) : "") + ":");
        // More calls were read than asked for.
        const std::size_t first = thread.finished.size() - std::min(options_.calls, thread.finished.size());
        for (std::size_t i = first; i < thread.finished.size(); ++i) {
          const CallSnapshot& call = thread.finished[i];
          std::string text = "    ";
          if (rank.alive) text += seconds_text(rank.seconds_since(call.entered)) + " ago  ";
          text += call_text(rank, call, sites_);
          if (call.left > call.entered)
            text += "  " + seconds_text(static_cast<double>(call.left - call.entered) / rank.ticks_per_second);
          if (const std::string site = sites_.text(rank, call.site); !site.empty()) text += "  at " + site;
          line(text);
        }
      }
  }

  const WhereText& options_;
  std::size_t groups_ = 0, verdicts_ = 0, stack_lines_ = 0;
  CallSites sites_;
  std::string text_;
};

}  // namespace

std::string where_text(const std::vector<JobView>& views, const WhereText& options) {
  return Text(views, options).text();
}

}  // namespace bestride::inline cli
