// SPDX-License-Identifier: Apache-2.0
// The end-of-job report as JSON. If a field changes its meaning, raise `version` and update docs/report.md.
#include "telemetry/report/json_writer.hpp"
#include "telemetry/report/ledger.hpp"

namespace bestride::inline telemetry {

std::string report_json(const ReportHeader& header, const std::vector<LedgerLine>& lines, const CacheSums& cache) {
  JsonWriter json;
  json.open_object();
  json.member("format", "bestride-report").member("version", 1).member("bestride", BESTRIDE_VERSION);
  json.member("mpi_library", header.mpi_library).member("profile", header.profile);
  json.member("ranks", header.ranks).member("job_seconds", header.job_seconds);
  json.key("cache").open_object();
  json.member("hits", cache.hits).member("hit_bytes", cache.hit_bytes);
  json.member("deltas", cache.deltas).member("delta_saved_bytes", cache.delta_saved_bytes);
  json.member("misses", cache.misses).member("paused", cache.paused);
  json.close_object();
  json.key("lines").open_array();
  for (const LedgerLine& line : lines) {
    json.open_object();
    json.member("call", line.call)
        .member("layout", line.layout)
        .member("strategy", line.strategy)
        .member("reason", line.reason);
    json.member("calls", line.calls).member("bytes", line.bytes);
    json.member("seconds", line.seconds).member("saved_seconds", line.saved_seconds);
    if (line.engine_seconds > 0) json.member("engine_seconds", line.engine_seconds);
    json.close_object();
  }
  json.close_array().close_object();
  return json.text();
}

}  // namespace bestride::inline telemetry
