// SPDX-License-Identifier: Apache-2.0
#include "cli/mpi_report/metrics.hpp"

#include <charconv>
#include <map>

#include "telemetry/detector/finding.hpp"

namespace bestride::inline cli {
namespace {

/// The value of a label, in quotes.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '\n')
      result += "\\n";
    else if (c == '"' || c == '\\')
      result += std::string("\\") + c;
    else
      result += c;
  }
  return result + "\"";
}

std::string number(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

class Metrics {
 public:
  explicit Metrics(const MpiReport& report) : job_("job=" + quoted(report.job)) {
    // A gauge, not an info: node_exporter rejects a file with a type that the older Prometheus format does not have.
    family("bestride_info", "gauge", "", "1; its labels are the version of bestride and what the job runs.");
    sample("bestride_info", "version=" + quoted(report.bestride) + ",abi=" + quoted(report.abi), "1");
    family("bestride_ranks", "gauge", "", "Ranks whose records were read.");
    sample("bestride_ranks", "", std::to_string(report.ranks.size()));
    family("bestride_elapsed_seconds", "gauge", "seconds", "From the first MPI_Init to the end of the last rank.");
    sample("bestride_elapsed_seconds", "", number(report.seconds));
    family("bestride_mpi_time_ratio", "gauge", "ratio", "Share of the time of a rank that it spends in MPI.");
    double least = report.ranks.empty() ? 0 : report.ranks[0].share(), most = least;
    for (const MpiReport::Rank& rank : report.ranks)
      least = std::min(least, rank.share()), most = std::max(most, rank.share());
    sample("bestride_mpi_time_ratio", "of=\"mean\"", number(report.mean_share()));
    sample("bestride_mpi_time_ratio", "of=\"least\"", number(least));
    sample("bestride_mpi_time_ratio", "of=\"most\"", number(most));
    family("bestride_mpi_calls", "counter", "", "MPI calls of all ranks.");
    for (const auto& f : report.functions) sample("bestride_mpi_calls_total", function(f), std::to_string(f.calls));
    family("bestride_mpi_time_seconds", "counter", "seconds", "Time of all ranks in MPI calls, an estimate.");
    for (const auto& f : report.functions) sample("bestride_mpi_time_seconds_total", function(f), number(f.seconds));
    family("bestride_mpi_bytes", "counter", "bytes", "Bytes of the buffers of MPI calls of all ranks.");
    for (const auto& f : report.functions) sample("bestride_mpi_bytes_total", function(f), std::to_string(f.bytes));
    family("bestride_fault", "gauge", "", "Verdicts of a class that hold.");
    std::map<std::string, int> faults;
    for (const auto& finding : report.findings) faults[finding.kind] += finding.ended == 0;
    for (unsigned i = 0; i < bestride::faults; ++i) {
      const char* const kind = name(static_cast<Fault>(i));
      sample("bestride_fault", "class=" + quoted(kind), std::to_string(faults[kind]));
    }
    text_ += "# EOF\n";
  }
  const std::string& text() const { return text_; }

 private:
  static std::string function(const MpiReport::Function& found) { return "function=" + quoted(found.function); }
  void family(const std::string& name, const char* type, const std::string& unit, const char* help) {
    text_ += "# TYPE " + name + " " + type + "\n";
    if (!unit.empty()) text_ += "# UNIT " + name + " " + unit + "\n";
    text_ += "# HELP " + name + " " + help + "\n";
  }
  void sample(const std::string& name, const std::string& labels, const std::string& value) {
    text_ += name + "{" + job_ + (labels.empty() ? "" : "," + labels) + "} " + value + "\n";
  }

  const std::string job_;
  std::string text_;
};

}  // namespace

std::string mpi_metrics(const MpiReport& report) { return Metrics(report).text(); }

}  // namespace bestride::inline cli
