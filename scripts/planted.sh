#!/usr/bin/env bash
# Runs the simulator with a planted bug: it must report failing seeds, or the checkers are blind.
# The third argument says how many seeds at most, or FIRST+COUNT: rare bugs are looked for near a seed that finds them.
set -euo pipefail
sim="$1" bug="$2" seeds="${3:-60}" more="${4:-}" first=1
case "$seeds" in *+*) first="${seeds%+*}" seeds="${seeds#*+}" ;; esac
if "$sim" --seed "$first" --seeds "$seeds" --bug "$bug" $more >/tmp/planted.$$ 2>&1; then
  cat /tmp/planted.$$; rm -f /tmp/planted.$$
  echo "the planted bug $bug was not found in $seeds seeds from $first" >&2
  exit 1
fi
tail -n 1 /tmp/planted.$$
rm -f /tmp/planted.$$
