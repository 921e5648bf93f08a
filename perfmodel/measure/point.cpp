// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/measure/point.hpp"

#include <cstring>
#include <memory>
#include <stdexcept>

#include "datatype/decode.hpp"
#include "kernels/packer.hpp"
#include "perfmodel/measure/types.hpp"

namespace bestride {

std::vector<double> PointMeasurer::measure_contiguous(const Point& point) {
  const int bytes = static_cast<int>(point.bytes());
  char* const user = user_.at_least(static_cast<std::size_t>(bytes) + 64);
  char* const packed = packed_.at_least(static_cast<std::size_t>(bytes));
  const Exchange exchange(pair_, kind_of(point.lane), distance_of(point.lane), bytes, other_.at_least(static_cast<std::size_t>(bytes)));
  const bool message = is_message(exchange.kind());
  const SpelledType respelled = make_respelled_bytes(bytes);
  const bool both = exchange.answered();
  std::vector<std::function<void()>> actions;
  for (Wire wire : {Wire::plain, Wire::respelled}) {
    if (!message && wire == Wire::respelled) break;
    actions.push_back([=, &exchange, &respelled] {
      if (!both && !exchange.works()) return exchange.idle();
      if (!message) std::memcpy(packed, user, static_cast<std::size_t>(bytes));
      else if (wire == Wire::plain) exchange.transfer(user, bytes, MPI_BYTE);
      else exchange.transfer(user, respelled.count(), respelled.type());
      exchange.answer();
    });
  }
  return time_actions(pair_, std::move(actions), exchange.answered(), limit_);
}

std::vector<double> PointMeasurer::measure(const Point& point) {
  if (point.kind == Shape::Class::contiguous) return measure_contiguous(point);
  const SpelledType first = make_type(point, Engine::broken, point.block_index == 0 ? Leaf::four : Leaf::eight);
  const auto decoded = decode(first.type(), linked_calls());
  if (!decoded) throw std::runtime_error("a calibration type could not be decoded");
  const Packer packer(decoded->layout);
  const int bytes = static_cast<int>(decoded->layout->size());
  char* const user = user_.at_least(static_cast<std::size_t>(decoded->layout->high()));
  char* const packed = packed_.at_least(static_cast<std::size_t>(bytes));
  const Exchange exchange(pair_, kind_of(point.lane), distance_of(point.lane), bytes, other_.at_least(static_cast<std::size_t>(bytes)));
  const CallKind kind = exchange.kind();
  // Between two ranks both sides do the same, as in an exchange of halos. One alone against a contiguous peer would hide that MPI's
  // engines overlap the two sides' work, fragment by fragment, and that a packed message can't.
  const bool both = exchange.answered();
  const CallKind role = !both ? kind : exchange.rank() == 0 ? CallKind::send : CallKind::receive;

  std::vector<SpelledType> types;
  const std::vector<Series> all = series_at(point);
  types.reserve(all.size());
  std::vector<std::function<void()>> actions;
  for (const Series& series : all) {
    if (!both && !exchange.works()) {
      actions.push_back([&exchange] { exchange.idle(); });
    } else if (series.engine == Engine::kernel) {
      actions.push_back([=, &packer, &exchange] {
        if (role == CallKind::pack || role == CallKind::send) packer.pack(packed, user);
        if (is_message(kind)) exchange.transfer(packed, bytes, MPI_BYTE);
        if (role == CallKind::unpack || role == CallKind::receive) packer.unpack(user, packed);
        exchange.answer();
      });
    } else {
      types.push_back(make_type(point, series.engine, series.leaf));
      actions.push_back([=, type = types.back().type(), count = types.back().count(), &exchange] {
        int position = 0;
        if (kind == CallKind::pack) MPI_Pack(user, count, type, packed, bytes, &position, MPI_COMM_SELF);
        else if (kind == CallKind::unpack) MPI_Unpack(packed, bytes, &position, user, count, type, MPI_COMM_SELF);
        else exchange.transfer(user, count, type);
        exchange.answer();
      });
    }
  }
  return time_actions(pair_, std::move(actions), exchange.answered(), limit_);
}

}  // namespace bestride
