// SPDX-License-Identifier: Apache-2.0
// All device code, compiled as one module.
#include "kernels/cuda/kernels/move.cu"
#include "kernels/cuda/kernels/quantise.cu"
