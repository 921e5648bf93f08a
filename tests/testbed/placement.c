// SPDX-License-Identifier: Apache-2.0
// Test bed only: ranks in any placement under hydra 4.0.
//
// Hydra places ranks round robin over a list of hosts, and takes two entries of the same host that do not stand side by
// side for two nodes. So run.sh lets it start the ranks host by host, and rank.sh gives them other numbers. What is
// left is the table rank
// -> node that hydra hands out under a fixed key: this library, preloaded into the ranks, asks for a key that is not
// there instead, and MPICH finds its nodes by their host names, which is its own way with launchers that have no such
// table.
#define _GNU_SOURCE
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t write(int fd, const void* bytes, size_t count) {
  static const char key[] = "key=PMI_process_mapping", other[] = "key=xxx_process_mapping";
  char line[1024];
  if (count <= sizeof line) {
    const char* found = (const char*)memmem(bytes, count, key, sizeof key - 1);
    if (found) {
      memcpy(line, bytes, count);
      memcpy(line + (found - (const char*)bytes), other, sizeof other - 1);
      bytes = line;
    }
  }
  return syscall(SYS_write, fd, bytes, count);
}
