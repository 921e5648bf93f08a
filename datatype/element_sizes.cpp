// SPDX-License-Identifier: Apache-2.0
#include "datatype/element_sizes.hpp"

#include <algorithm>

namespace bestride::inline datatype {

ElementSizes ElementSizes::basic(std::int64_t bytes) {
  ElementSizes sizes;
  if (bytes > 0) sizes.append_run(bytes, bytes);
  return sizes;
}

void ElementSizes::append_run(std::int64_t bytes, std::int64_t element) {
  if (!runs_.empty() && runs_.back().element == element) {
    runs_.back().end += bytes;
  } else if (runs_.size() < most_runs) {
    runs_.push_back({period() + bytes, element});
  } else {
    runs_.clear();
    known_ = false;
  }
}

void ElementSizes::append(const ElementSizes& part, std::int64_t bytes) {
  if (!known_ || bytes == 0) return;
  if (!part.known_) {
    runs_.clear();
    known_ = false;
    return;
  }
  if (part.uniform()) return append_run(bytes, part.runs_[0].element);
  for (std::int64_t done = 0; done < bytes && known_; done += part.period()) {
    std::int64_t begin = 0;
    for (const Run& run : part.runs_) {
      if (!known_) return;
      append_run(run.end - begin, run.element);
      begin = run.end;
    }
  }
}

std::int64_t ElementSizes::begin_before(std::int64_t position) const noexcept {
  if (runs_.empty()) return position;
  if (uniform()) return position - position % runs_[0].element;
  const std::int64_t in_period = position % period();
  const auto run = std::upper_bound(runs_.begin(), runs_.end(), in_period,
                                    [](std::int64_t at, const Run& one) { return at < one.end; });
  const std::int64_t begin = run == runs_.begin() ? 0 : (run - 1)->end;
  return position - (in_period - begin) % run->element;
}

}  // namespace bestride::inline datatype
