// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride explain TYPE COUNT`: what would be done with a datatype here, and why, without running MPI.
namespace CLI {
class App;
}

namespace bestride::inline cli {
void add_explain(CLI::App& app);
}
