// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/messages/point.hpp"

#include <cstring>
#include <memory>
#include <stdexcept>

#include "datatype/decode.hpp"
#include "kernels/packer.hpp"
#include "perfmodel/calibrate/messages/types.hpp"

namespace bestride::inline perfmodel {
namespace {

/// The packer for a point.
Packer make_packer(const Point& point) {
  const CountedType first = make_type(point, Engine::split, point.block_index == 0 ? Leaf::four : Leaf::eight);
  const auto decoded = decode(first.type(), linked_calls());
  if (!decoded) throw std::runtime_error("a calibration type could not be decoded");
  return Packer(decoded->layout);
}

}  // namespace

std::vector<double> PointMeasurer::measure_contiguous(const Point& point) {
  const int bytes = static_cast<int>(point.bytes());
  char* const user = user_.at_least(static_cast<std::size_t>(bytes) + 64);
  char* const packed = packed_.at_least(static_cast<std::size_t>(bytes));
  const OneWay one_way(pair_, kind_of(point.call_class), distance_of(point.call_class), bytes,
                       other_.at_least(static_cast<std::size_t>(bytes)));
  const bool message = is_message(one_way.kind());
  const CountedType respelled = make_respelled_bytes(bytes);
  const bool both = one_way.answered();
  std::vector<std::function<void()>> actions;
  for (ContiguousForm form : {ContiguousForm::plain, ContiguousForm::respelled}) {
    if (!message && form == ContiguousForm::respelled) break;
    actions.push_back([=, &one_way, &respelled] {
      if (!both && !one_way.works()) return one_way.idle();
      if (!message)
        std::memcpy(packed, user, static_cast<std::size_t>(bytes));
      else if (form == ContiguousForm::plain)
        one_way.transfer(user, bytes, MPI_BYTE);
      else
        one_way.transfer(user, respelled.count(), respelled.type());
      one_way.answer();
    });
  }
  return time_actions(pair_, std::move(actions), one_way.answered(), limit_);
}

std::vector<double> PointMeasurer::measure_exchange(const Point& point) {
  const Exchange exchange(pair_, distance_of(point.call_class));
  if (point.kind == Shape::Class::contiguous) {
    const int bytes = static_cast<int>(point.bytes());
    Rotation from(user_, static_cast<std::size_t>(bytes)), to(other_, static_cast<std::size_t>(bytes));
    const CountedType respelled = make_respelled_bytes(bytes);
    std::vector<std::function<void()>> actions;
    for (ContiguousForm form : {ContiguousForm::plain, ContiguousForm::respelled})
      actions.push_back([&, form] {
        if (!exchange.works()) return;
        if (form == ContiguousForm::plain)
          exchange.transfer(from.next(), to.next(), bytes, MPI_BYTE);
        else
          exchange.transfer(from.next(), to.next(), respelled.count(), respelled.type());
      });
    return time_actions(pair_, std::move(actions), false, limit_);
  }
  const Packer packer = make_packer(point);
  const int bytes = static_cast<int>(packer.size());
  const auto span = static_cast<std::size_t>(packer.layout()->high());
  Rotation from(user_, span), to(other_, span);
  Rotation out(packed_, static_cast<std::size_t>(bytes)), in(other_packed_, static_cast<std::size_t>(bytes));
  std::vector<CountedType> types;
  const std::vector<Series> all = series_at(point);
  types.reserve(all.size());
  std::vector<std::function<void()>> actions;
  for (const Series& series : all) {
    if (series.engine == Engine::kernel) {
      actions.push_back([&] {
        if (!exchange.works()) return;
        char* const packed = out.next();
        char* const arrived = in.next();
        packer.pack(packed, from.next());
        exchange.transfer(packed, arrived, bytes, MPI_BYTE);
        packer.unpack(to.next(), arrived);
      });
    } else {
      types.push_back(make_type(point, series.engine, series.leaf));
      actions.push_back([&, &type = types.back()] {
        if (exchange.works()) exchange.transfer(from.next(), to.next(), type.count(), type.type());
      });
    }
  }
  return time_actions(pair_, std::move(actions), false, limit_);
}

std::vector<double> PointMeasurer::measure(const Point& point) {
  if (is_exchange(point.call_class)) return measure_exchange(point);
  if (point.kind == Shape::Class::contiguous) return measure_contiguous(point);
  const Packer packer = make_packer(point);
  const int bytes = static_cast<int>(packer.size());
  char* const user = user_.at_least(static_cast<std::size_t>(packer.layout()->high()));
  char* const packed = packed_.at_least(static_cast<std::size_t>(bytes));
  const OneWay one_way(pair_, kind_of(point.call_class), distance_of(point.call_class), bytes,
                       other_.at_least(static_cast<std::size_t>(bytes)));
  const CallKind kind = one_way.kind();
  // Between two ranks both endpoints do the same, as in an exchange of halos. With a contiguous peer the measurement
  // would hide that MPI's engines overlap the work of both endpoints, fragment by fragment, and that a packed message
  // can't.
  const bool both = one_way.answered();
  const CallKind role = !both ? kind : one_way.rank() == 0 ? CallKind::send : CallKind::receive;

  std::vector<CountedType> types;
  const std::vector<Series> all = series_at(point);
  types.reserve(all.size());
  std::vector<std::function<void()>> actions;
  for (const Series& series : all) {
    if (!both && !one_way.works()) {
      actions.push_back([&one_way] { one_way.idle(); });
    } else if (series.engine == Engine::kernel) {
      actions.push_back([=, &packer, &one_way] {
        if (role == CallKind::pack || role == CallKind::send) packer.pack(packed, user);
        if (is_message(kind)) one_way.transfer(packed, bytes, MPI_BYTE);
        if (role == CallKind::unpack || role == CallKind::receive) packer.unpack(user, packed);
        one_way.answer();
      });
    } else {
      types.push_back(make_type(point, series.engine, series.leaf));
      actions.push_back([=, type = types.back().type(), count = types.back().count(), &one_way] {
        int position = 0;
        if (kind == CallKind::pack)
          MPI_Pack(user, count, type, packed, bytes, &position, MPI_COMM_SELF);
        else if (kind == CallKind::unpack)
          MPI_Unpack(packed, bytes, &position, user, count, type, MPI_COMM_SELF);
        else
          one_way.transfer(user, count, type);
        one_way.answer();
      });
    }
  }
  return time_actions(pair_, std::move(actions), one_way.answered(), limit_);
}

}  // namespace bestride::inline perfmodel
