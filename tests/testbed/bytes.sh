#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bytes.sh   prints the bytes on every host's data links since up.sh, one line per link: HOST DEVICE tx BYTES rx BYTES
set -eu
here=$(cd "$(dirname "$0")" && pwd); . "$here/tb.env"
[ "$(hosts_up)" -gt 0 ] || die "'$TB' is not up"
for ((i = 0; i < $(hosts_up); i++)); do
    ip netns exec "$TB-h$i" awk -v h="h$i" '/data/ {sub(":", " "); print h, $1, "tx", $10, "rx", $2}' /proc/net/dev
done
