#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# up.sh HOSTS RATE [RAILS]    e.g.  up.sh 4 200mbit      up.sh 2 1gbit 2
#
# Creates HOSTS hosts h0..h(H-1) on this machine, connected by a switch.
# A host has its own network, UTS (hostname), IPC, PID and mount namespace, with a private /dev/shm, /proc, /sys, /etc/hosts and
# boot_id, so neither MPICH nor UCX treats two of them as one node. RATE is a tc rate ("none": unshaped) for each direction of
# every data link (full duplex): sent data are shaped at the host's end of the veth pair, received data at the switch's end.
#   data<r>  rail r, shaped and counted          mgmt0  unshaped, PMI and stdout only
# With several rails any NIC reaches any other (the switch connects them, unshaped), and data sent from a rail's address use
# that rail, as on nodes with several routed NICs. Everything is in namespaces created here; the root network namespace does not
# change.
set -eu
here=$(cd "$(dirname "$0")" && pwd); . "$here/tb.env"
H=${1:?hosts}; RATE=${2:?rate}; R=${3:-1}
why=$("$here/can_run") || { echo "$why" >&2; exit 77; }
[ ! -e "$TB_DIR" ] || die "'$TB' is already up (down.sh first, or another name in TB)"
[ "$H" -ge 1 ] 2>/dev/null && [ "$H" -le 200 ] || die "hosts: 1 to 200, not '$H'"
[ "$R" -ge 1 ] 2>/dev/null && [ "$R" -le 8 ] || die "rails: 1 to 8, not '$R'"
trap '"$here/down.sh" >/dev/null 2>&1 || true' ERR
trap '"$here/down.sh" >/dev/null 2>&1 || true; exit 130' INT TERM HUP
# Another bed's down.sh may remove the parent folder while it is empty.
make_folder() { for _ in 1 2 3 4 5 6 7 8 9; do mkdir -p "$1" 2>/dev/null && return; done; mkdir -p "$1"; }
make_folder "$TB_DIR"

for part in ucxfin placement; do
    "$(mpicc_of_mpich)" -O2 -shared -fPIC -o "$TB_DIR/$part.so" "$here/$part.c" -ldl
done

# The switch. IPv6 is disabled everywhere: the byte counters would include its neighbor discovery.
no_ipv6() { ip netns exec "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 2>/dev/null || true; }
ip netns add "$TB-sw"
no_ipv6 "$TB-sw"
ip -n "$TB-sw" link set lo up
ip -n "$TB-sw" link add brm type bridge
ip -n "$TB-sw" addr add "$TB_MGMT.254/24" dev brm
ip -n "$TB-sw" link set brm up
for ((r = 0; r < R; r++)); do
    ip -n "$TB-sw" link add "br$r" type bridge
    ip -n "$TB-sw" link set "br$r" mtu "$TB_MTU" up
    [ "$r" -gt 0 ] || continue
    ip -n "$TB-sw" link add "t$r-a" mtu "$TB_MTU" type veth peer name "t$r-b" mtu "$TB_MTU"
    ip -n "$TB-sw" link set "t$r-a" master "br$((r - 1))" up
    ip -n "$TB-sw" link set "t$r-b" master "br$r" up
done

{ echo "127.0.0.1 localhost"; echo "$TB_MGMT.254 $TB-sw"
  for ((i = 0; i < H; i++)); do echo "$TB_MGMT.$((i + 1)) h$i"; done; } > "$TB_DIR/hosts"
make_folder "/etc/netns/$TB-sw" && cp "$TB_DIR/hosts" "/etc/netns/$TB-sw/hosts"

for ((i = 0; i < H; i++)); do
    ns=$TB-h$i
    ip netns add "$ns"
    no_ipv6 "$ns"
    ip -n "$ns" link set lo up
    ip -n "$ns" link add mgmt0 type veth peer name "m$i" netns "$TB-sw"
    ip -n "$TB-sw" link set "m$i" master brm up
    ip -n "$ns" addr add "$TB_MGMT.$((i + 1))/24" dev mgmt0
    ip -n "$ns" link set mgmt0 up
    for ((r = 0; r < R; r++)); do
        ip -n "$ns" link add "data$r" mtu "$TB_MTU" type veth peer name "p$r-$i" mtu "$TB_MTU" netns "$TB-sw"
        ip -n "$TB-sw" link set "p$r-$i" master "br$r" up
        ip -n "$ns" addr add "$TB_DATA.$r.$((i + 1))/24" dev "data$r"
        ip -n "$ns" link set "data$r" up
        [ "$R" -gt 1 ] || continue
        ip netns exec "$ns" sysctl -qw "net.ipv4.conf.data$r.arp_ignore=1" "net.ipv4.conf.data$r.arp_announce=2" \
            "net.ipv4.conf.data$r.rp_filter=0"
        ip -n "$ns" route add "$TB_DATA.0.0/16" dev "data$r" table $((100 + r))
        ip -n "$ns" rule add from "$TB_DATA.$r.$((i + 1))" table $((100 + r))
    done
    # The host's other namespaces, kept alive by its pid 1, which also reaps orphans.
    printf '%08x-0000-4000-8000-%012x\n' $((0x7b000000 + i)) $((i + 1)) > "$TB_DIR/h$i.boot_id"
    ip netns exec "$ns" unshare --uts --ipc --mount --pid --fork --mount-proc --kill-child \
        bash -c '
            hostname "$1"
            mount -t tmpfs -o "size=$3" tmpfs /dev/shm
            mount --bind "$2/hosts" /etc/hosts
            mount --bind "$2/$1.boot_id" /proc/sys/kernel/random/boot_id
            touch "$2/$1.ready"
            while :; do sleep 3600 & wait $!; done' \
        init "h$i" "$TB_DIR" "$TB_SHM" </dev/null >"$TB_DIR/h$i.log" 2>&1 &
    echo $! > "$TB_DIR/h$i.outer"
done
for ((i = 0; i < H; i++)); do
    for ((t = 0; t < 600; t++)); do [ -e "$TB_DIR/h$i.ready" ] && break; sleep 0.05; done
    [ -e "$TB_DIR/h$i.ready" ] || { cat "$TB_DIR/h$i.log" >&2; "$here/down.sh"; die "host h$i did not start"; }
    # 'ip netns exec' and unshare exec in place, so the host's first process is the only child of unshare.
    outer=$(cat "$TB_DIR/h$i.outer")
    tr -d ' ' < "/proc/$outer/task/$outer/children" > "$TB_DIR/h$i.pid"
done
echo "$H" > "$TB_DIR/nhosts"; echo "$R" > "$TB_DIR/nrails"
"$here/rate.sh" "$RATE"
trap - ERR INT TERM HUP
echo "testbed '$TB': $H hosts, $R rail(s), $RATE each way"
