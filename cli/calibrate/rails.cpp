// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate/rails.hpp"

#include <chrono>
#include <cstdio>

#include "cli/calibrate/measure.hpp"
#include "cli/calibrate/progress.hpp"
#include "cli/common/installation.hpp"
#include "perfmodel/calibrate/collective/rails_gain.hpp"

namespace bestride::inline cli {
namespace {

/// Time limit of a job with rails, seconds: patience_times the duration without rails, plus patience_s for giving up a
/// connection.
constexpr double patience_s = 15, patience_times = 3;

/// The text after the first event of this name; empty: there is no such event.
std::string event_of(const MeasureRun& run, const std::string& name) {
  for (const auto& [event, rest] : run.more)
    if (event == name) return rest;
  return "";
}

/// The jobs with and without rails, and their durations.
class Jobs {
 public:
  Jobs(const CalibrateOptions& options, const std::vector<std::string>& launcher, const std::string& program,
       const std::string& preload)
      : wanted_(options.rails.empty() ? "auto" : options.rails), start_s_(options.patience), common_(launcher) {
    common_.insert(common_.end(),
                   {"-n", std::to_string(options.ranks_between_hosts()), program, "exchange", "--preload", preload});
    if (options.quick) common_.push_back("--quick");
  }

  /// The first job finds the candidate rails and the number of bytes that is sufficient.
  MeasureRun without() {
    const auto before = std::chrono::steady_clock::now();
    MeasureRun run = follow({"--candidates", wanted_, "--rails", "off"}, 0);
    end_if_incomplete(run, "measuring an exchange between hosts", common_[0]);
    if (rails_.empty()) {
      rails_ = event_of(run, "rails");
      bytes_ = event_of(run, "bytes");
      limit_s_ = patience_s +
                 patience_times * std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
    }
    return run;
  }
  /// "", or why it is not possible with rails.
  std::string with() {
    const MeasureRun run = follow({"--rails", rails_}, limit_s_);
    if (run.late && !run.complete)
      return "a job with them did not come to its end within " + std::to_string(static_cast<int>(limit_s_)) +
             " s; can every NIC reach every NIC of another host?";
    if (!run.complete) return "a job with them failed: " + run.error;
    if (const std::string why = event_of(run, "no-rails"); !why.empty())
      return run.said.starts_with("bestride: ") ? run.said.substr(10) : why;
    return "";
  }
  const std::string& rails() const { return rails_; }
  const RailSamples& samples() const { return samples_; }

 private:
  MeasureRun follow(const std::vector<std::string>& words, double limit_s) {
    std::vector<std::string> command = common_;
    command.insert(command.end(), words.begin(), words.end());
    if (!bytes_.empty()) command.insert(command.end(), {"--bytes", bytes_});
    progress_.show(done_++, 4, rails_.empty() ? "looking for NICs" : limit_s > 0 ? "with " + rails_ : "without");
    MeasureRun run = follow_measurement(command, {start_s_, limit_s}, [](int, int, const std::string&) {});
    progress_.clear();
    end_if_interrupted(run);
    for (const auto& [event, rest] : run.more)
      if (event == "exchange" && run.complete) samples_.add(limit_s > 0, rest);
    return run;
  }

  const std::string wanted_;
  const double start_s_;
  std::vector<std::string> common_;
  std::string rails_, bytes_;
  double limit_s_ = 0;
  int done_ = 0;
  RailSamples samples_;
  Progress progress_{"trying a NIC for each local rank"};
};

}  // namespace

RailsRun measure_rails(const CalibrateOptions& options, const std::vector<std::string>& launcher,
                       const std::string& program) {
  RailsRun result;
  const Installation installation = Installation::find();
  Jobs jobs(options, launcher, program, installation.preload);
  const MeasureRun first = jobs.without();
  result.two_hosts = first.two_hosts;
  if (!first.two_hosts) return result;
  if (jobs.rails().empty()) {
    result.text = "rails were not tried: " + event_of(first, "no-rails");
    return result;
  }
  result.decided = true;
  std::string why = jobs.with();
  if (why.empty()) why = jobs.with();
  if (!why.empty()) {
    result.text = "rails " + jobs.rails() + " are not used: " + why;
    return result;
  }
  jobs.without();
  char text[160];
  const double gain = rails_gain(jobs.samples()).value_or(0);
  if (rails_are_faster(jobs.samples())) {
    result.rails = *rails_of_list(jobs.rails());
    std::snprintf(text, sizeof text,
                  " are %.2f times as fast as the MPI library's own choice: each local rank of a job over several "
                  "hosts takes one",
                  gain);
  } else {
    std::snprintf(text, sizeof text,
                  " are not used: %.2f times as fast as the MPI library's own choice, not %.2f times", gain,
                  rails_margin);
  }
  result.text = "rails " + jobs.rails() + text;
  return result;
}

}  // namespace bestride::inline cli
