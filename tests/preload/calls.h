/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Returns 0, or 1 with a line on stdout. Initializes and finalizes MPI. */
#pragma GCC visibility push(default)
int make_calls(int* argc, char*** argv);
#pragma GCC visibility pop
