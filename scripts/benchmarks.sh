#!/usr/bin/env bash
# Measures LatsDB (two replicas, both on this machine) beside MariaDB and Redis in one run, and prints
# the figures of docs/benchmarks.md. Needs sysbench, mariadb-server and redis; SECONDS_EACH per figure.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/peers.sh
each="${SECONDS_EACH:-5}" rows="${ROWS:-100000}" threads="${THREADS:-8}"
figure() { # port, test: transactions per second and 95th percentile
  bench "$1" "$2" "$rows" "$threads" "$each" run 2>/dev/null | awk '
    /transactions:/ { gsub(/[(]/, "", $3); t = $3 } /95th/ { p = $3 }
    END { printf "%d /s (95%%: %s ms)", t, p }'
}

"$latsdb" start --data-dir "$work/lats" --sql-port 18306 --detach --memory-mib 2048 --ephemeral >/dev/null
start_mariadb 18400 --innodb-flush-log-at-trx-commit=2
redis-server --port 18500 --bind 127.0.0.1 --save "" --appendonly no --daemonize no >"$work/redis.log" 2>&1 &
pids+=($!)

for port in 18306 18400; do
  mysql_at "$port" "CREATE DATABASE bench"
  bench "$port" oltp_read_write "$rows" "$threads" "$each" prepare >/dev/null
done
echo "| sysbench, $threads threads, $rows rows | LatsDB, 2 replicas | MariaDB InnoDB, no replica |"
echo "| --- | --- | --- |"
for name in oltp_point_select oltp_read_only oltp_read_write oltp_update_index oltp_update_non_index oltp_insert \
  select_random_points select_random_ranges; do
  echo "| $name | $(figure 18306 "$name") | $(figure 18400 "$name") |"
done
echo
echo "| redis-benchmark, 100-byte values | Redis |"
echo "| --- | --- |"
redis() { redis-benchmark -p 18500 -n "$1" -d 100 -r 100000 -t get,set -c 50 "${@:2}" --csv | awk -F'","' \
  -v how="$*" 'NR > 1 { gsub(/"/, "", $1); printf "| %s (-n %s) | %d /s |\n", $1, how, $2 }'; }
redis 200000
redis 2000000 -P 100
