#!/usr/bin/env bash
# Real clients against a real two-replica cluster, one test after the other. LATSDB names the binary.
set -euo pipefail
cd "$(dirname "$0")/.."
export LATSDB="${LATSDB:-target/release/latsdb}"
LATSDB="$(realpath "$LATSDB")"
directory="$(mktemp -d)/data"
port="${PORT:-15306}"
passed=0 failed=0
stop() { "$LATSDB" stop --data-dir "$directory" >/dev/null 2>&1 || true; }
trap stop EXIT
check() {
  local name="$1" since=$SECONDS
  shift
  if timeout 900 "$@"; then
    passed=$((passed + 1)); echo "== $name: passed in $((SECONDS - since)) s"
  else
    failed=$((failed + 1)); echo "== $name: FAILED"
  fi
}
"$LATSDB" start --data-dir "$directory" --sql-port "$port" --ephemeral --detach
check "bad input" python3 tests/badinput.py --binary "$LATSDB" --data-dir "$directory" --sql-port "$port"
check "sysbench" bash tests/sysbench.sh "$port" 100000 2 4
check "YCSB" bash tests/ycsb/run.sh "$port" 100000 10000 4
stop
check "twenty kills" python3 tests/kill.py --binary "$LATSDB" --kills 20 --sql-port $((port + 50))
if [ "$failed" != 0 ]; then
  echo "the cluster's log ends with:"; tail -n 30 "$directory.log" || true
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
