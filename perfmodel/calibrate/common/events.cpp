// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/common/events.hpp"

#include <cstdarg>
#include <cstdio>

namespace bestride::inline perfmodel {

void print_event(const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  std::vprintf(format, values);
  va_end(values);
  std::putchar('\n');
  std::fflush(stdout);
}

}  // namespace bestride::inline perfmodel
