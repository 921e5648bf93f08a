/* SPDX-License-Identifier: Apache-2.0
   forbid_call NAME=ACTION PROGRAM [ARGUMENT...]: runs a program under a filter, as a container may have one.
   NAME: memfd_create or process_vm_readv. ACTION: an errno, or kill. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char** words) {
  const char* action = count > 2 ? strchr(words[1], '=') : NULL;
  if (!action) return 2;
  const unsigned number = strncmp(words[1], "memfd_create", 12) == 0 ? __NR_memfd_create : __NR_process_vm_readv;
  const unsigned result =
      strcmp(action, "=kill") == 0 ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | (unsigned)atoi(action + 1);
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, result),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    return 77;
  execvp(words[2], words + 2);
  return 127;
}
