// SPDX-License-Identifier: Apache-2.0
#include "interpose/device/transfer_batch.hpp"

#include "interpose/device/batch_launch.hpp"
#include "interpose/device/mpi_errors.hpp"

namespace bestride::inline interpose {
namespace {

thread_local constinit TransferBatch* innermost __attribute__((tls_model("initial-exec"))) = nullptr;

void move_block_by_block(const TransferPart& part) noexcept {
  const Result<cuda::Done> moved = move_blockwise(*part.staging, part.direction, part.first, part.last);
  part.staging->set_failed(!moved);
  if (!moved) report_transfer_failure(moved.error());
}

}  // namespace

void transfer_all(std::vector<TransferPart>& parts) noexcept {
  std::vector<TransferPart*> here;
  std::vector<bool> done;
  try {
    done.resize(parts.size());
    here.reserve(parts.size());
  } catch (...) {
    for (const TransferPart& part : parts) move_block_by_block(part);
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
          move_block_by_block(parts[k]);
      }
    if (here.empty()) continue;
    if (launch_all(parts[i].staging->device(), here))
      for (const TransferPart* part : here) part->staging->set_failed(false);
    else
      for (const TransferPart* part : here) move_block_by_block(*part);
  }
}

void TransferBatch::open() noexcept {
  outer_ = innermost;
  innermost = this;
}

void TransferBatch::close() noexcept {
  move();
  innermost = outer_;
}

const TransferPart* TransferBatch::move() noexcept {
  if (!flushed_ && !parts_.empty()) transfer_all(parts_);
  flushed_ = true;
  for (const TransferPart& part : parts_)
    if (part.staging->failed()) return &part;
  return nullptr;
}

void TransferBatch::move(StagingPtr staging, Direction direction, std::int64_t first, std::int64_t last) noexcept {
  TransferPart part{std::move(staging), direction, first, last, innermost ? innermost->index_ : 0};
  try {
    if (innermost) {
      innermost->parts_.push_back(std::move(part));
    } else {
      std::vector<TransferPart> alone;
      alone.push_back(std::move(part));
      transfer_all(alone);
    }
  } catch (...) {
    move_block_by_block(part);
  }
}

}  // namespace bestride::inline interpose
