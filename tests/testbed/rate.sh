#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rate.sh RATE [HOST...]   changes the rate of the data links of all hosts, or of the given host indices, while the bed is up. RATE: as in tc
# (200mbit, 1gbit) or "none".
set -eu
here=$(cd "$(dirname "$0")" && pwd); . "$here/tb.env"
RATE=${1:?rate}; shift
[ "$(hosts_up)" -gt 0 ] || die "'$TB' is not up"
[ $# -gt 0 ] || set -- $(seq 0 $(($(hosts_up) - 1)))
shape() { # netns device
    if [ "$RATE" = none ]; then
        ip netns exec "$1" tc qdisc del dev "$2" root 2>/dev/null || true
    else
        ip netns exec "$1" tc qdisc replace dev "$2" root tbf rate "$RATE" burst "$TB_BURST" limit "$TB_LIMIT"
    fi
}
for i in "$@"; do
    for ((r = 0; r < $(rails_up); r++)); do
        shape "$TB-h$i" "data$r"; shape "$TB-sw" "p$r-$i"
    done
done
