// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride doctor [program]`: checks whether the library will work here; if not, says why and what to do.
namespace CLI {
class App;
}

namespace bestride::inline cli {
void add_doctor(CLI::App& app);
}
