// SPDX-License-Identifier: Apache-2.0
// Everything that is compiled for the device, as one module.
#include "kernels/cuda/move.cu"
#include "kernels/cuda/quantise.cu"
