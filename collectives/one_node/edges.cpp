// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/edges.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <climits>
#include <cstring>

namespace bestride::inline collectives {
namespace {

constexpr std::int64_t between_bytes = 64 * 1024;

}  // namespace

EdgesShape EdgesShape::within(int ranks, std::int64_t edges, std::int64_t limit) noexcept {
  constexpr std::int64_t least = 4096, largest = 32 * 1024;
  const std::int64_t most = limit / slots / std::max<std::int64_t>(edges, 1) / least * least;
  return {ranks, edges, std::clamp(most, least, largest)};
}

std::size_t EdgesShape::bytes() const noexcept {
  const auto each = static_cast<std::int64_t>(sizeof(Edges::Taken)) +
                    slots * (slot_bytes + static_cast<std::int64_t>(2 * sizeof(Edges::Head)));
  return head_bytes() + static_cast<std::size_t>(each * edges);
}

std::size_t EdgesShape::head_bytes() const noexcept {
  return static_cast<std::size_t>(ranks) * sizeof(Edges::BellLine) + RankProcessors::bytes(ranks);
}

void EdgesShape::clear(std::byte* memory) const noexcept {
  std::memset(memory, 0, head_bytes());
  const EdgesShape one{0, 1, slot_bytes};
  for (std::int64_t edge = 0; edge < edges; ++edge) {
    std::byte* const first = memory + head_bytes() + static_cast<std::size_t>(edge) * one.bytes();
    std::memset(first, 0, sizeof(Edges::Taken));
    for (std::size_t slot = 0; slot < slots; ++slot)
      std::memset(
          first + sizeof(Edges::Taken) + slot * (static_cast<std::size_t>(slot_bytes) + 2 * sizeof(Edges::Head)), 0,
          sizeof(Edges::Head));
  }
}

std::byte* Edges::edge(std::int64_t number) const noexcept {
  const EdgesShape one{0, 1, shape_.slot_bytes};
  return memory_ + shape_.head_bytes() + static_cast<std::size_t>(number) * one.bytes();
}

// Two heads for each slot, so that each slot is aligned to 128 bytes; the second one is not used.
Edges::Head& Edges::slot(std::int64_t number, Number piece) const noexcept {
  const auto bytes = static_cast<std::size_t>(shape_.slot_bytes) + 2 * sizeof(Head);
  return *reinterpret_cast<Head*>(edge(number) + sizeof(Taken) + piece % EdgesShape::slots * bytes);
}

Edges::Edges(std::byte* memory, const EdgesShape& shape, int rank, std::span<const EdgeEnd> out, std::size_t incoming)
    : memory_(memory),
      shape_(shape),
      rank_(rank),
      processors_(memory + static_cast<std::size_t>(shape.ranks) * sizeof(BellLine), shape.ranks, rank),
      out_(out.begin(), out.end()),
      sent_(out.size()),
      received_(static_cast<std::size_t>(shape.edges)),
      sending_(out.size()),
      receiving_(incoming),
      between_(std::make_unique_for_overwrite<std::byte[]>(between_bytes)) {}

void Edges::begin() noexcept {
  std::fill(sending_.begin(), sending_.end(), Message());
  std::fill(receiving_.begin(), receiving_.end(), Message());
  truncated_ = false;
}

bool Edges::step(std::span<const EdgeEnd> in, const Operands& input, const Operands& output) noexcept {
  bool all = true;
  for (std::size_t i = 0; i < out_.size(); ++i)
    if (out_[i].edge != EdgeEnd::none && !sending_[i].ended) all &= send(i, input);
  for (std::size_t i = 0; i < in.size(); ++i)
    if (in[i].edge != EdgeEnd::none && !receiving_[i].ended) all &= receive(i, in[i], output);
  return all;
}

bool Edges::send(std::size_t i, const Operands& input) noexcept {
  const EdgeEnd& end = out_[i];
  Message& message = sending_[i];
  Taken& by_peer = taken(end.edge);
  const std::int64_t bytes = input.bytes(static_cast<int>(i));
  const Operand from = input.of(static_cast<int>(i));
  if (message.in_place) {
    if (by_peer.pieces.load(std::memory_order_acquire) < sent_[i]) return false;
    message.in_place = false;
    copies_refused_ |= by_peer.refuses.load(std::memory_order_relaxed) != 0;
    if (!by_peer.refuses.load(std::memory_order_relaxed)) return message.ended = true;
  }
  const bool gives_address = bytes > longest_through_slots && from.at(0) && end.peer != rank_ &&
                             !by_peer.refuses.load(std::memory_order_relaxed);
  bool filled = false;
  while (!message.ended && !message.in_place &&
         sent_[i] - by_peer.pieces.load(std::memory_order_acquire) < EdgesShape::slots) {
    const Number piece = sent_[i] + 1;
    Head& head = slot(end.edge, piece);
    head.message_bytes = bytes;
    head.address = gives_address ? reinterpret_cast<std::uintptr_t>(from.at(0)) : 0;
    if (gives_address) {
      message.in_place = true;
    } else {
      const std::int64_t last = std::min(bytes, message.moved + shape_.slot_bytes);
      if (end.peer == rank_) {
        from.read(data(head), message.moved, last);
      } else {
        stores_.fill(data(head), from, {message.moved, last});
        stores_.flush();
      }
      message.moved = last;
      message.ended = last == bytes;
    }
    head.number.store(sent_[i] = piece, std::memory_order_release);
    filled = true;
  }
  if (filled) bell(end.peer).ring();
  return message.ended;
}

bool Edges::receive(std::size_t i, const EdgeEnd& end, const Operands& output) noexcept {
  Message& message = receiving_[i];
  Number& count = received_[static_cast<std::size_t>(end.edge)];
  Taken& own = taken(end.edge);
  bool emptied = false;
  while (!message.ended) {
    Head& head = slot(end.edge, count + 1);
    if (head.number.load(std::memory_order_acquire) != count + 1) break;
    const std::int64_t bytes = head.message_bytes;
    const std::int64_t fits = std::min(bytes, output.bytes(static_cast<int>(i)));
    truncated_ |= fits < bytes;
    if (head.address == 0) {
      const std::int64_t last = std::min(bytes, message.moved + shape_.slot_bytes);
      if (message.moved < fits) output.of(static_cast<int>(i)).write(data(head), message.moved, std::min(last, fits));
      message.moved = last;
      message.ended = last == bytes;
    } else if (copy_from(end, head.address, output.of(static_cast<int>(i)), fits)) {
      message.ended = true;
    } else {
      copies_refused_ = true;
      own.refuses.store(1, std::memory_order_relaxed);
    }
    own.pieces.store(++count, std::memory_order_release);
    emptied = true;
  }
  if (emptied) bell(end.peer).ring();
  return message.ended;
}

/// False: the kernel has refused, or the source's memory is not readable; then the source finds out.
bool Edges::copy_from(const EdgeEnd& end, std::uint64_t address, const Operand& to, std::int64_t bytes) noexcept {
  bool direct = true;
  for (std::int64_t done = 0; done < bytes;) {
    std::byte* const place = direct ? to.at(done) : nullptr;
    const iovec here{place ? place : between_.get(),
                     static_cast<std::size_t>(place ? bytes - done : std::min(between_bytes, bytes - done))};
    const iovec there{reinterpret_cast<void*>(address + static_cast<std::uint64_t>(done)), here.iov_len};
    const ssize_t copied = process_vm_readv(end.process, &here, 1, &there, 1, 0);
    // The destination may be write-protected by an application that handles the signal. The kernel does not send it,
    // but a store does.
    if (copied <= 0 && place) {
      direct = false;
      continue;
    }
    if (copied <= 0) return false;
    if (!place) to.write(between_.get(), done, done + copied);
    direct = true;
    done += copied;
  }
  return true;
}

Edges::Sleep Edges::prepare_sleep() noexcept { return {bell(rank_).prepare()}; }

void Edges::cancel(const Sleep&) noexcept { bell(rank_).cancel(); }

void Edges::start(const Sleep& sleep, long nanoseconds) noexcept { bell(rank_).sleep(sleep.rings, nanoseconds); }

}  // namespace bestride::inline collectives
