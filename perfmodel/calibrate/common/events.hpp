// SPDX-License-Identifier: Apache-2.0
#pragma once
// The events that the measuring program writes to stdout, one in each line. `bestride calibrate` reads them and makes
// the profile from the state file (perfmodel/calibrate/common/state_file.hpp).
//
//   config <text>                    the configuration that was measured
//   hosts same|different
//   gpu <0|1: stand-in> <name>       the GPU of the device points
//   gpu-problem <text>               why no GPU, or only part of it, is measured
//   preload yes|no                   whether MPI_ names lead to the preload library, so that collectives have variants
//   rails <names>                    the --candidates that all hosts have
//   no-rails <text>                  why not: not all hosts have them, or ranks were not given the --rails
//   bytes <number>                   of an exchange
//   exchange <seconds> <seconds>...  of each node
//   one-node <call> <index of the size> <ns in shared memory> <ns by the MPI library>
//   no-one-node <text>               why collectives within a node can't be measured
//   no-pair <text>                   --near: there are no processors at this distance; with text, why not
//   plan <points> <of them measured before>
//   at <number> <point id>
//   end <measured now> <left out for time> <seconds>
//   error <text>

namespace bestride::inline perfmodel {

/// Prints a line and flushes stdout.
[[gnu::format(printf, 1, 2)]] void print_event(const char* format, ...);

}  // namespace bestride::inline perfmodel
