// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/gpu/together.hpp"

#include "interpose/back/gpu/launch.hpp"
#include "interpose/back/gpu/raise.hpp"

namespace bestride {
namespace {

thread_local constinit Together* innermost __attribute__((tls_model("initial-exec"))) = nullptr;

void move_slowly(const Part& part) noexcept {
  const Result<cuda::Done> moved = move_blockwise(*part.staging, part.direction, part.first, part.last);
  part.staging->set_failed(!moved);
  if (!moved) say_not_moved(moved.error());
}

}  // namespace

void move_all(std::vector<Part>& parts) noexcept {
  std::vector<Part*> here;
  std::vector<bool> done;
  try {
    done.resize(parts.size());
    here.reserve(parts.size());
  } catch (...) {
    for (const Part& part : parts) move_slowly(part);
    return;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (done[i]) continue;
    here.clear();
    for (std::size_t k = i; k < parts.size(); ++k)
      if (!done[k] && parts[k].staging->device() == parts[i].staging->device()) {
        done[k] = true;
        if (parts[k].staging->fast())
          here.push_back(&parts[k]);
        else
          move_slowly(parts[k]);
      }
    if (here.empty()) continue;
    if (launch_all(parts[i].staging->device(), here))
      for (const Part* part : here) part->staging->set_failed(false);
    else
      for (const Part* part : here) move_slowly(*part);
  }
}

void Together::open() noexcept {
  outer_ = innermost;
  innermost = this;
}

void Together::close() noexcept {
  move();
  innermost = outer_;
}

const Part* Together::move() noexcept {
  if (!concluded_ && !parts_.empty()) move_all(parts_);
  concluded_ = true;
  for (const Part& part : parts_)
    if (part.staging->failed()) return &part;
  return nullptr;
}

void Together::move(StagingPtr staging, cuda::Direction direction, std::int64_t first, std::int64_t last) noexcept {
  Part part{std::move(staging), direction, first, last, innermost ? innermost->index_ : 0};
  try {
    if (innermost) {
      innermost->parts_.push_back(std::move(part));
    } else {
      std::vector<Part> alone;
      alone.push_back(std::move(part));
      move_all(alone);
    }
  } catch (...) {
    move_slowly(part);
  }
}

}  // namespace bestride
