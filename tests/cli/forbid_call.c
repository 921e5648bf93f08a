/* SPDX-License-Identifier: Apache-2.0
   forbid_call NAME=ACTION... PROGRAM [ARGUMENT...]: runs a program under a filter, as a container may have one.
   NAME: a system call of the table below. ACTION: an errno, or kill. */
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

static const struct {
  const char* name;
  unsigned number;
} calls[] = {
    {"memfd_create", __NR_memfd_create},
    {"process_vm_readv", __NR_process_vm_readv},
    {"ptrace", __NR_ptrace},
    {"pidfd_open", __NR_pidfd_open},
    {"perf_event_open", __NR_perf_event_open},
    {"inotify_init1", __NR_inotify_init1},
};

/* The number of the call that `word` begins with; -1: none. */
static long number_of(const char* word) {
  const size_t length = strcspn(word, "=");
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i)
    if (strlen(calls[i].name) == length && strncmp(word, calls[i].name, length) == 0) return calls[i].number;
  return -1;
}

int main(int count, char** words) {
  struct sock_filter steps[2 * sizeof calls / sizeof *calls + 2] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
  unsigned short length = 1;
  int at = 1;
  for (; at < count && strchr(words[at], '=') && at <= (int)(sizeof calls / sizeof *calls); ++at) {
    const long number = number_of(words[at]);
    const char* action = strchr(words[at], '=') + 1;
    if (number < 0) return 2;
    const unsigned result =
        strcmp(action, "kill") == 0 ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | (unsigned)atoi(action);
    steps[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1);
    steps[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, result);
  }
  if (at == 1 || at >= count) return 2;
  steps[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const struct sock_fprog filter = {length, steps};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    return 77;
  execvp(words[at], words + at);
  return 127;
}
