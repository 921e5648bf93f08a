// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include "apps/common/text.hpp"

#include "gpu.hpp"

namespace halo3d {
namespace {

using apps::format;

double gigabytes_per_second(const CaseResult& result) { return double(result.bytes_sent) / result.median_s() / 1e9; }

std::string triple_json(const Triple& triple) { return format("[%d, %d, %d]", triple[2], triple[1], triple[0]); }

}  // namespace

std::string one_line(const Options& options) {
  return format("%dx%dx%d %s%s, %d %s%s, radius %d, %d neighbors, %s, faces as %s, %s, %s messages", options.cells[2],
                options.cells[1], options.cells[0], name_of(options.element),
                options.device ? (" on the GPU (" + Gpu::get().name() + ")").c_str() : "", options.quantities,
                options.quantities == 1 ? "quantity" : "quantities",
                options.storage == Storage::interleaved
                    ? format(" interleaved (%d exchanged)", options.quantities_exchanged()).c_str()
                    : "",
                options.radius, options.neighbors, options.periodic ? "periodic" : "open", name_of(options.spelling),
                name_of(options.method), name_of(options.messages));
}

std::string as_text(const Options& options, const CaseResult& result) {
  const int iterations = int(result.exchange_s.size());
  const double per_iteration_us = 1e6 / iterations;
  std::string text;
  text += "halo3d: " + one_line(options) + "\n";
  text +=
      format("  ranks            %d as %d x %d x %d\n", result.ranks, result.grid[2], result.grid[1], result.grid[0]);
  text += format("  per exchange     %d messages, %.1f KiB sent by the busiest rank\n", result.messages,
                 result.bytes_sent / 1024.0);
  text += format("  update           %12.1f us an iteration\n", result.update_s * per_iteration_us);
  text += format("  exchange         %12.1f us an iteration; median %.1f, minimum %.1f over %d\n",
                 result.exchanging_s * per_iteration_us, result.median_s() * 1e6, result.minimum_s() * 1e6, iterations);
  text += format("  check            %12.1f us an iteration\n", result.check_s * per_iteration_us);
  text += format("  bandwidth        %12.2f GB/s at the median\n", gigabytes_per_second(result));
  text += format("  checked          %lld halo values and %lld others in %d exchanges: %lld wrong\n",
                 result.halo_checked, result.other_checked, result.exchanges, result.wrong);
  return text;
}

std::string as_json(const Options& options, const CaseResult& result) {
  std::string text = "{\n";
  text += format("  \"program\": \"halo3d\", \"ranks\": %d, \"grid\": %s, \"cells\": %s,\n", result.ranks,
                 triple_json(result.grid).c_str(), triple_json(options.cells).c_str());
  text += format("  \"memory\": \"%s\",\n", options.device ? Gpu::get().name().c_str() : "host");
  text +=
      format("  \"type\": \"%s\", \"quantities\": %d, \"exchanged\": %d, \"storage\": \"%s\", \"messages\": \"%s\",\n",
             name_of(options.element), options.quantities, options.quantities_exchanged(), name_of(options.storage),
             name_of(options.messages));
  text += format("  \"radius\": %d, \"neighbours\": %d, \"periodic\": %s, \"method\": \"%s\", \"spelling\": \"%s\",\n",
                 options.radius, options.neighbors, options.periodic ? "true" : "false", name_of(options.method),
                 name_of(options.spelling));
  text +=
      format("  \"messages_per_exchange\": %d, \"bytes_per_exchange\": %lld,\n", result.messages, result.bytes_sent);
  text += format("  \"setup_us\": %.3f, \"update_us\": %.3f, \"exchange_us\": %.3f, \"check_us\": %.3f,\n",
                 result.setup_s * 1e6, result.update_s * 1e6, result.exchanging_s * 1e6, result.check_s * 1e6);
  text += format("  \"exchange_median_us\": %.3f, \"exchange_minimum_us\": %.3f, \"gigabytes_per_second\": %.4f,\n",
                 result.median_s() * 1e6, result.minimum_s() * 1e6, gigabytes_per_second(result));
  text += format("  \"exchanges\": %d, \"halo_checked\": %lld, \"other_checked\": %lld, \"wrong\": %lld,\n",
                 result.exchanges, result.halo_checked, result.other_checked, result.wrong);
  text += "  \"each_exchange_us\": [";
  for (std::size_t at = 0; at < result.exchange_s.size(); ++at)
    text += format("%s%.3f", at ? ", " : "", result.exchange_s[at] * 1e6);
  return text + "]\n}\n";
}

}  // namespace halo3d
