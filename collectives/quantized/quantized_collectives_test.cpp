// SPDX-License-Identifier: Apache-2.0
#include "collectives/quantized/quantized_collectives.hpp"

#include <gtest/gtest.h>

#include "collectives/core/reduction.hpp"
#include "collectives/testing/simulated_job.hpp"
#include "collectives/testing/test_blocks.hpp"
#include "collectives/testing/test_codes.hpp"
#include "tests/support/repetitions.hpp"

namespace bestride::inline collectives {
namespace {

using test::all_bits;
using test::all_formats;
using test::name_of;
using test::shape_of;

/// The top code of blocks that may hold a NaN: the weaker bound of docs/quantized.md.
long double min_top(CodeBits bits) { return bits == CodeBits::int8 ? 126 : 6; }
/// Half a unit in the last place of 1, or more: the largest relative error of one rounding.
long double rounding(NumberFormat format) { return std::ldexp(1.0L, -shape_of(format).fraction - 1); }
/// The largest error of one coding of a number in a block whose largest number is at most `largest`.
long double coding_error(long double largest, CodeBits bits, NumberFormat format) {
  return largest / (2 * min_top(bits)) + largest * (rounding(format) + std::ldexp(1.0L, -24));
}

std::vector<std::byte> content(const TestBlocks& blocks, int rank) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(blocks.bytes(rank)));
  blocks.of(rank).read(bytes.data(), 0, blocks.bytes(rank));
  return bytes;
}

struct Case {
  Case(std::mt19937_64& random, std::int64_t most) : nodes(random_placement(random)), counts(nodes.size()) {
    format = all_formats[random() % 4];
    bits = all_bits[random() % 2];
    const bool equal = random() % 2;
    for (auto& count : counts)
      count = equal ? most : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
    pipeline = {static_cast<std::int64_t>(1 + random() % 4096), static_cast<int>(1 + random() % 3)};
  }
  std::string text() const {
    return std::to_string(nodes.size()) + " ranks, " + name_of(format) + (bits == CodeBits::int8 ? " int8" : " int4");
  }
  int ranks() const { return static_cast<int>(nodes.size()); }

  std::vector<int> nodes;
  std::vector<std::int64_t> counts;
  NumberFormat format;
  CodeBits bits;
  PipelineSettings pipeline;
};

/// Runs an allgather, and checks the results of all ranks and the bytes on the network.
void gather(const Case& given, std::mt19937_64& random) {
  SCOPED_TRACE(given.text());
  SimulatedJob job(given.nodes, random());
  const std::int64_t number = number_bytes(given.format);
  std::vector<std::int64_t> bytes, coded;
  std::vector<std::vector<std::byte>> sent, expected;
  for (const std::int64_t count : given.counts) {
    bytes.push_back(count * number);
    coded.push_back(quantized_bytes(count, given.format, given.bits));
    sent.push_back(random_numbers(count, given.format, false, random));
    expected.push_back(coded_once(sent.back(), given.format, given.bits));
  }
  std::vector<std::unique_ptr<TestBlocks>> blocks;
  std::vector<Task> tasks;
  for (int rank = 0; rank < given.ranks(); ++rank) {
    blocks.push_back(std::make_unique<TestBlocks>(bytes, random() % 3 == 0));
    auto& own = sent[static_cast<std::size_t>(rank)];
    const Operand place = blocks.back()->of(rank), apart(own.data(), static_cast<std::int64_t>(own.size()));
    const bool in_place = random() % 2;
    if (in_place) place.write(own.data(), 0, place.bytes());
    const Operand from = in_place ? place : apart;
    tasks.push_back(quantized_allgather(job.at(rank), from, *blocks.back(), given.format, given.bits, given.pipeline));
  }
  ASSERT_TRUE(job.run(std::move(tasks)));
  for (int rank = 0; rank < given.ranks(); ++rank)
    for (int from = 0; from < given.ranks(); ++from)
      ASSERT_EQ(content(*blocks[static_cast<std::size_t>(rank)], from), expected[static_cast<std::size_t>(from)])
          << rank << " from " << from;
  for (int node = 0; node < job.topology().nodes(); ++node) {
    std::int64_t own = 0;
    for (const int rank : job.topology().ranks_on(node)) own += coded[static_cast<std::size_t>(rank)];
    EXPECT_EQ(job.bytes_out(node), own * (job.topology().nodes() - 1));
  }
}

TEST(QuantizedAllgather, EveryBlockIsQuantizedOnce) {
  std::mt19937_64 random(11);
  for (int round = 0; round < test::repetitions(150); ++round) {
    gather(Case(random, std::vector<std::int64_t>{0, 1, 255, 700, 5000}[random() % 5]), random);
    if (HasFatalFailure()) FAIL() << "round " << round;
  }
}

TEST(QuantizedAllgather, LongBlocksAreSplit) {
  std::mt19937_64 random(12);
  Case given(random, 1);
  given.nodes = {0, 1, 0};
  given.counts = {6'000'000, 100, 1'000'000};
  given.format = NumberFormat::float32;
  given.bits = CodeBits::int8;
  given.pipeline = {4096, 2};
  gather(given, random);
}

TEST(QuantizedAllgather, ErrorBoundOfOneQuantization) {
  std::mt19937_64 random(13);
  for (const NumberFormat format : all_formats)
    for (const CodeBits bits : all_bits) {
      const std::vector<std::byte> numbers = random_numbers(3000, format, false, random),
                                   back = coded_once(numbers, format, bits);
      ASSERT_EQ(coded_once(back, format, bits), back)
          << name_of(format);  // what was gathered can be gathered again without loss
      const std::int64_t block = quantized_block_size(bits);
      for (std::int64_t i = 0; i < 3000; ++i) {
        long double largest = 0;
        for (std::int64_t k = i / block * block; k < std::min<std::int64_t>(3000, (i / block + 1) * block); ++k) {
          const long double magnitude =
              std::fabs(test::value_of(shape_of(format), test::get(numbers.data(), shape_of(format), k)));
          if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
        }
        const long double before = test::value_of(shape_of(format), test::get(numbers.data(), shape_of(format), i));
        const long double after = test::value_of(shape_of(format), test::get(back.data(), shape_of(format), i));
        if (std::isfinite(before))
          ASSERT_LE(std::fabs(after - before), coding_error(largest, bits, format)) << name_of(format) << ' ' << i;
        else
          ASSERT_TRUE(std::isnan(before) ? std::isnan(after) : before == after) << name_of(format) << ' ' << i;
      }
    }
}

/// The contribution of every rank to a sum, and the expected result.
class Summands {
 public:
  Summands(const Case& given, const Topology& topology, std::int64_t count, bool finite, std::mt19937_64& random)
      : format_(given.format), bits_(given.bits), topology_(topology) {
    for (int rank = 0; rank < given.ranks(); ++rank) numbers.push_back(random_numbers(count, format_, finite, random));
    for (int node = 0; node < topology.nodes(); ++node) {
      auto& sums = of_node_.emplace_back(static_cast<std::size_t>(count));
      for (const int rank : topology.ranks_on(node))
        for (std::int64_t i = 0; i < count; ++i) sums[static_cast<std::size_t>(i)] += at(rank, i);
    }
  }
  long double at(int rank, std::int64_t i) const {
    return test::value_of(shape_of(format_),
                          test::get(numbers[static_cast<std::size_t>(rank)].data(), shape_of(format_), i));
  }
  long double sum(std::int64_t i) const {
    long double all = 0;
    for (const auto& sums : of_node_) all += sums[static_cast<std::size_t>(i)];
    return all;
  }
  /// The bound on the error of the sum of element `string[k]`. `string`: the elements of the owner node in the order in
  /// which they are coded. It allows one coding for the part of each other node, in a block whose elements are at most
  /// a block away, and the additions.
  long double bound(const std::vector<std::int64_t>& string, std::int64_t k, int owner) const {
    const std::int64_t block = quantized_block_size(bits_);
    const NumberFormat wide = format_ == NumberFormat::float64 ? format_ : NumberFormat::float32;
    long double error = 0, magnitudes = 0;
    for (int node = 0; node < topology_.nodes(); ++node) {
      long double largest = 0;
      for (std::int64_t j = std::max<std::int64_t>(0, k - block + 1);
           j < std::min(static_cast<std::int64_t>(string.size()), k + block); ++j) {
        const long double magnitude = std::fabs(
            of_node_[static_cast<std::size_t>(node)][static_cast<std::size_t>(string[static_cast<std::size_t>(j)])]);
        if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
      }
      if (node != owner) error += coding_error(largest, bits_, wide);
      magnitudes += largest;
    }
    for (int rank = 0; rank < topology_.ranks(); ++rank)
      if (const long double one = at(rank, string[static_cast<std::size_t>(k)]); std::isfinite(one))
        magnitudes += std::fabs(one);
    return error + magnitudes * topology_.ranks() * 2 * rounding(wide) + magnitudes * rounding(format_);
  }
  std::vector<std::vector<std::byte>> numbers;

 private:
  const NumberFormat format_;
  const CodeBits bits_;
  const Topology& topology_;
  std::vector<std::vector<long double>> of_node_;
};

void expect_near(long double got, long double wanted, long double bound, const std::string& where) {
  if (std::isfinite(wanted))
    ASSERT_LE(std::fabs(got - wanted), bound) << where;
  else
    ASSERT_TRUE(std::isnan(wanted) ? std::isnan(got) : got == wanted) << where;
}

/// A rank's numbers as a block for each rank.
class Blocks final : public Operands {
 public:
  Blocks(std::vector<std::byte>& numbers, const std::vector<std::int64_t>& counts, std::int64_t number)
      : numbers_(numbers) {
    for (const std::int64_t count : counts) begins_.push_back(begins_.back() + count * number);
  }
  Operand of(int rank) const noexcept override {
    return Operand(numbers_.data() + begins_[static_cast<std::size_t>(rank)], bytes(rank));
  }
  std::int64_t bytes(int rank) const noexcept override {
    return begins_[static_cast<std::size_t>(rank) + 1] - begins_[static_cast<std::size_t>(rank)];
  }

 private:
  std::vector<std::byte>& numbers_;
  std::vector<std::int64_t> begins_{0};
};

/// The node that sums an element of a vector of `count`.
int part_owner(const Topology& topology, std::int64_t count, std::int64_t element) {
  int node = 0;
  while (element >= part_of(count, topology.nodes(), node).last) ++node;
  return node;
}

using Results = std::vector<std::vector<std::byte>>;

Results scattered(const Case& given, SimulatedJob& job, Summands& summands) {
  const std::int64_t number = number_bytes(given.format);
  Results results;
  std::vector<Blocks> inputs;
  std::vector<Task> tasks;
  for (int rank = 0; rank < given.ranks(); ++rank) {
    results.emplace_back(static_cast<std::size_t>(given.counts[static_cast<std::size_t>(rank)] * number));
    inputs.emplace_back(summands.numbers[static_cast<std::size_t>(rank)], given.counts, number);
  }
  for (int rank = 0; rank < given.ranks(); ++rank) {
    auto& mine = results[static_cast<std::size_t>(rank)];
    tasks.push_back(quantized_reduce_scatter(job.at(rank), inputs[static_cast<std::size_t>(rank)],
                                             Operand(mine.data(), static_cast<std::int64_t>(mine.size())), given.format,
                                             given.bits, given.pipeline));
  }
  if (!job.run(std::move(tasks))) return {};
  return results;
}

TEST(QuantizedReduceScatter, ErrorBoundOfOneQuantizationPerNode) {
  std::mt19937_64 random(14);
  for (int round = 0; round < test::repetitions(60); ++round) {
    const Case given(random, std::vector<std::int64_t>{0, 1, 70, 700, 1500}[random() % 5]);
    SCOPED_TRACE("round " + std::to_string(round) + ": " + given.text());
    SimulatedJob job(given.nodes, random()), again(given.nodes, random());
    std::vector<std::int64_t> begins{0};
    for (const std::int64_t count : given.counts) begins.push_back(begins.back() + count);
    Summands summands(given, job.topology(), begins.back(), random() % 2, random);
    const Results results = scattered(given, job, summands);
    ASSERT_EQ(results.size(), given.nodes.size());
    // The result does not depend on the order of events.
    ASSERT_EQ(scattered(given, again, summands), results);
    for (int node = 0; node < job.topology().nodes(); ++node) {
      std::vector<std::int64_t> string;
      std::vector<long double> got;
      for (const int rank : job.topology().ranks_on(node))
        for (std::int64_t i = 0; i < given.counts[static_cast<std::size_t>(rank)]; ++i) {
          string.push_back(begins[static_cast<std::size_t>(rank)] + i);
          got.push_back(test::value_of(shape_of(given.format), test::get(results[static_cast<std::size_t>(rank)].data(),
                                                                         shape_of(given.format), i)));
        }
      for (std::size_t k = 0; k < string.size(); ++k) {
        expect_near(got[k], summands.sum(string[k]), summands.bound(string, static_cast<std::int64_t>(k), node),
                    "element " + std::to_string(string[k]));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(QuantizedAllreduce, SameBitsOnAllRanksWithinTheErrorBound) {
  std::mt19937_64 random(15);
  for (int round = 0; round < test::repetitions(60); ++round) {
    const Case given(random, 1);
    const std::int64_t count = std::vector<std::int64_t>{1, 3, 300, 3000, 9000}[random() % 5];
    SCOPED_TRACE("round " + std::to_string(round) + ": " + given.text() + ", " + std::to_string(count));
    SimulatedJob job(given.nodes, random());
    Summands summands(given, job.topology(), count, random() % 2, random);
    const std::int64_t number = number_bytes(given.format);
    Results results = summands.numbers;
    std::vector<Task> tasks;
    const bool in_place = random() % 2;
    for (int rank = 0; rank < given.ranks(); ++rank) {
      const Operand output(results[static_cast<std::size_t>(rank)].data(), count * number),
          input(summands.numbers[static_cast<std::size_t>(rank)].data(), count * number);
      tasks.push_back(quantized_allreduce(job.at(rank), in_place ? output : input, output, given.format, given.bits,
                                          CodeBits::int8, given.pipeline));
    }
    ASSERT_TRUE(job.run(std::move(tasks)));
    for (const auto& result : results) ASSERT_EQ(result, results[0]);
    std::vector<std::int64_t> string(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) string[static_cast<std::size_t>(i)] = i;
    std::vector<long double> sums, bounds;
    for (std::int64_t i = 0; i < count; ++i) {
      sums.push_back(summands.sum(i));
      bounds.push_back(summands.bound(string, i, part_owner(job.topology(), count, i)));
    }
    for (std::int64_t i = 0; i < count; ++i) {
      long double largest = 0;
      for (std::int64_t k = std::max<std::int64_t>(0, i - 255); k < std::min(count, i + 256); ++k)
        if (const long double one = std::fabs(sums[static_cast<std::size_t>(k)]); std::isfinite(one))
          largest = std::max(largest, one + bounds[static_cast<std::size_t>(k)]);
      expect_near(test::value_of(shape_of(given.format), test::get(results[0].data(), shape_of(given.format), i)),
                  sums[static_cast<std::size_t>(i)],
                  bounds[static_cast<std::size_t>(i)] + coding_error(largest, CodeBits::int8, given.format),
                  "element " + std::to_string(i));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Quantized, BytesOnTheWire) {
  std::mt19937_64 random(16);
  Case given(random, 1);
  given.nodes = {0, 1, 2, 0, 1, 2};
  given.counts.assign(6, 20011);
  given.format = NumberFormat::float32;
  given.pipeline = {};
  const std::int64_t plain = 2 * 20011 * 4 * 2;  // out of a node: two blocks to, or for, each of two nodes
  {
    SimulatedJob job(given.nodes, 1, 65536);
    std::vector<std::int64_t> bytes(6, 20011 * 4);
    std::vector<TestBlocks> blocks;
    for (int rank = 0; rank < 6; ++rank) blocks.emplace_back(bytes, false);
    std::vector<Task> tasks;
    for (int rank = 0; rank < 6; ++rank)
      tasks.push_back(quantized_allgather(job.at(rank), blocks[static_cast<std::size_t>(rank)].of(rank),
                                          blocks[static_cast<std::size_t>(rank)], given.format, CodeBits::int8,
                                          given.pipeline));
    ASSERT_TRUE(job.run(std::move(tasks)));
    EXPECT_LE(job.bytes_out(1), plain * 27 / 100);
  }
  given.bits = CodeBits::int4;
  SimulatedJob job(given.nodes, 1, 65536);
  Summands summands(given, job.topology(), 6 * 20011, true, random);
  ASSERT_EQ(scattered(given, job, summands).size(), 6u);
  EXPECT_LE(job.bytes_out(1), plain * 15 / 100);
}

}  // namespace
}  // namespace bestride::inline collectives
