#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [OPTIONS] PROGRAM [ARGS...]    runs PROGRAM under MPICH on the test bed's hosts
#   -p PPN         ranks on each host (2)            -H HOSTS   only the first HOSTS hosts (all)
#   -n N0,N1,...   ranks on h0, h1, ...; 0 skips a host
#   -c             cyclic: ranks are assigned round robin to hosts with free places; default: block placement
#   -r FILE        any placement: line r names the host of rank r, as h2 or 2
#   -R             local rank l uses only rail l modulo the number of rails; default: every rank may use all rails
#   -d DEVICES     UCX_NET_DEVICES, in place of all rails; '' leaves it unset (then mgmt0, which is not shaped, can be used too)
#   -l LIB         preload LIB (absolute path) into the ranks; may be repeated. Do not use -e LD_PRELOAD: the bed preloads libraries, too
#   -e NAME=VALUE  an environment variable for the ranks only; may be repeated
# TB_NOFIN=1 in the environment disables ucxfin.so (see ucxfin.c).
set -eu
here=$(cd "$(dirname "$0")" && pwd); . "$here/tb.env"
P=2; H=$(hosts_up); per_host=; cyclic=; file=; own_rail=; devices=-; envs=(); preload=
while getopts p:H:n:cr:Rd:l:e: o; do
    case $o in p) P=$OPTARG;; H) H=$OPTARG;; n) per_host=$OPTARG;; c) cyclic=1;; r) file=$OPTARG;; R) own_rail=1;; d) devices=$OPTARG;;
        l) preload+=$OPTARG:;; e) envs+=(-genv "${OPTARG%%=*}" "${OPTARG#*=}");; *) exit 2;; esac
done
shift $((OPTIND - 1))
up=$(hosts_up)
[ "$up" -gt 0 ] || die "'$TB' is not up"
[ $# -gt 0 ] || die "run.sh needs a program"

host_of=()   # rank -> index of its host
if [ -n "$file" ]; then
    [ -r "$file" ] || die "can't read the placement '$file'"
    while read -r host _; do
        [ -z "$host" ] || host_of+=("${host#h}")
    done < "$file"
else
    [[ $P =~ ^[0-9]+$ && $H =~ ^[0-9]+$ ]] || die "-p and -H need numbers"
    if [ -n "$per_host" ]; then IFS=, read -ra room <<< "$per_host"; else room=(); for ((i = 0; i < H; i++)); do room+=("$P"); done; fi
    for i in "${!room[@]}"; do [[ ${room[i]} =~ ^[0-9]+$ ]] || die "-n needs numbers, not '${room[i]}'"; done
    left=1
    while [ "$left" -gt 0 ]; do
        left=0
        for i in "${!room[@]}"; do
            for ((; room[i] > 0; room[i]--)); do
                host_of+=("$i")
                [ -z "$cyclic" ] || { room[i]=$((room[i] - 1)); break; }
            done
            left=$((left + room[i]))
        done
    done
fi
[ ${#host_of[@]} -gt 0 ] || die "no ranks"

# Hydra starts the ranks host by host; `order` is the list of their numbers for rank.sh.
list=; order=
for ((i = 0; i < up; i++)); do
    count=0
    for r in "${!host_of[@]}"; do
        [ "${host_of[r]}" = "$i" ] || continue
        order+=${order:+ }$r; count=$((count + 1))
    done
    [ "$count" = 0 ] || list+=${list:+,}h$i:$count
done
[ "$(wc -w <<< "$order")" = ${#host_of[@]} ] || die "a rank is placed on a host that is not up (h0 to h$((up - 1)) are)"

[ "${TB_NOFIN:-}" ] || preload+=$TB_DIR/ucxfin.so:
if [ "$order" != "$(seq -s' ' 0 $((${#host_of[@]} - 1)))" ]; then
    envs+=(-genv TB_RANKS "$order"); preload+=$TB_DIR/placement.so:
fi
if [ "$devices" = - ]; then
    devices=; for ((r = 0; r < $(rails_up); r++)); do devices+=${devices:+,}data$r; done
fi
[ -z "$devices" ] || envs+=(-genv UCX_NET_DEVICES "$devices")
[ -z "$own_rail" ] || envs+=(-genv TB_RAILS "$(rails_up)")
[ -z "$preload" ] || envs+=(-genv TB_PRELOAD "${preload%:}")
exec ip netns exec "$TB-sw" env TB="$TB" "$(mpiexec_of_mpich)" -launcher ssh -launcher-exec "$here/launch.sh" \
    -localhost "$TB_MGMT.254" -hosts "$list" -bind-to none -genv FI_TCP_IFACE data0 -genv FI_SOCKETS_IFACE data0 \
    -genv UCX_WARN_UNUSED_ENV_VARS n "${envs[@]}" -n ${#host_of[@]} "$here/rank.sh" "$@"
