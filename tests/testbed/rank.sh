#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rank.sh PROGRAM [ARGS...]   run.sh starts this script as each rank: sets variables that differ between ranks and executes the program.
#   TB_RANKS     the ranks in the order in which hydra starts them (empty: hydra's numbers)
#   TB_RAILS     the number of rails; local rank l uses rail l modulo this number (empty: UCX_NET_DEVICES is unchanged)
#   TB_PRELOAD   LD_PRELOAD of the program only, not of this shell
if [ -n "${TB_RANKS:-}" ]; then
    ranks=($TB_RANKS)
    export PMI_RANK=${ranks[$PMI_RANK]}
    [ -z "${PMI_ID:-}" ] || export PMI_ID=$PMI_RANK
fi
[ -z "${TB_RAILS:-}" ] || export UCX_NET_DEVICES=data$((MPI_LOCALRANKID % TB_RAILS))
[ -z "${TB_PRELOAD:-}" ] || export LD_PRELOAD=$TB_PRELOAD
unset TB_RANKS TB_RAILS TB_PRELOAD
exec "$@"
