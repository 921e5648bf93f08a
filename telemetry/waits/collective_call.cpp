// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/collective_call.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "telemetry/record/functions.hpp"
#include "telemetry/record/reduction.hpp"
#include "telemetry/report/quantity.hpp"
#include "telemetry/waits/call_kind.hpp"

namespace bestride::inline telemetry {
namespace {

struct Rules {
  std::uint16_t function = no_function;  ///< without the "_c" of the large-count form
  bool has_root = false;
  bool equal_bytes = false;  ///< every rank moves the same number of bytes, also with MPI_IN_PLACE
  bool reduces = false;      ///< every rank gives the same operation
};

// Not MPI_Scatter: what is recorded of it counts at the root only.
constexpr const char* equal_bytes[] = {"MPI_Bcast",
                                       "MPI_Ibcast",
                                       "MPI_Reduce",
                                       "MPI_Ireduce",
                                       "MPI_Allreduce",
                                       "MPI_Iallreduce",
                                       "MPI_Scan",
                                       "MPI_Iscan",
                                       "MPI_Exscan",
                                       "MPI_Iexscan",
                                       "MPI_Gather",
                                       "MPI_Igather",
                                       "MPI_Allgather",
                                       "MPI_Iallgather",
                                       "MPI_Alltoall",
                                       "MPI_Ialltoall",
                                       "MPI_Reduce_scatter_block",
                                       "MPI_Ireduce_scatter_block"};

Rules rules_of(std::uint16_t function, std::map<std::string, std::uint16_t>& first) {
  const std::string name = function_name(function);
  const CallKind kind = kind_of(function, true);
  const auto contains = [&name](const char* part) { return name.find(part) != std::string::npos; };
  return {first.try_emplace(name, function).first->second, kind == CallKind::from_root || kind == CallKind::to_root,
          std::find(std::begin(equal_bytes), std::end(equal_bytes), name) != std::end(equal_bytes),
          contains("educe") || contains("scan") || contains("Scan")};
}

const Rules& rules(std::uint16_t function) {
  static const std::vector<Rules> all = [] {
    std::vector<Rules> result;
    std::map<std::string, std::uint16_t> first;
    for (std::size_t i = 0; i < recorded_functions().size(); ++i)
      result.push_back(rules_of(static_cast<std::uint16_t>(i), first));
    result.emplace_back();  // unknown functions
    return result;
  }();
  return all[std::min<std::size_t>(function, all.size() - 1)];
}

}  // namespace

CollectiveCall CollectiveCall::of(std::uint16_t function, std::int32_t root, std::uint64_t bytes,
                                  std::uint16_t operation) {
  const Rules& known = rules(function);
  return {known.function, known.has_root ? root : no_rank, known.equal_bytes ? bytes : 0,
          known.reduces ? operation : std::uint16_t{0}};
}

bool CollectiveCall::may_match(const CollectiveCall& other) const {
  return function == other.function && root == other.root && (bytes == other.bytes || bytes == 0 || other.bytes == 0) &&
         may_agree(reduction, other.reduction);
}

void add_to_variants(std::vector<CollectiveMismatch::Variant>& variants, const CollectiveCall& call,
                     std::int32_t rank) {
  for (auto& [function, root, bytes, reduction, ranks] : variants)
    if (const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank); at != ranks.end() && *at == rank)
      ranks.erase(at);
  std::erase_if(variants, [](const auto& variant) { return variant.ranks.empty(); });
  auto variant = std::find_if(variants.begin(), variants.end(), [&](const auto& v) {
    return call.may_match({v.function, v.root, v.bytes, v.reduction});
  });
  if (variant == variants.end())
    variant = variants.insert(variants.end(), {call.function, call.root, call.bytes, call.reduction, {}});
  auto& ranks = variant->ranks;
  ranks.insert(std::lower_bound(ranks.begin(), ranks.end(), rank), rank);
}

void sort_variants(std::vector<CollectiveMismatch::Variant>& variants) {
  std::stable_sort(variants.begin(), variants.end(),
                   [](const auto& a, const auto& b) { return a.ranks.size() > b.ranks.size(); });
}

bool is_one_function(const CollectiveMismatch& mismatch) {
  return std::all_of(mismatch.variants.begin(), mismatch.variants.end(),
                     [&](const auto& variant) { return variant.function == mismatch.variants[0].function; });
}

std::string variant_text(const CollectiveMismatch::Variant& variant) {
  std::string text = function_name(variant.function);
  if (variant.root >= 0) text += " root " + std::to_string(variant.root);
  if (variant.root == root_rank) text += " root MPI_ROOT";
  if (variant.root == null_rank) text += " root MPI_PROC_NULL";
  if (const char* const operation = name(reduction_op_of(variant.reduction)); *operation)
    text += std::string(" ") + operation;
  if (const char* const type = name(type_of(variant.reduction)); *type) text += std::string(" of ") + type;
  if (variant.bytes > 0) text += ", " + bytes_text(variant.bytes);
  return text;
}

std::string pair_text(const CollectiveMismatch::Pair& pair) {
  return "rank " + std::to_string(pair.from) + " sends " + bytes_text(pair.sent) + " to rank " +
         std::to_string(pair.to) + ", which expects " + bytes_text(pair.expected);
}

}  // namespace bestride::inline telemetry
