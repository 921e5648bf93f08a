#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rank.sh PROGRAM [ARGS...]   what run.sh starts as each rank: sets what differs from rank to rank and becomes the program.
#   TB_RANKS     the ranks in the order in which hydra starts them (empty: its own numbers)
#   TB_RAILS     so many rails, local rank l on rail l modulo that (empty: UCX_NET_DEVICES as it is)
#   TB_PRELOAD   LD_PRELOAD of the program alone, not of this shell
if [ -n "${TB_RANKS:-}" ]; then
    ranks=($TB_RANKS)
    export PMI_RANK=${ranks[$PMI_RANK]}
    [ -z "${PMI_ID:-}" ] || export PMI_ID=$PMI_RANK
fi
[ -z "${TB_RAILS:-}" ] || export UCX_NET_DEVICES=data$((MPI_LOCALRANKID % TB_RAILS))
[ -z "${TB_PRELOAD:-}" ] || export LD_PRELOAD=$TB_PRELOAD
unset TB_RANKS TB_RAILS TB_PRELOAD
exec "$@"
