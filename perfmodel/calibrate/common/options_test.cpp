// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/common/options.hpp"

#include <gtest/gtest.h>

namespace bestride::inline perfmodel {
namespace {

Result<MeasureOptions> parsed(std::vector<std::string> words) {
  words.insert(words.begin(), "bestride-measure-mpich");
  std::vector<char*> argv;
  argv.reserve(words.size());
  for (std::string& word : words) argv.push_back(word.data());
  return parse_options(static_cast<int>(argv.size()), argv.data());
}

TEST(MeasureOptions, OfMessages) {
  using Gpu = MeasureOptions::Gpu;
  const auto all = parsed({"messages", "--state", "file", "--budget", "1.5", "--quick"});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->part, MeasuredPart::messages);
  EXPECT_EQ(all->state, "file");
  EXPECT_EQ(all->budget_s, 1.5);
  EXPECT_TRUE(all->depth == Depth::quick && all->messages && all->calls.empty() && all->gpu == Gpu::if_present);
  const auto only = [](const std::string& words, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"messages", "--state", "file", "--only", words});
    return *parsed(more);
  };
  EXPECT_EQ(only("pack,isend").calls, (std::vector<CallKind>{CallKind::pack, CallKind::isend}));
  EXPECT_EQ(only("pack").gpu, Gpu::no);
  EXPECT_EQ(only("pack", {"--gpu"}).gpu, Gpu::required);
  EXPECT_EQ(only("pack,gpu").gpu, Gpu::required);
  EXPECT_FALSE(only("gpu").messages);
  EXPECT_EQ(only("pack").depth, Depth::standard);
  EXPECT_EQ(only("pack", {"--thorough"}).depth, Depth::thorough);
  EXPECT_EQ(parsed({"messages", "--state", "file", "--no-gpu"})->gpu, Gpu::no);
}

TEST(MeasureOptions, OfCollectivesAndExchanges) {
  const auto links = parsed({"links", "--state", "file", "--restart", "--preload", "lib", "--profile", "p"});
  ASSERT_TRUE(links);
  EXPECT_TRUE(links->part == MeasuredPart::links && links->restart && links->preload == "lib" && links->rails == "off");
  const auto exchange = parsed({"exchange", "--rails", "a,b", "--bytes", "4096"});
  ASSERT_TRUE(exchange) << exchange.error().text;
  EXPECT_TRUE(exchange->part == MeasuredPart::exchange && exchange->rails == "a,b" && exchange->bytes == 4096);
}

TEST(MeasureOptions, ErrorsNameTheArgument) {
  const auto error = [](const std::vector<std::string>& words) {
    const auto options = parsed(words);
    return options ? "" : options.error().text;
  };
  EXPECT_NE(error({}).find("first argument"), std::string::npos);
  EXPECT_NE(error({"--quick"}).find("first argument"), std::string::npos);
  EXPECT_NE(error({"collectives"}).find("--state"), std::string::npos);
  EXPECT_NE(error({"links", "--state", "file", "--fast"}).find("'--fast'"), std::string::npos);
  EXPECT_NE(error({"links", "--state"}).find("'--state'"), std::string::npos);
  EXPECT_NE(error({"messages", "--state", "file", "--only", "sned"}).find("'sned'"), std::string::npos);
}

}  // namespace
}  // namespace bestride::inline perfmodel
