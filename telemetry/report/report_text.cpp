// SPDX-License-Identifier: Apache-2.0
// The end-of-job report as text: at most 40 lines of 100 columns for any job.
#include <algorithm>
#include <map>

#include "telemetry/report/ledger.hpp"
#include "telemetry/report/quantity.hpp"

namespace bestride::inline telemetry {
namespace {

constexpr std::size_t width = 100;
// 2 lines of heading, 3 + 17 for the table, 2 + 8 for calls left to MPI, 3 for engine and cache, 2 + 3 at the end: 40.
constexpr std::size_t max_done = 17;
constexpr std::size_t max_left = 8;

struct Sum {
  std::uint64_t calls = 0, bytes = 0;
  double seconds = 0, saved = 0, engine = 0;
  void add(const LedgerLine& line) {
    calls += line.calls, bytes += line.bytes;
    seconds += line.seconds, saved += line.saved_seconds, engine += line.engine_seconds;
  }
};

bool left_alone(const LedgerLine& line) { return line.strategy == "forward" || !line.reason.empty(); }

/// The meaning of a reason code; an unknown code is printed as it is.
std::string explained(const std::string& reason) {
  static const std::map<std::string, const char*> meanings = {
      {"", "no reason was recorded"},
      {"contiguous", "contiguous: there is nothing to pack"},
      {"predefined", "predefined: one of MPI's own types, nothing to pack"},
      {"nothing to move", "nothing to move: no bytes, or no peer"},
      {"model", "model: no gain is predicted"},
      {"forced", "forced: BESTRIDE_STRATEGY requests it"},
      {"size", "size: larger than BESTRIDE_PACK_LIMIT"},
      {"opaque", "opaque: the type can't be represented"},
      {"first use", "first use: planned from the second use on"},
      {"new communicator", "new communicator: one of its first calls"},
      {"not respellable", "not respellable: no equivalent datatype"},
      {"count", "count: too large for the call's count type"},
      {"extent", "extent: blocks would not keep their positions"},
      {"address", "address: outside the address space"},
      {"bounds", "bounds: the packed buffer is too small"},
      {"memory", "memory: no memory for a copy or for shared memory"},
      {"collective size", "collective size: not faster at this size"},
      {"order", "order: not known to be the MPI library's"},
      {"unsupported", "unsupported: always left to MPI"},
      {"not all ranks", "not all ranks: not every one has the preload"},
      {"collectives off", "collectives off: in this job, or this form"},
  };
  const auto found = meanings.find(reason);
  return found == meanings.end() ? reason : found->second;
}

class Page {
 public:
  void line(const std::string& text = "") { (text_ += fitted(text, width)) += '\n'; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string left(const std::string& text, std::size_t columns) {
  std::string out = fitted(text, columns);
  return out + std::string(columns - out.size(), ' ');
}
std::string right(const std::string& text, std::size_t columns) {
  std::string out = fitted(text, columns);
  return std::string(columns - out.size(), ' ') + out;
}

/// 19 + 1 + 31 + 1 + 8 + 1 + 8 + 2 + 11 + 1 + 8 + 1 + 8 = 100 columns.
std::string row(const std::string& call, const std::string& layout, const std::string& calls, const std::string& bytes,
                const std::string& strategy, const std::string& time, const std::string& saved) {
  return left(call, 19) + " " + left(layout, 31) + " " + right(calls, 8) + " " + right(bytes, 8) + "  " +
         left(strategy, 11) + " " + right(time, 8) + " " + right(saved, 8);
}
std::string row(const std::string& call, const std::string& layout, const std::string& strategy, const Sum& sum) {
  return row(call, layout, count_text(sum.calls), bytes_text(sum.bytes), strategy, seconds_text(sum.seconds),
             sum.saved == 0 ? "-" : seconds_text(sum.saved));
}

void put_done(Page& page, const std::vector<const LedgerLine*>& done) {
  page.line();
  page.line(row("call", "layout", "calls", "bytes", "strategy", "time", "saved"));
  const std::size_t shown = done.size() <= max_done ? done.size() : max_done - 1;
  Sum total, rest;
  for (std::size_t i = 0; i < done.size(); ++i) {
    total.add(*done[i]);
    Sum one;
    one.add(*done[i]);
    if (i < shown)
      page.line(row(done[i]->call, done[i]->layout, done[i]->strategy, one));
    else
      rest.add(*done[i]);
  }
  if (shown < done.size())
    page.line(row("(" + std::to_string(done.size() - shown) + " more lines)", "in the JSON report", "", rest));
  page.line(row("total", "", "", total));
}

void put_left_alone(Page& page, const std::map<std::string, Sum>& reasons) {
  std::vector<std::pair<std::string, Sum>> ordered(reasons.begin(), reasons.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  page.line();
  const auto put_row = [&](const std::string& why, const std::string& calls, const std::string& bytes,
                           const std::string& time) {
    page.line(left(why, 51) + " " + right(calls, 8) + " " + right(bytes, 8) + std::string(14, ' ') + right(time, 8));
  };
  put_row("left to MPI, because", "calls", "bytes", "time");
  const std::size_t shown = ordered.size() <= max_left ? ordered.size() : max_left - 1;
  Sum rest;
  const auto put = [&](const std::string& why, const Sum& sum) {
    put_row("  " + why, count_text(sum.calls), bytes_text(sum.bytes), seconds_text(sum.seconds));
  };
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    if (i < shown) {
      put(explained(ordered[i].first), ordered[i].second);
    } else {
      rest.calls += ordered[i].second.calls, rest.bytes += ordered[i].second.bytes,
          rest.seconds += ordered[i].second.seconds;
    }
  }
  if (shown < ordered.size())
    put("(" + std::to_string(ordered.size() - shown) + " more reasons, in the JSON report)", rest);
}

/// What the user can do about calls that were left to MPI; at most three lines.
std::vector<std::string> advice(const ReportHeader& header, const std::map<std::string, Sum>& reasons) {
  std::vector<std::string> lines;
  if (reasons.count("model") && (header.profile.empty() || header.profile.starts_with("built-in")))
    lines.emplace_back("model: the built-in profile is cautious; 'bestride calibrate' measures this machine");
  if (header.gains_if_bound && (reasons.count("contiguous") || reasons.count("predefined")))
    lines.emplace_back("contiguous: bind ranks (mpiexec -bind-to core, srun --cpu-bind=cores) so that near ones gain");
  if (reasons.count("not all ranks"))
    lines.emplace_back(
        "not all ranks: start the job with 'bestride run', or see BESTRIDE_ALL_RANKS (docs/collectives.md)");
  if (reasons.count("order"))
    lines.emplace_back("order: BESTRIDE_REASSOCIATE=1 permits any order; sums may differ in the last bits");
  if (reasons.count("first use")) lines.emplace_back("first use: make datatypes once and use them for many messages");
  if (reasons.count("size")) lines.emplace_back("size: raise BESTRIDE_PACK_LIMIT, if there is memory");
  if (reasons.count("forced")) lines.emplace_back("forced: unset BESTRIDE_STRATEGY");
  if (lines.size() > 3) lines.resize(3);
  return lines;
}

/// Of its lines, "engine: 3.00 GiB packed and unpacked in 1.50 s; the MPI library's engine takes 4.50 s for them".
std::string engine_text(const Sum& sum) {
  return "engine: " + bytes_text(sum.bytes) + " packed and unpacked in " + seconds_text(sum.engine) +
         "; the MPI library's engine takes " + seconds_text(sum.engine + sum.saved) + " for them";
}

/// At most 99 columns.
std::string cache_text(const CacheSums& sums) {
  return "cache: " + count_text(sums.hits) + " hits saved " + bytes_text(sums.hit_bytes) + " on the wire, " +
         count_text(sums.deltas) + " deltas " + bytes_text(sums.delta_saved_bytes) + "; " + count_text(sums.misses) +
         " misses, " + count_text(sums.paused) + " paused";
}

}  // namespace

std::string report_text(const ReportHeader& header, const std::vector<LedgerLine>& lines, const CacheSums& cache) {
  Page page;
  const std::string library = header.mpi_library.substr(0, header.mpi_library.find('\n'));
  page.line("bestride " BESTRIDE_VERSION ": " + std::to_string(header.ranks) +
            (header.ranks == 1 ? " rank" : " ranks") + ", " + seconds_text(header.job_seconds) + ", " +
            (library.empty() ? "MPI library unknown" : library));
  page.line("profile: " + (header.profile.empty() ? "built-in" : header.profile));

  std::vector<const LedgerLine*> done;
  std::map<std::string, Sum> reasons;
  Sum engine;
  for (const LedgerLine& line : lines) {
    if (line.engine_seconds > 0) engine.add(line);
    if (left_alone(line))
      reasons[line.reason].add(line);
    else
      done.push_back(&line);
  }
  if (lines.empty())
    page.line("no call with a buffer and a datatype was seen; 'bestride doctor PROGRAM' says what may be the cause");
  if (!done.empty()) put_done(page, done);
  if (!reasons.empty()) put_left_alone(page, reasons);
  const bool has_cache = cache.hits + cache.deltas + cache.misses > 0;
  if (has_cache || engine.engine > 0) page.line();
  if (engine.engine > 0) page.line(engine_text(engine));
  if (has_cache) page.line(cache_text(cache));
  if (!lines.empty()) {
    page.line();
    page.line(engine.engine > 0 ? "all ranks summed; saved is the model's estimate, of the engine what samples show"
                                : "all ranks summed; saved is the model's estimate against leaving the call to MPI, "
                                  "not a measurement");
    for (const std::string& line : advice(header, reasons)) page.line("next: " + line);
  }
  return page.text();
}

}  // namespace bestride::inline telemetry
