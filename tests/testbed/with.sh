#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# with.sh HOSTS RATE [RAILS] -- COMMAND [ARGS...]
#
# Brings a test bed up, runs COMMAND with TB set to its name and takes it down, whatever ends first: the command, a signal to this
# script, or, also by SIGKILL, the script itself: then a watcher outside its process tree takes the bed down within a second or two.
# The name is its own, so any number may run at once. The exit status is the command's; 77 where the bed can't run.
set -u
here=$(cd "$(dirname "$0")" && pwd)
usage() { echo "testbed: with.sh HOSTS RATE [RAILS] -- COMMAND [ARGS...]" >&2; exit 2; }
bed=(); while [ $# -gt 0 ] && [ "$1" != -- ]; do bed+=("$1"); shift; done
[ $# -ge 2 ] && [ ${#bed[@]} -ge 2 ] || usage; shift
export TB=tb$$_$RANDOM

child=
finish() {  # signal number or 0
    trap '' INT TERM HUP
    [ -z "$child" ] || kill -TERM "$child" 2>/dev/null
    "$here/down.sh"
    exit $((128 + $1))
}
trap 'finish 2' INT; trap 'finish 15' TERM; trap 'finish 1' HUP
# No file of ours stays open in it: whoever reads our output must not wait for it.
setsid -f bash -c '
    while read -r line < "/proc/$1/stat"; do
        line=${line##*) }; [ "${line%% *}" = Z ] && break   # dead, though not yet waited for
        sleep 1
    done 2>/dev/null
    exec "$2/down.sh"' watcher $$ "$here" </dev/null >/dev/null 2>&1
"$here/up.sh" "${bed[@]}" >/dev/null || exit $?
"$@" <&0 & child=$!
wait "$child"; status=$?
"$here/down.sh"
exit "$status"
