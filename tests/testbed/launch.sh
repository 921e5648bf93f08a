#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# launch.sh [ssh options] HOST COMMAND...   replaces ssh as hydra's -launcher-exec (and Open MPI's plm_rsh_agent). Runs COMMAND
# on host HOST (h0, h1, ...) of the test bed.
here=$(cd "$(dirname "$0")" && pwd); . "$here/tb.env"
while [[ ${1:-} == -* ]]; do shift; done
host=$1; shift
pid=$(holder "${host#h}"); [ -n "$pid" ] || die "no host $host"
exec nsenter --target "$pid" --net --uts --ipc --mount --pid --wdns="$PWD" -- sh -c "$*"
