#!/usr/bin/env bash
# Commits that wait for disks: LatsDB with durability=disk beside MariaDB with innodb_flush_log_at_trx_commit=1, in one run: both with one
# copy, and both with two (LatsDB with two replicas on this machine, each with its own files; MariaDB with a semi-synchronous replica): a
# commit is on two disks then. Prints the figures of docs/benchmarks.md. Needs sysbench and mariadb-server.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/peers.sh
each="${SECONDS_EACH:-5}" rows=100000
figure() { # port, test, threads: transactions per second, mean and 99th percentile
  bench "$1" "$2" "$rows" "$3" "$each" --percentile=99 run 2>/dev/null | awk '
    /transactions:/ { gsub(/[(]/, "", $3); t = $3 } /99th/ { p = $3 } /avg:/ { a = $2 }
    END { printf "%d /s (mean %s ms, 99%%: %s ms)", t, a, p }'
}

"$latsdb" start --data-dir "$work/lats" --sql-port 18306 --detach --memory-mib 2048 --durability disk >/dev/null
"$latsdb" start --nodes 1 --replicas 1 --data-dir "$work/lats-alone" --sql-port 18316 --detach --memory-mib 2048 --durability disk >/dev/null
start_mariadb 18400 --innodb-flush-log-at-trx-commit=1 --max-connections=400
start_mariadb_pair 18450 18451 --innodb-flush-log-at-trx-commit=1 --max-connections=400
for port in 18306 18316 18400 18450; do
  mysql_at "$port" "CREATE DATABASE bench"
  bench "$port" oltp_insert "$rows" 1 "$each" prepare >/dev/null
done
echo "| sysbench, commits that wait for disks | clients | LatsDB, 1 copy | MariaDB InnoDB, 1 copy | LatsDB, 2 replicas | MariaDB, semi-synchronous replica |"
echo "| --- | --- | --- | --- | --- | --- |"
for name in oltp_insert oltp_update_non_index; do
  for clients in 1 16 256; do
    catch_up 18450 18451
    line="| $name | $clients | $(figure 18316 "$name" "$clients") | $(figure 18400 "$name" "$clients")"
    echo "$line | $(figure 18306 "$name" "$clients") | $(figure 18450 "$name" "$clients") |"
    mariadb_waits 18450 || { echo "the replica did not follow all the time" >&2; exit 1; }
  done
done
