#!/usr/bin/env bash
# Runs the simulator with a planted bug: it must report failing seeds, or the checkers are blind.
set -euo pipefail
sim="$1" bug="$2" seeds="${3:-60}" more="${4:-}"
if "$sim" --seed 1 --seeds "$seeds" --bug "$bug" $more >/tmp/planted.$$ 2>&1; then
  cat /tmp/planted.$$; rm -f /tmp/planted.$$
  echo "the planted bug $bug was not found in $seeds seeds" >&2
  exit 1
fi
tail -n 1 /tmp/planted.$$
rm -f /tmp/planted.$$
