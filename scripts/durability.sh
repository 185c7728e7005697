#!/usr/bin/env bash
# Commits that wait for disks: LatsDB with durability=disk (two replicas, both on this machine, each with its own files) beside MariaDB
# with innodb_flush_log_at_trx_commit=1, in one run. Prints the table of docs/benchmarks.md. Needs sysbench and mariadb-server.
set -euo pipefail
cd "$(dirname "$0")/.."
latsdb="$(realpath "${LATSDB:-target/release/latsdb}")"
each="${SECONDS_EACH:-5}" rows=100000
work="$(mktemp -d)"
pids=()
end() {
  "$latsdb" stop --data-dir "$work/lats" >/dev/null 2>&1 || true
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap end EXIT
mysql_at() { mariadb -h 127.0.0.1 -P "$1" -u root -N -e "$2"; }
bench() { # port, test, threads
  sysbench "$2" --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port="$1" --mysql-user=root \
    --mysql-db=bench --tables=1 --table-size="$rows" --threads="$3" --time="$each" "${@:4}"
}
figure() { # port, test, threads: transactions per second, median and 99th percentile
  bench "$1" "$2" "$3" --percentile=99 run 2>/dev/null | awk '/transactions:/ { gsub(/[(]/, "", $3); t = $3 } /99th/ { p = $3 } /avg:/ { a = $2 }
    END { printf "%d /s (mean %s ms, 99%%: %s ms)", t, a, p }'
}

"$latsdb" start --data-dir "$work/lats" --sql-port 18306 --detach --memory-mib 2048 --durability disk >/dev/null
mkdir "$work/maria"
mariadb-install-db --no-defaults --auth-root-authentication-method=normal --user="$(id -un)" \
  --datadir="$work/maria/data" >/dev/null 2>&1
mariadbd --no-defaults --user="$(id -un)" --datadir="$work/maria/data" --port=18400 --bind-address=127.0.0.1 \
  --socket="$work/maria/sock" --pid-file="$work/maria/pid" --innodb-flush-log-at-trx-commit=1 --max-connections=400 \
  --innodb-buffer-pool-size=1G >"$work/maria/log" 2>&1 &
pids+=($!)
for _ in $(seq 100); do mysql_at 18400 "SELECT 1" >/dev/null 2>&1 && break; sleep 0.1; done
for port in 18306 18400; do
  mysql_at "$port" "CREATE DATABASE bench"
  bench "$port" oltp_insert 1 prepare >/dev/null
done
echo "| sysbench, commits that wait for disks | clients | LatsDB, 2 replicas | MariaDB InnoDB, no replica |"
echo "| --- | --- | --- | --- |"
for name in oltp_insert oltp_update_non_index; do
  for clients in 1 16 256; do
    echo "| $name | $clients | $(figure 18306 "$name" "$clients") | $(figure 18400 "$name" "$clients") |"
  done
done
