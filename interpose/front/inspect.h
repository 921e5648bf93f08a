/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What tests and `bestride doctor` may ask the preloaded object: the two symbols libbestride.so exports besides MPI's. Reach them
 * with dlsym(RTLD_DEFAULT, ...), so that a program runs with and without the preload. Both may be called at any time, from any
 * thread, and never call MPI. */

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0". Static storage. */
const char* bestride_version(void);

/* Where a call of the exported MPI_X or PMPI_X `name` leads now; NULL while it was not called yet (and the back has not engaged
 * it), and for a name that is not exported. */
void* bestride_slot_target(const char* name);

#ifdef __cplusplus
}
#endif
