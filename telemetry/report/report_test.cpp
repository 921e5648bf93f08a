// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "telemetry/report/json_writer.hpp"
#include "telemetry/report/ledger.hpp"
#include "telemetry/report/quantity.hpp"

namespace bestride::inline telemetry {
namespace {

using testing::HasSubstr;

const ReportHeader header{"MPICH Version: 4.0.2\nMPICH Device: ch4:ofi", "built-in", 4, 12.34};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(ReportText, ListsStrategiesAndForwardedCalls) {
  const std::string text =
      report_text(header, {{"MPI_Isend", "16 x 8192 | 8 B", "pack", "", 1200, 3u << 30, 1.5, 4.5},
                           {"MPI_Recv", "8 B", "forward", "contiguous", 7, 56, 0.001, 0},
                           {"MPI_Recv", "16 B", "forward", "a code of tomorrow", 7, 56, 0.001, 0}});
  EXPECT_THAT(text, HasSubstr("4 ranks, 12.3 s, MPICH Version: 4.0.2\n"));
  EXPECT_THAT(text, HasSubstr("MPI_Isend           16 x 8192 | 8 B"));
  EXPECT_THAT(text, HasSubstr("1.20 k 3.00 GiB  pack          1.50 s   4.50 s\n"));
  EXPECT_THAT(text, HasSubstr("  contiguous: there is nothing to pack"));
  EXPECT_THAT(text, HasSubstr("  a code of tomorrow"));
  EXPECT_THAT(report_text(header, {{"MPI_Bcast", "", "one node", "", 7, 56, 0.001, 0}}),
              HasSubstr("56 B  one node     1.00 ms        -\n"));
  EXPECT_THAT(text, HasSubstr("saved is the model's estimate against leaving the call to MPI, not a measurement\n"));
}

TEST(ReportText, WhatTheEngineTookAndTheLibraryWould) {
  const std::vector<LedgerLine> lines = {{"MPI_Isend", "16 x 8192 | 8 B", "engine", "", 1200, 2u << 30, 3.5, 2, 1},
                                         {"MPI_Recv", "16 x 8192 | 8 B", "engine", "", 1200, 1u << 30, 3.5, 1, 0.5},
                                         {"MPI_Send", "8 x 16 | 8 B", "pack", "", 7, 56, 1, 1}};
  const std::string text = report_text(header, lines);
  EXPECT_THAT(text, HasSubstr("\nengine: 3.00 GiB packed and unpacked in 1.50 s; the MPI library's engine takes 4.50 s "
                              "for them\n"));
  EXPECT_THAT(text, HasSubstr("saved is the model's estimate, of the engine what samples show\n"));
  const std::string json = report_json(header, lines);
  EXPECT_THAT(json, HasSubstr(R"("saved_seconds": 2, "engine_seconds": 1})"));
  EXPECT_THAT(json, HasSubstr(R"("saved_seconds": 1})"));
}

TEST(ReportText, SaysWhatWouldChangeWhatWasLeftToMpi) {
  const std::vector<LedgerLine> left = {{"MPI_Send", "8 x 16 | 8 B", "forward", "model", 7, 56, 1, 0},
                                        {"MPI_Send", "8 x 16 | 8 B", "forward", "first use", 7, 56, 1, 0}};
  EXPECT_THAT(report_text(header, left),
              testing::EndsWith("next: model: the built-in profile is cautious; 'bestride calibrate' measures this "
                                "machine\nnext: first use: make datatypes once and use them for many messages\n"));
  ReportHeader calibrated = header;
  calibrated.profile = "/home/a/profile.json";
  EXPECT_THAT(report_text(calibrated, {left[0]}), testing::Not(HasSubstr("next:")));
  calibrated.gains_if_bound = true;
  EXPECT_THAT(report_text(calibrated, {left[0]}), testing::Not(HasSubstr("next:")));
  EXPECT_THAT(report_text(calibrated, {{"MPI_Send", "8 B", "forward", "predefined", 7, 56, 1, 0}}),
              HasSubstr("next: contiguous: bind ranks ("));
  const std::string collectives = report_text(calibrated, {{"MPI_Allreduce", "", "forward", "order", 7, 56, 1, 0},
                                                           {"MPI_Bcast", "", "forward", "not all ranks", 7, 56, 1, 0}});
  EXPECT_THAT(collectives, HasSubstr("next: not all ranks: start the job with 'bestride run'"));
  EXPECT_THAT(collectives, HasSubstr("next: order: BESTRIDE_REASSOCIATE=1 permits any order"));
}

TEST(ReportText, ListsCacheSavings) {
  const std::vector<LedgerLine> lines = {{"MPI_Allgather", "", "hierarchical", "", 100, 1, 1, 0}};
  EXPECT_THAT(report_text(header, lines, {80, 3u << 30, 12, 300u << 20, 4, 16}),
              HasSubstr("\n\ncache: 80 hits saved 3.00 GiB on the wire, 12 deltas 300 MiB; 4 misses, 16 paused\n\n"));
  EXPECT_THAT(report_text(header, lines, {0, 0, 0, 0, 1, 0}),
              HasSubstr("\ncache: 0 hits saved 0 B on the wire, 0 deltas 0 B; 1 misses, 0 paused\n"));
  EXPECT_THAT(report_text(header, lines), testing::Not(HasSubstr("cache")));
}

TEST(ReportText, FitsAPage) {
  std::vector<LedgerLine> lines;
  for (const char* reason : {"model", "first use", "size", "forced"})
    lines.push_back({"MPI_Send", "", "forward", reason, 1, 1, 0, 0});
  for (int i = 0; i < 5000; ++i)
    lines.push_back({"MPI_Neighbor_alltoallw_c_" + std::to_string(i), std::string(300, 'x'),
                     i % 2 ? "respelled" : "forward", i % 2 ? "" : std::string(200, 'r') + std::to_string(i),
                     std::numeric_limits<std::uint64_t>::max(), std::numeric_limits<std::uint64_t>::max(), 1e30,
                     -1e30});
  constexpr std::uint64_t n = 1023u << 20;  // a number of the greatest width
  const auto page = split(report_text({std::string(500, 'm'), "built-in", 100000, 1e9}, lines, {n, n, n, n, n, n}));
  EXPECT_LE(page.size(), 40u);
  EXPECT_GT(page.size(), 30u);
  for (const std::string& line : page) EXPECT_LE(line.size(), 100u) << line;
}

TEST(ReportText, RemovesControlCharacters) {
  const std::string text = report_text(header, {{"MPI_Send", "\x1b[2J\n", "pack", "", 1, 1, 1, 1}});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_THAT(text, HasSubstr("?[2J?"));
}

TEST(ReportText, EmptyJob) {
  EXPECT_THAT(report_text(header, {}), HasSubstr("no call with a buffer and a datatype was seen"));
}

TEST(ReportJson, EscapesTextAndKeepsNumbers) {
  const std::string json =
      report_json({"a\"b\\c\n", "\xc3\xa9\xff", 2, 0.1},
                  {{"MPI_Send", "8 B", "pack", "", std::numeric_limits<std::uint64_t>::max(), 1, 1e-9, INFINITY}});
  EXPECT_THAT(json, HasSubstr(R"("mpi_library": "a\"b\\c\u000a")"));
  EXPECT_THAT(json, HasSubstr("\"profile\": \"\xc3\xa9\\ufffd\""));
  EXPECT_THAT(json, HasSubstr(R"("calls": 18446744073709551615, "bytes": 1, "seconds": 1e-09, "saved_seconds": null)"));
  EXPECT_THAT(json, HasSubstr(R"("job_seconds": 0.1)"));
}

TEST(ReportJson, AnotherParserAgrees) {
  std::string every_byte;
  for (int c = 0; c < 128; ++c) every_byte += static_cast<char>(c);
  Ledger ledger;
  ledger.post({every_byte, "\xe2\x82\xac", "pack", "", std::numeric_limits<std::uint64_t>::max(), 1, 0.1, -1e300});
  ledger.post({"MPI_Send", "", "forward", "model", 2, 0, 0, 0});
  const auto json = nlohmann::json::parse(report_json(header, ledger.lines()));
  EXPECT_EQ(json.at("mpi_library"), header.mpi_library);
  ASSERT_EQ(json.at("lines").size(), 2u);
  EXPECT_EQ(json.at("lines")[0].at("call"), every_byte);
  EXPECT_EQ(json.at("lines")[0].at("calls"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(json.at("lines")[0].at("seconds"), 0.1);
  EXPECT_EQ(json.at("lines")[0].at("saved_seconds"), -1e300);
  EXPECT_EQ(nlohmann::json::parse(report_json(header, {})).at("lines").size(), 0u);
}

TEST(ReportJson, HasCacheCounts) {
  const auto cache =
      nlohmann::json::parse(report_json(header, {}, {1, 2, 3, 4, 5, std::numeric_limits<std::uint64_t>::max()}))
          .at("cache");
  const nlohmann::json expected = {{"hits", 1},   {"hit_bytes", 2},
                                   {"deltas", 3}, {"delta_saved_bytes", 4},
                                   {"misses", 5}, {"paused", std::numeric_limits<std::uint64_t>::max()}};
  EXPECT_EQ(cache, expected);
}

TEST(JsonWriter, WritesNestedAndEmptyValues) {
  JsonWriter json;
  json.open_object().key("a").open_array().close_array().key("b").open_object().close_object();
  json.key("c").open_array().value(1).value("x").value(true).close_array().close_object();
  std::string flat;
  for (const char c : json.text())
    if (c != '\n' && c != ' ') flat += c;
  EXPECT_EQ(flat, R"({"a":[],"b":{},"c":[1,"x",true]})");
}

TEST(JsonWriter, ReplacesInvalidUtf8) {
  for (const char* bad : {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8"})
    EXPECT_THAT(JsonWriter().value(bad).text(), HasSubstr("\\ufffd")) << bad;
  for (const char* good : {"\xc2\xa0", "\xe2\x82\xac", "\xf0\x9f\x98\x80"})
    EXPECT_EQ(JsonWriter().value(good).text(), '"' + std::string(good).append("\"\n"));
}

TEST(Quantity, KeepsThreeDigits) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1024), "1.00 KiB");
  EXPECT_EQ(bytes_text(1023 * 1024), "1.00 MiB");
  EXPECT_EQ(bytes_text(std::numeric_limits<std::uint64_t>::max()), "16.0 EiB");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(12345), "12.3 k");
  EXPECT_EQ(count_text(999600), "1.00 M");
  EXPECT_EQ(seconds_text(0), "0 s");
  EXPECT_EQ(seconds_text(4.5e-8), "45.0 ns");
  EXPECT_EQ(seconds_text(0.9999), "1.00 s");
  EXPECT_EQ(seconds_text(-0.002), "-2.00 ms");
  EXPECT_EQ(seconds_text(std::nan("")), "-");
}

TEST(Quantity, IgnoresTheApplicationsLocale) {
  const char* comma = std::setlocale(LC_ALL, "de_DE.UTF-8");
  if (!comma) GTEST_SKIP() << "no locale with a decimal comma is installed";
  EXPECT_EQ(seconds_text(1.5), "1.50 s");
  EXPECT_EQ(JsonWriter().value(1.5).text(), "1.5\n");
  std::setlocale(LC_ALL, "C");
}

}  // namespace
}  // namespace bestride::inline telemetry
