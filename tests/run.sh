#!/usr/bin/env bash
# Real clients against a real two-replica cluster, one test after the other. LATSDB names the binary.
set -euo pipefail
cd "$(dirname "$0")/.."
export LATSDB="${LATSDB:-target/release/latsdb}"
LATSDB="$(realpath "$LATSDB")"
# The checker of histories is built beside the server.
export LATS_HISTORY="${LATS_HISTORY:-$(dirname "$LATSDB")/lats-history}"
[ -x "$LATS_HISTORY" ] || { echo "there is no $LATS_HISTORY: cargo build -p lats-history" >&2; exit 1; }
directory="$(mktemp -d)/data"
port="${PORT:-15306}"
passed=0 failed=0 skipped=0
stop() { "$LATSDB" stop --data-dir "$directory" >/dev/null 2>&1 || true; }
trap stop EXIT
check() {
  local name="$1" since=$SECONDS
  shift
  local status=0
  "$@" || status=$?
  if [ "$status" = 0 ]; then
    passed=$((passed + 1)); echo "== $name: passed in $((SECONDS - since)) s"
  elif [ "$status" = 77 ]; then
    skipped=$((skipped + 1)); echo "== $name: SKIPPED, not possible on this machine"
  else
    failed=$((failed + 1)); echo "== $name: FAILED"
  fi
}
"$LATSDB" start --data-dir "$directory" --sql-port "$port" --ephemeral --detach
check "bad input" timeout 300 python3 tests/badinput.py --binary "$LATSDB" --data-dir "$directory" --sql-port "$port"
check "the mariadb client" timeout 300 bash tests/mariadb.sh "$port"
check "definitions are known to all sessions" timeout 120 python3 tests/definitions.py "$port"
check "locks" timeout 120 python3 tests/locks.py "$port"
check "heavy statements" timeout 300 python3 tests/heavy.py --binary "$LATSDB" --data-dir "$directory" --sql-port "$port"
check "unique indexes on a table in use" timeout 300 python3 tests/unique.py --ports "$port,$((port + 1))"
check "sysbench" timeout 300 bash tests/sysbench.sh "$port" 100000 2 4
check "YCSB" timeout 600 bash tests/ycsb/run.sh "$port" 100000 10000 4
stop
# Where the modules live changes nothing but speed: clients work, and nodes are killed, under each placement.
placement() { # thread_config, data nodes
  local failed_here=0
  # The way a cluster is cut into nodes is settled when its directory is new.
  rm -rf "$directory-threads"
  "$LATSDB" start --data-dir "$directory-threads" --sql-port $((port + 20)) --ephemeral --detach --thread-config "$1" --nodes "$2"
  timeout 200 bash tests/sysbench.sh $((port + 20)) 20000 1 4 || failed_here=1
  "$LATSDB" stop --data-dir "$directory-threads"
  timeout 200 python3 tests/kill.py --binary "$LATSDB" --kills 5 --sql-port $((port + 50)) --thread-config "$1" || failed_here=1
  return $failed_here
}
check "placement: receive threads beside the rest" placement "recv={count=2},main+tc+ldm={count=1}" 4
check "placement: a pipeline" placement "recv={count=1},tc={count=1,spintime=20},ldm={count=2},send={count=1}" 2
check "placement: receive threads that do everything" placement "recv={count=3}" 2
check "placement: threads that read beside data managers" placement "recv+query={count=2},tc={count=1},ldm+query={count=2}" 2
check "the command line" timeout 120 bash tests/commands.sh $((port + 300))
check "twenty kills" timeout 300 python3 tests/kill.py --binary "$LATSDB" --kills 20 --sql-port $((port + 50))
blackouts() { # data nodes, replicas, rounds
  timeout 300 python3 tests/blackout.py --binary "$LATSDB" --sql-port $((port + 430)) --nodes "$1" --replicas "$2" --rounds "$3"
}
check "all processes are killed, two replicas" blackouts 2 2 10
check "all processes are killed, two node groups" blackouts 4 2 4
check "nodes that are away for long, or for ever" timeout 500 python3 tests/away.py --binary "$LATSDB" --sql-port $((port + 470))
check "backups" timeout 300 python3 tests/backup.py --binary "$LATSDB" --sql-port $((port + 520))
check "files are as the documents say" timeout 120 python3 tests/formats.py --binary "$LATSDB" --sql-port $((port + 660))
check "backups in an object store" timeout 200 python3 tests/object_store.py --binary "$LATSDB" --sql-port $((port + 640))
check "restoring as of a moment" timeout 300 python3 tests/archive.py --binary "$LATSDB" --sql-port $((port + 600))
check "a full disk" timeout 300 python3 tests/full_disk.py --binary "$LATSDB" --sql-port $((port + 550))
check "a disk that is slow, and fails to sync" timeout 300 python3 tests/broken_disk.py --binary "$LATSDB" --sql-port $((port + 620))
check "a restarting node is killed again and again" timeout 300 python3 tests/restart_kills.py --binary "$LATSDB" --kills 8 --rows 30000 --sql-port $((port + 580))
check "damaged files" timeout 300 python3 tests/damage.py --binary "$LATSDB" --sql-port $((port + 460))
histories() { # data nodes, replicas, faults
  timeout 300 python3 tests/history.py --binary "$LATSDB" --checker "$LATS_HISTORY" --sql-port $((port + 80)) \
    --nodes "$1" --replicas "$2" --rounds "$3"
}
check "histories with two replicas" histories 2 2 6
check "histories with three replicas" histories 3 3 5
check "histories with two node groups" histories 4 2 5
check "a node group is lost" timeout 120 python3 tests/lost_group.py --binary "$LATSDB" --sql-port $((port + 400))
check "a node group falls silent" timeout 240 python3 tests/silent_group.py --binary "$LATSDB"
check "nodes that are told to stop" timeout 200 python3 tests/stop_node.py --binary "$LATSDB" --sql-port $((port + 70))
check "open transactions over a rejoin" timeout 200 python3 tests/rejoin.py --binary "$LATSDB" --sql-port $((port + 90))
check "frozen nodes" timeout 200 python3 tests/kill.py --binary "$LATSDB" --fault freeze --kills 4 --sql-port $((port + 60))
partitions() {
  timeout 400 python3 tests/partition.py --binary "$LATSDB" --checker "$LATS_HISTORY" --nodes "$1" --replicas "$2"
}
check "partitions with two replicas" partitions 2 2
check "partitions with three replicas" partitions 3 3
check "partitions with two node groups" partitions 4 2
if [ "$failed" != 0 ]; then
  echo "the cluster's log ends with:"; tail -n 30 "$directory.log" || true
fi
[ "$skipped" = 0 ] || echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
