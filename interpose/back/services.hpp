// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the front gave this back when it opened it (interpose/front/services.h).
#include "interpose/front/services.h"

namespace bestride {

/// Set in bestride_back_open before anything is engaged; then read only.
extern constinit const bestride_front_services* front_services;

}  // namespace bestride
