// SPDX-License-Identifier: Apache-2.0
#pragma once
// The Python frames of a process, which py-spy reads from outside (https://github.com/benfred/py-spy): it knows the
// structures of the interpreters of CPython 3.3 and newer. It does not stop the process.
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "telemetry/record/snapshot.hpp"
#include "telemetry/stacks/frame_names.hpp"

namespace bestride::inline cli {

/// True if the rank's program is a Python interpreter.
bool runs_python(const RankSnapshot& rank);

/// Python frames by tid, outermost first, of the threads that run Python code. py-spy is looked for beside the
/// interpreter, as it was called and as it is, and in PATH. About 0.1 s; at most 5 s. Errors, one line each: no py-spy;
/// it can't read the process.
Result<std::map<int, std::vector<NamedFrame>>> python_frames(const RankSnapshot& rank);

/// Outermost first. `text`: as ThreadStack::interpreted; other lines are left out.
std::vector<NamedFrame> interpreted_frames(const std::string& text);

/// `native` as without_library_frames() leaves it, with `python` in place of the frames of the interpreter and of
/// modules that were compiled for it; what these call is kept.
std::vector<NamedFrame> with_python_frames(const std::vector<NamedFrame>& native, const std::vector<NamedFrame>& python,
                                           const std::string& executable);

}  // namespace bestride::inline cli
