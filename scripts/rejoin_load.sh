#!/usr/bin/env bash
# What clients notice of a rejoin: sysbench writes through node 1 while node 2 is killed and comes back.
# rejoin_load.sh [BINARY] [ROWS]
set -euo pipefail
binary="$(realpath "${1:-target/release/latsdb}")" rows="${2:-1000000}" port="${PORT:-16306}"
directory="$(mktemp -d)/data"
trap '"$binary" stop --data-dir "$directory" >/dev/null' EXIT
"$binary" start --data-dir "$directory" --sql-port "$port" --ephemeral --detach
at=(--mysql-host=127.0.0.1 --mysql-port="$port" --mysql-user=root --mysql-db=test --tables=1 --table-size="$rows")
sysbench oltp_update_non_index "${at[@]}" prepare >/dev/null
sysbench oltp_update_non_index "${at[@]}" --threads=4 --time=20 --report-interval=1 run | grep '^\[' &
sleep 6
pid="$("$binary" status --data-dir "$directory" --json | python3 -c '
import json, sys
print(next(n["pid"] for n in json.load(sys.stdin)["nodes"] if n["node_id"] == 2))')"
echo "node 2 (process $pid) is killed"
kill -9 "$pid"
wait %1
