#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# with.sh HOSTS RATE [RAILS] -- COMMAND [ARGS...]
#
# Starts a test bed, runs COMMAND with TB set to its name, and removes the bed after the command ends or this script gets a signal. If
# the script itself is killed, also by SIGKILL, a watcher outside its process tree removes the bed within a second or two. The name is
# unique, so any number of beds may run at the same time. The exit status is that of the command, or 77 if the bed cannot run.
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
# The watcher has no open files of this script, so a reader of the script's output does not wait for it.
setsid -f bash -c '
    while read -r line < "/proc/$1/stat"; do
        line=${line##*) }; [ "${line%% *}" = Z ] && break   # ended, but not yet waited for
        sleep 1
    done 2>/dev/null
    exec "$2/down.sh"' watcher $$ "$here" </dev/null >/dev/null 2>&1
"$here/up.sh" "${bed[@]}" >/dev/null || exit $?
"$@" <&0 & child=$!
wait "$child"; status=$?
"$here/down.sh"
exit "$status"
