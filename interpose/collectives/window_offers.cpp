// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/window_offers.hpp"

#include <algorithm>
#include <new>

#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {
namespace {

constexpr int key_tag = 1;  ///< in MPI_Init, before the application's messages

}  // namespace

bool WindowOffers::join(const Topology& world) noexcept {
  int rank = 0;
  if (real.Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS) return false;
  const auto here = world.ranks_on(world.node_of(rank));
  const int local = world.local_rank_of(rank);
  first_ = local * per_rank;
  WindowKey key;
  bool told = true;
  if (local == 0) {
    if (!inject_failure(FailPoint::offers)) window_ = Window::create(here.size() * per_rank * sizeof(WindowOffer));
    key = window_.key();
    for (std::size_t i = 1; i < here.size(); ++i)
      told &= real.Send(&key, sizeof key, MPI_BYTE, here[i], key_tag, MPI_COMM_WORLD) == MPI_SUCCESS;
  } else {
    told = real.Recv(&key, sizeof key, MPI_BYTE, here[0], key_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    window_ = Window::open(key);
  }
  return told && window_.data();
}

int WindowOffers::take() noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(own_.begin(), own_.end(), [&](const Own& own) {
    return !own.taken &&
           at(first_ + static_cast<int>(&own - own_.data())).left.load(std::memory_order_acquire) == own.ranks;
  });
  if (found == own_.end()) return -1;
  found->taken = true;
  const int index = first_ + static_cast<int>(found - own_.begin());
  new (&at(index)) WindowOffer();
  return index;
}

void WindowOffers::put_back(int index, int ranks) noexcept {
  const std::lock_guard lock(mutex_);
  Own& own = own_[static_cast<std::size_t>(index - first_)];
  own.ranks = at(index).state.load(std::memory_order_acquire) == WindowOffer::none ? 0 : ranks;
  own.taken = false;
}

OfferedWindow::~OfferedWindow() {
  if (member_.rank == 0 && offer_ >= 0) offers_.put_back(offer_, member_.ranks);
  if (counted_) offers_.count_bytes(-bytes_);
}

int OfferedWindow::take_offer() noexcept {
  if (member_.rank == 0) offer_ = offers_.take();
  return offer_ + 1;
}

bool OfferedWindow::may_create() const noexcept {
  return offers_.bytes_in_use() + bytes_ <= 2 * most_in_use_ && !inject_failure(FailPoint::window);
}

void OfferedWindow::count() noexcept {
  counted_ = true;
  offers_.count_bytes(bytes_);
}

}  // namespace bestride::inline interpose
