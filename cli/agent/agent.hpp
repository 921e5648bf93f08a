// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride agent`: watches the ranks of a job on one host for `bestride run --watch`, or alone. The preload library
// starts it.
namespace CLI {
class App;
}

namespace bestride::inline cli {

void add_agent(CLI::App& app);

}  // namespace bestride::inline cli
