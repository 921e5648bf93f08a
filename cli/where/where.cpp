// SPDX-License-Identifier: Apache-2.0
#include "cli/where/where.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "cli/common/command.hpp"
#include "cli/common/number.hpp"
#include "cli/job/job_json.hpp"
#include "cli/job/job_stacks.hpp"
#include "cli/job/job_view.hpp"
#include "cli/where/output.hpp"
#include "telemetry/record/job_folder.hpp"

namespace bestride::inline cli {
namespace {

struct WhereOptions {
  std::string selection, folder;
  std::size_t calls = 0;
  bool json = false, clean = false, stacks = false, all_frames = false;
};

std::string no_records_text() {
  char host[256] = "this host";
  gethostname(host, sizeof host - 1);
  return std::string("no records: no job of yours runs with the preload library on ") + host +
         ", or it records nothing (BESTRIDE_RECORD=off, or no /dev/shm)";
}

/// The folder that --records names must be there; that of this host may be missing.
void check_folder(const std::string& folder) {
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(folder, error);
  if (is_folder) return;
  fail("can't read '" + folder + "': " + (error ? error.message() : "it is not a folder") +
       "; --records needs a folder like /dev/shm/bestride-<uid>, which has a folder for each job");
}

void fail_without_records(const std::string& folder) {
  std::error_code error;
  bool has_records = false;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    has_records = has_records || entry.path().extension() == telemetry::record_suffix;
  fail("no records in '" + folder + "'; " +
       (has_records ? "it is the folder of one job: give the folder above it to --records"
                    : "--records needs a folder like /dev/shm/bestride-<uid>, which has a folder for each job"));
}

std::string json_text(const std::vector<JobView>& views, std::size_t calls, const std::vector<JobStacks>& stacks) {
  JsonWriter json;
  json.open_object().member("format", "bestride-where").member("version", 1).key("jobs").open_array();
  for (std::size_t i = 0; i < views.size(); ++i)
    write_job(json, views[i], calls, i < stacks.size() ? &stacks[i] : nullptr);
  json.close_array().close_object();
  return json.text();
}

void clean(const WhereOptions& options, const std::string& folder) {
  const auto jobs = read_jobs(folder, {.finished_calls = 0});
  if (!jobs) fail(jobs.error().text);
  const std::vector<JobSnapshot> selected = select_jobs(*jobs, options.selection);
  if (selected.empty() && !options.selection.empty()) fail(no_such_job_text(options.selection));
  std::size_t removed = 0, kept = 0;
  for (const JobSnapshot& job : selected)
    for (const RankSnapshot& rank : job.ranks) {
      rank.alive ? ++kept : ++removed;
      if (!rank.alive) remove_record(rank.path);
    }
  std::printf("records of ended processes removed: %zu; of running processes kept: %zu\n", removed, kept);
}

void where(const WhereOptions& options) {
  const std::string folder = options.folder.empty() ? records_folder() : options.folder;
  if (!options.folder.empty()) check_folder(folder);
  if (options.clean) return clean(options, folder);
  // A few calls are read in any case: the last one is printed, and mismatches are found in them.
  const auto views = observe_jobs(folder, options.selection, std::max<std::size_t>(options.calls, 16));
  if (!views) fail(views.error().text);
  if (views->empty() && !options.folder.empty() && !options.json) fail_without_records(folder);
  std::vector<JobStacks> stacks;
  if (options.stacks)
    for (const JobView& view : *views)
      stacks.push_back(merge_host_stacks({take_host_stacks(view.job.ranks, options.all_frames)}));
  std::string text;
  if (options.json)
    text = json_text(*views, options.calls, stacks);
  else if (views->empty())
    text = no_records_text() + "\n";
  else
    text = where_text(*views, {options.calls, color_wanted(STDOUT_FILENO), stacks});
  std::fputs(text.c_str(), stdout);
}

}  // namespace

void add_where(CLI::App& app) {
  const auto options = std::make_shared<WhereOptions>();
  CLI::App* const command =
      app.add_subcommand("where", "what every rank of the jobs on this host does now, and which rank waits for which");
  command->add_option("job", options->selection, "name of a job, or pid of one of its ranks or of its launcher")
      ->type_name("PID|JOB");
  CLI::Option* const json = command->add_flag("--json", options->json, "as JSON");
  command->add_option("--calls", options->calls, "print the last N finished calls of each rank, too")
      ->type_name("N")
      ->check(whole_number(0, 1024));
  CLI::Option* const stacks =
      command->add_flag("--stacks", options->stacks,
                        "print the call stacks of all ranks as a tree, too; stops each thread for about 0.1 ms");
  command->add_flag("--all-frames", options->all_frames, "with the frames of the MPI library in the stacks")
      ->needs(stacks);
  command->add_flag("--clean", options->clean, "remove the records of processes that have ended")
      ->excludes(json)
      ->excludes(stacks);
  command->add_option("--records", options->folder, "folder of records, if it is not that of this host")
      ->type_name("FOLDER");
  command->callback([options] { where(*options); });
}

}  // namespace bestride::inline cli
