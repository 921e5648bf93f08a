// SPDX-License-Identifier: Apache-2.0
#include "interpose/objects/respelled_types.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/mpi/handle_bits.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {
namespace {

auto key(const Layout* layout, MPI_Datatype leaf) noexcept {
  return std::pair(reinterpret_cast<std::uintptr_t>(layout), bits_of(leaf));
}
auto key(const RespelledType* type) noexcept { return key(type->layout.get(), type->leaf); }

}  // namespace

RespelledTypeRef RespelledTypes::respelled(const LayoutPtr& layout, MPI_Datatype leaf, std::int64_t leaf_size) noexcept
    try {
  const std::lock_guard lock(mutex_);
  const auto wanted = key(layout.get(), leaf);
  const auto place = [&] {
    return std::lower_bound(types_.begin(), types_.end(), wanted,
                            [](const RespelledType* type, const auto& k) { return key(type) < k; });
  };
  auto at = place();
  if (at == types_.end() || key(*at) != wanted) {
    if (inject_failure(FailPoint::respell) || made_ >= max_made) return {};
    if (alive_ >= max_alive) make_room();
    if (alive_ >= max_alive) return {};
    types_.reserve(types_.size() + 1);
    std::unique_ptr<RespelledType> type(new RespelledType);
    std::optional<Respelled> spelled = respell(*layout, leaf, leaf_size, datatype_calls);
    if (!spelled) return {};
    ++made_;
    if (alive_ + spelled->types_alive > max_alive) make_room();
    if (alive_ + spelled->types_alive > max_alive || is_crowded(spelled->type)) {
      datatype_calls.free(&spelled->type);
      return {};
    }
    alive_ += spelled->types_alive;
    type->layout = layout;
    type->leaf = leaf;
    type->respelled = *spelled;
    at = types_.insert(place(), type.release());
  }
  (*at)->last_used = ++uses_;
  (*at)->references.fetch_add(1, std::memory_order_relaxed);
  return RespelledTypeRef(*at);
} catch (...) {
  return {};
}

void RespelledTypes::make_room() noexcept {
  runtime().definitions.drop_unused();
  std::vector<std::uint64_t> used;
  try {
    for (const RespelledType* type : types_)
      if (idle(*type)) used.push_back(type->last_used);
  } catch (...) {
    return;
  }
  if (used.empty()) return;
  const auto middle = used.begin() + static_cast<std::ptrdiff_t>(used.size() / 2);
  std::nth_element(used.begin(), middle, used.end());
  free_idle_until(*middle);
}

void RespelledTypes::free_idle() noexcept {
  runtime().definitions.drop_unused();
  const std::lock_guard lock(mutex_);
  free_idle_until(std::numeric_limits<std::uint64_t>::max());
}

void RespelledTypes::free_idle_until(std::uint64_t last_used) noexcept {
  std::erase_if(types_, [&](RespelledType* type) {
    if (!idle(*type) || type->last_used > last_used) return false;
    alive_ -= type->respelled.types_alive;
    datatype_calls.free(&type->respelled.type);
    type->drop();
    return true;
  });
}

void RespelledTypes::clear() noexcept {
  const std::lock_guard lock(mutex_);
  for (RespelledType* type : types_) {
    datatype_calls.free(&type->respelled.type);
    type->drop();
  }
  types_.clear();
  made_ = 0;
  alive_ = 0;
}

}  // namespace bestride::inline interpose
