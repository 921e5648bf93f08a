/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Functions with which tests and `bestride doctor` query the preload library: the two symbols that libbestride.so
 * exports besides MPI's. Look them up with dlsym(RTLD_DEFAULT, ...), so that a program runs with and without the
 * preload. Both may be called at any time from any thread and never call MPI. */

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0". Static storage. */
const char* bestride_version(void);

/* The current target of a call of the exported MPI_X or PMPI_X `name`. NULL for a name that is not exported, and while
 * the function was not called yet and the backend has not intercepted it. */
void* bestride_slot_target(const char* name);

#ifdef __cplusplus
}
#endif
