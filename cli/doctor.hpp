// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride doctor [program]`: will it work here, and if not, why and what to do.
namespace CLI {
class App;
}

namespace bestride {
void add_doctor(CLI::App& app);
}
