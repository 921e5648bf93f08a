// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/collective/choice.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "base/fnv1a.hpp"

namespace bestride::inline perfmodel {
namespace {

constexpr std::uint32_t magic_number = 0x42434f4c;

std::uint64_t checksum_of(const CollectiveParameters& parameters) noexcept {
  char bytes[offsetof(CollectiveParameters, checksum)];
  std::memcpy(bytes, &parameters, sizeof bytes);
  return fnv1a({bytes, sizeof bytes});
}
// No padding, because it would be part of the checksum.
static_assert(sizeof(CollectiveCorrections) == 4 * sizeof(std::int32_t) + 2 * sizeof(CollectiveTable<float>) +
                                                   collective_count * 2 * sizeof(std::uint32_t));
static_assert(collective_sizes <= 32, "bits of hierarchy_loses");
static_assert(sizeof(CollectiveParameters) == 4 * sizeof(std::uint32_t) + 2 * sizeof(LinkCosts) + sizeof(double) +
                                                  sizeof(std::uint64_t) +
                                                  CollectiveMeasurements::max_settings * sizeof(CollectiveCorrections));

/// log2, linear between powers of two: exact arithmetic, so the result is the same on every CPU.
double octaves(double value) noexcept {
  const auto whole = static_cast<std::uint64_t>(std::clamp(value, 1.0, 0x1p62));
  const int exponent = static_cast<int>(std::bit_width(whole)) - 1;
  const double power = static_cast<double>(std::uint64_t{1} << exponent);
  return exponent + (static_cast<double>(whole) - power) / power;
}

double apart(double a, double b) noexcept { return a < b ? b - a : a - b; }

/// The distance between two communicators: the log2 ratios of nodes, of ranks per node and, with half the weight, of
/// ring entries.
double unlikeness(const CollectiveCorrections& setting, const CollectiveShape& shape) noexcept {
  return apart(octaves(setting.nodes), octaves(shape.nodes)) +
         apart(octaves(setting.max_ranks_per_node), octaves(shape.max_ranks_per_node)) +
         apart(octaves(setting.ring_entries), octaves(shape.ring_entries)) / 2;
}

struct Ratios {
  double hierarchical = 1, library = 1;
  bool loses = false;  ///< at one of the sizes that the ratios come from, the hierarchy was not faster
  bool measured = false;
};

/// The part of a measured ratio that noise does not explain, as a factor; 1 if noise explains all of it.
float beyond_noise(float ratio, float noise) noexcept {
  const float most = 1 + noise;
  return ratio > most ? ratio / most : ratio * most < 1 ? ratio * most : 1;
}

/// Linear between the neighboring measured sizes, constant below the first. Above the last measured size the excess
/// over the prediction counts as waiting time, a constant number of seconds, up to the longest size that calibration
/// measures; beyond that size the ratio is constant.
Ratios ratios_at(const CollectiveCorrections& setting, Collective what, bool blocking, double bytes) noexcept {
  const auto& hierarchical = setting.hierarchical[static_cast<std::size_t>(what)][blocking];
  const auto& library = setting.library[static_cast<std::size_t>(what)][blocking];
  const double at = (octaves(bytes) - 12) / 2;
  int below = -1, above = -1;
  for (int i = 0; i < collective_sizes; ++i) {
    if (!(hierarchical[static_cast<std::size_t>(i)] > 0 && library[static_cast<std::size_t>(i)] > 0)) continue;
    if (i <= at) below = i;
    if (i >= at && above < 0) above = i;
  }
  if (below < 0 && above < 0) return {};
  if (below < 0) below = above;
  if (above < 0) above = below;
  const double part = above == below ? 0 : (at - below) / (above - below);
  const auto end = static_cast<double>(collective_bytes_at(above)),
             longest = static_cast<double>(collective_bytes_at(collective_sizes - 1));
  const double left = bytes > end ? end / std::min(bytes, longest) : 1;
  const auto between = [&](const auto& values) noexcept {
    const double from = values[static_cast<std::size_t>(below)], to = values[static_cast<std::size_t>(above)];
    const double ratio = from + (to - from) * part;
    return left < 1 ? 1 + (ratio - 1) * left : ratio;
  };
  const unsigned loses = setting.hierarchy_loses[static_cast<std::size_t>(what)][blocking];
  return {between(hierarchical), between(library), ((loses >> below | loses >> above) & 1) != 0, true};
}

bool measured(const CollectiveCorrections& setting, Collective what, bool blocking) noexcept {
  const auto& values = setting.library[static_cast<std::size_t>(what)][blocking];
  return std::any_of(values.begin(), values.end(), [](float value) { return value > 0; });
}

/// What makes the hierarchy faster than a library that the model knows only roughly: the bytes that it does not send
/// take a part `margin` of the library's time; or, in sums to which several ranks of each node contribute, or over more
/// than two nodes, it adds while it sends. Otherwise its waits within the node remain, which the library does not have:
/// between two nodes with one rank each, sums of 32 KiB to 1 MiB took 1.1 to 1.9 times MPICH's time, and gathers of 4
/// KiB with two ranks each up to 30 times, because MPICH's ranks do not wait for the root
/// (bench/figures_collectives.md).
bool has_advantage(const CollectiveShape& shape, const LinkCosts& link, double margin,
                   const CollectiveCost& hierarchical, const CollectiveCost& library) noexcept {
  if ((library.wire_bytes - hierarchical.wire_bytes) * link.wire_byte_s >= margin * library.seconds) return true;
  const bool sums = shape.what == Collective::allreduce || shape.what == Collective::reduce;
  const int least = shape.min_ranks_per_node > 0 ? shape.min_ranks_per_node : shape.max_ranks_per_node;
  return sums && (shape.nodes > 2 || least > 1);
}

/// The ratios of the nearest setting in which this collective was measured; 1 if there is none.
Ratios correction(const CollectiveParameters& parameters, const CollectiveShape& shape) noexcept {
  const CollectiveCorrections* nearest = nullptr;
  double least = 0;
  Collective what = shape.what;
  for (int pass = 0; pass < 2 && !nearest; ++pass) {
    if (pass == 1) {
      // allgatherv is not measured itself; its algorithms are those of allgather.
      if (shape.what != Collective::allgatherv) break;
      what = Collective::allgather;
    }
    for (int i = 0; i < parameters.settings; ++i) {
      const CollectiveCorrections& setting = parameters.corrections[static_cast<std::size_t>(i)];
      if (!measured(setting, what, shape.blocking)) continue;
      const double distance = unlikeness(setting, shape);
      // At equal distance, the later entry was measured later.
      if (!nearest || distance <= least) nearest = &setting, least = distance;
    }
  }
  if (!nearest) return {};
  Ratios ratios = ratios_at(*nearest, what, shape.blocking, static_cast<double>(shape.bytes));
  // With one rank per node there are no waits within a node; nothing follows from one for the other.
  ratios.measured = ratios.measured && (nearest->max_ranks_per_node == 1) == (shape.max_ranks_per_node == 1);
  return ratios;
}

/// Adds the measurements of one point.
void enter(const CollectiveSetting& setting, const CollectiveShape& shape, std::size_t size, const LinkCosts& link,
           CollectiveCorrections& corrections) noexcept {
  const auto what = static_cast<std::size_t>(shape.what);
  const std::size_t form = shape.blocking;
  const float hierarchical = setting.hierarchical[what][form][size], library = setting.library[what][form][size],
              noise = setting.noise[what][form][size];
  const auto ratio = [](float seconds, double predicted) {
    return seconds > 0 ? static_cast<float>(seconds / predicted) : 0.0f;
  };
  const float bar = ratio(library, library_cost(shape, link).seconds),
              as_measured = ratio(hierarchical, hierarchical_cost(shape, link).seconds);
  corrections.library[what][form][size] = bar;
  // If the hierarchy is faster than the library by more than the noise, the measurement is used as it is.
  const bool certain = noise >= 0 && hierarchical * (1 + noise) <= library;
  corrections.hierarchical[what][form][size] =
      bar > 0 && noise > 0 && !certain ? bar * beyond_noise(as_measured / bar, noise) : as_measured;
  if (hierarchical >= library) corrections.hierarchy_loses[what][form] |= 1u << size;
}

/// True if a prediction can be made of these costs.
bool usable(const LinkCosts& link) noexcept {
  if (link.piece_bytes != 0 && (link.piece_bytes < min_piece_bytes || link.piece_bytes > max_piece_bytes)) return false;
  return std::all_of(link_fields.begin(), link_fields.end(),
                     [&](const LinkField& field) { return link.*field.value > 0; });
}

}  // namespace

CollectiveMode collective_mode(std::string_view text) noexcept {
  return text == "library"        ? CollectiveMode::library
         : text == "hierarchical" ? CollectiveMode::hierarchical
                                  : CollectiveMode::automatic;
}

void CollectiveParameters::use_job_link(const LinkSpeed& measured) noexcept {
  if (measured.byte_s <= link.wire_byte_s) return;
  job_link.latency_s = measured.latency_s;
  job_link.wire_byte_s = job_link.stream_byte_s = measured.byte_s;
  seal();
}

void CollectiveParameters::seal() noexcept {
  magic = magic_number;
  version = current_version;
  checksum = checksum_of(*this);
}

bool CollectiveParameters::intact() const noexcept {
  if (magic != magic_number || version != current_version || checksum != checksum_of(*this)) return false;
  if (settings < 0 || settings > static_cast<std::int32_t>(corrections.size())) return false;
  return usable(link) && usable(job_link);
}

CollectiveParameters parameters_of(const CollectiveMeasurements& measured, CollectiveMode mode) noexcept {
  CollectiveParameters parameters;
  parameters.link = parameters.job_link = measured.filled_link();
  parameters.mode = mode;
  for (const CollectiveSetting& setting : measured.settings) {
    if (parameters.settings == static_cast<std::int32_t>(parameters.corrections.size())) break;
    CollectiveCorrections& corrections = parameters.corrections[static_cast<std::size_t>(parameters.settings++)];
    corrections.nodes = setting.nodes;
    corrections.ranks = setting.ranks;
    corrections.max_ranks_per_node = setting.max_ranks_per_node;
    corrections.ring_entries = setting.ring_entries;
    for (std::size_t what = 0; what < collective_count; ++what)
      for (std::size_t form = 0; form < 2; ++form)
        for (int size = 0; size < collective_sizes; ++size)
          enter(setting, setting.shape(static_cast<Collective>(what), form == 1, size), static_cast<std::size_t>(size),
                parameters.link, corrections);
  }
  parameters.seal();
  return parameters;
}

CollectiveChoice CollectiveChooser::choose(const CollectiveShape& shape, bool exact) const noexcept {
  CollectiveChoice choice;
  if (!usable_ || shape.bytes <= 0 || shape.ranks < 2) return choice;
  const LinkCosts& link = exact ? parameters_.job_link : parameters_.link;
  const Ratios ratios = correction(parameters_, shape);
  const CollectiveCost hierarchical = hierarchical_cost(shape, link), library = library_cost(shape, link);
  choice.hierarchical_s = hierarchical.seconds * ratios.hierarchical;
  choice.library_s = library.seconds * ratios.library;
  const ChunkPlan plan = plan_chunks(shape, link);
  choice.chunk_bytes = plan.chunk_bytes;
  choice.in_flight = plan.in_flight;
  if (shape.nodes < 2 || parameters_.mode == CollectiveMode::library) return choice;
  const bool forced = parameters_.mode == CollectiveMode::hierarchical;
  const double gain = 1 - parameters_.margin;
  choice.has_advantage = ratios.measured || has_advantage(shape, link, parameters_.margin, hierarchical, library);
  choice.hierarchical =
      forced || (choice.has_advantage && !ratios.loses && choice.hierarchical_s <= choice.library_s * gain);
  // What gains on the assumed link is not given up on the slower one of this job unless it loses there: the longer
  // bytes take, the less the rest of a prediction counts, and the hierarchy gains more than predicted on slow links.
  if (exact && !choice.hierarchical && choice.has_advantage && parameters_.has_job_link() &&
      choice.hierarchical_s <= choice.library_s)
    choice.hierarchical =
        hierarchical_cost(shape, parameters_.link).seconds <= library_cost(shape, parameters_.link).seconds * gain;
  return choice;
}

}  // namespace bestride::inline perfmodel
