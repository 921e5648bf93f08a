// SPDX-License-Identifier: Apache-2.0
// Test bed only: ranks in any placement under hydra 4.0.
//
// Hydra places ranks round robin over a list of hosts, and treats two entries of the same host that are not adjacent as
// two nodes. So run.sh lets Hydra start the ranks host by host, and rank.sh renumbers them. Hydra also provides a table
// of the ranks' nodes under a fixed key, which is then wrong. This library is preloaded into the ranks and requests a
// key that does not exist. MPICH then finds the nodes by their host names, as with launchers without such a table.
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
