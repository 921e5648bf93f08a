// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "cli/mpi_report/mpi_report.hpp"

namespace bestride::inline cli {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MpiReport::Rank, rank, host, pid, seconds, mpi_seconds, calls, timed, bytes, polls,
                                   sampling, incomplete)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MpiReport::Site, function, place, calls, timed, bytes, seconds, most_seconds, ranks,
                                   least_rank, most_rank, least_total, most_total, variation, histogram, served,
                                   saved_seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MpiReport::Function, function, calls, timed, bytes, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MpiReport::Communicator, name, kind, size, members_seen, collectives)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MpiReport::Finding, kind, text, advice, since, found, ended, culprits, evidence)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MpiReport::CollectiveWaits, calls, seconds, waited)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MpiReport, bestride, job, executable, abi, started, launcher_exit_code, size,
                                   seconds, total, collective_wait, ranks, sites, functions, pairs, communicators,
                                   findings, notes)

std::string mpi_report_json(const MpiReport& report) {
  nlohmann::json json = report;
  json["format"] = mpi_report_format;
  json["version"] = mpi_report_version;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<MpiReport> parse_mpi_report(const std::string& text) try {
  nlohmann::json json = nlohmann::json::parse(text);
  if (json.at("format") != mpi_report_format) return Error{"it is no report of MPI time; give a *.report.json file"};
  if (const nlohmann::json& version = json.at("version"); version != mpi_report_version)
    return Error{"it is a report of version " + version.dump() + ", this command reads " +
                 std::to_string(mpi_report_version) + "; use the bestride that wrote it"};
  // Members that earlier releases did not write.
  for (nlohmann::json& site : json.at("sites"))
    site.emplace("served", nlohmann::json::array()), site.emplace("saved_seconds", 0);
  return json.get<MpiReport>();
} catch (const nlohmann::json::exception&) {
  return Error{"it is damaged: a field is missing or of another type; run the job again"};
}

}  // namespace bestride::inline cli
