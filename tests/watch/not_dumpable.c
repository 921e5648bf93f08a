/* SPDX-License-Identifier: Apache-2.0
   Preloaded into a rank: other processes of its user may not trace it, as if it had come from a set-user-ID program. */
#include <sys/prctl.h>

__attribute__((constructor)) static void begin(void) { prctl(PR_SET_DUMPABLE, 0); }
