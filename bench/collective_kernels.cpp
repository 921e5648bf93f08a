// SPDX-License-Identifier: Apache-2.0
// Deltas, hashes and quantized numbers, which collectives may use in place of plain bytes, with memcpy and memcmp of
// the same content as the limit. The content has 64 MiB, so that all of it comes from memory; bytes per second refer to
// the plain content. Only ratios within one run are meaningful:
//   bench_collective_kernels --benchmark_enable_random_interleaving=true --benchmark_repetitions=5
//   --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/delta/delta.hpp"
#include "kernels/hash.hpp"
#include "kernels/quantize/quantize.hpp"

namespace {

using namespace bestride;

constexpr std::int64_t size = std::int64_t{64} << 20;
using Content = std::vector<unsigned char>;

std::uint64_t next(std::uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

/// Numbers of a format with magnitudes from 2^-8 to 1.
Content numbers_of(NumberFormat format) {
  constexpr struct { int exponent, fraction; } shapes[] = {{8, 23}, {11, 52}, {5, 10}, {8, 7}};
  const auto shape = shapes[static_cast<int>(format)];
  const std::int64_t bytes = number_bytes(format);
  Content made(size);
  std::uint64_t state = 1;
  for (std::int64_t at = 0; at < size; at += bytes) {
    const std::uint64_t exponent = (std::uint64_t{1} << (shape.exponent - 1)) - 9 + next(state) % 8;
    const std::uint64_t fraction = (next(state) << 31 | next(state)) & ((std::uint64_t{1} << shape.fraction) - 1);
    const std::uint64_t bits = (next(state) % 2 << shape.exponent | exponent) << shape.fraction | fraction;
    std::memcpy(&made[static_cast<std::size_t>(at)], &bits, static_cast<std::size_t>(bytes));
  }
  return made;
}

const Content& older() {
  static const Content content = numbers_of(NumberFormat::bfloat16);
  return content;
}

/// Changed words per mille, in random runs of `together` words.
struct Change {
  const char* name;
  unsigned per_mille;
  std::size_t together;  ///< words
};
constexpr Change changes[] = {{"nothing", 0, 1}, {"0.1%", 1, 1},  {"1%", 10, 1},
                              {"10%", 100, 1},   {"50%", 500, 1}, {"10%_together", 100, 4096}};

Content newer(const Change& change) {
  Content content = older();
  std::uint64_t state = 2;
  for (std::size_t at = 0; at < content.size(); at += 2 * change.together)
    if (next(state) % 1000 < change.per_mille)
      for (std::size_t word = 0; word < change.together; ++word) content[at + 2 * word] ^= 1;
  return content;
}

void finish(benchmark::State& state) {
  benchmark::ClobberMemory();
  state.SetBytesProcessed(state.iterations() * size);
}

void run_copy(benchmark::State& state) {
  Content to(size);
  for (auto _ : state) std::memcpy(to.data(), older().data(), size);
  finish(state);
}

void run_equal(benchmark::State& state) {
  const Content other = older();
  for (auto _ : state) benchmark::DoNotOptimize(delta::equal(older().data(), other.data(), size));
  finish(state);
}

void run_hash(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(content_hash(older().data(), size));
  finish(state);
}

void run_encode(benchmark::State& state, const Change& change, Isa isa) {
  const Content content = newer(change);
  Content out(static_cast<std::size_t>(delta::max_encoded_bytes(size)));
  std::int64_t bytes = 0;
  for (auto _ : state)
    bytes = delta::encode(older().data(), content.data(), size, out.data(), static_cast<std::int64_t>(out.size()), isa);
  state.SetLabel(std::to_string(static_cast<double>(bytes) / size) + " of the bytes");
  finish(state);
}

void run_apply(benchmark::State& state, const Change& change, Isa isa) {
  const Content content = newer(change);
  Content encoded(static_cast<std::size_t>(delta::max_encoded_bytes(size))), target = older();
  const std::int64_t bytes =
      delta::encode(older().data(), content.data(), size, encoded.data(), static_cast<std::int64_t>(encoded.size()));
  for (auto _ : state) benchmark::DoNotOptimize(delta::apply(encoded.data(), bytes, target.data(), size, isa));
  finish(state);
}

enum class CoderOperation { quantize, dequantize, add };

void run_quantized(benchmark::State& state, CoderOperation operation, NumberFormat format, CodeBits bits, Isa isa) {
  const std::int64_t count = size / number_bytes(format);
  Content codes(static_cast<std::size_t>(quantized_bytes(count, format, bits)));
  const Content source = numbers_of(format);
  Content numbers = source;
  quantize(source.data(), format, count, bits, codes.data());
  for (auto _ : state) {
    if (operation == CoderOperation::quantize)
      quantize(source.data(), format, count, bits, codes.data(), isa);
    else if (operation == CoderOperation::dequantize)
      dequantize(codes.data(), bits, count, format, numbers.data(), isa);
    else
      dequantize_add(codes.data(), bits, count, reinterpret_cast<float*>(numbers.data()), isa);
  }
  finish(state);
}

void register_all(Isa isa) {
  const std::string end = "/" + std::string(name(isa));
  for (const Change& change : changes) {
    benchmark::RegisterBenchmark(("delta_encode/" + std::string(change.name) + end).c_str(),
                                 [=](benchmark::State& state) { run_encode(state, change, isa); });
    benchmark::RegisterBenchmark(("delta_apply/" + std::string(change.name) + end).c_str(),
                                 [=](benchmark::State& state) { run_apply(state, change, isa); });
  }
  constexpr const char* formats[] = {"float32", "float64", "float16", "bfloat16"};
  for (const CoderOperation operation : {CoderOperation::quantize, CoderOperation::dequantize, CoderOperation::add})
    for (int format = 0; format < 4; ++format)
      for (const CodeBits bits : {CodeBits::int4, CodeBits::int8}) {
        if (operation == CoderOperation::add && format != 0) continue;
        constexpr const char* operations[] = {"quantise/", "dequantise/", "dequantise_add/"};
        const std::string start = std::string(operations[static_cast<int>(operation)]) + formats[format] +
                                  (bits == CodeBits::int4 ? "/int4" : "/int8");
        benchmark::RegisterBenchmark((start + end).c_str(), [=](benchmark::State& state) {
          run_quantized(state, operation, static_cast<NumberFormat>(format), bits, isa);
        });
      }
}

}  // namespace

int main(int argc, char** argv) {
  older();  // created before the measurements
  benchmark::RegisterBenchmark("memcpy", run_copy);
  benchmark::RegisterBenchmark("equal", run_equal);
  benchmark::RegisterBenchmark("hash", run_hash);
  for (int isa = 0; isa <= static_cast<int>(widest_isa()); ++isa) register_all(static_cast<Isa>(isa));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
