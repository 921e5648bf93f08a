// SPDX-License-Identifier: Apache-2.0
#pragma once
// The services that the preload library gave this backend when it opened it (interpose/preload/services.h).
#include "interpose/preload/services.h"

namespace bestride::inline interpose {

/// Set in bestride_backend_open before any function is intercepted; read-only afterwards.
inline constinit const bestride_preload_services* preload_services = nullptr;

}  // namespace bestride::inline interpose
