#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# down.sh   removes the test bed $TB: ends the processes in its namespaces and deletes the namespaces. May run twice or concurrently.
set -u
here=$(cd "$(dirname "$0")" && pwd); . "$here/tb.env"
for ns in $(ip netns list | awk '{print $1}' | grep -E "^$TB-(sw|h[0-9]+)$"); do
    # The kernel ends all processes of a host together with its pid 1. SIGKILL, because the init of a pid namespace ignores other signals.
    # Repeated, because a process that is entering the namespace is not listed yet.
    for ((t = 0; t < 20; t++)); do
        pids=$(ip netns pids "$ns" 2>/dev/null)
        [ -n "$pids" ] || break
        kill -9 $pids 2>/dev/null
    done
    ip netns del "$ns" 2>/dev/null
done
rm -rf "/etc/netns/$TB-sw" "$TB_DIR"
rmdir --ignore-fail-on-non-empty /etc/netns /run/netns_testbed 2>/dev/null
exit 0
