#!/usr/bin/env bash
# Measures short statements of LatsDB (two replicas, nothing on disk) beside MariaDB, in turn and on the same processors: points,
# ranges, joins by key, and IN lists of a hundred keys. ROUNDS of SECONDS_EACH; prints each side's mean and their ratio.
# LATSDB names the binary; with BEFORE (another binary) that one is measured beside both.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/peers.sh
each="${SECONDS_EACH:-4}" rounds="${ROUNDS:-3}" rows="${ROWS:-100000}"
ports=(18306 18400)
names=(latsdb mariadb)
"$latsdb" start --data-dir "$work/lats" --sql-port 18306 --detach --memory-mib 1536 --ephemeral >/dev/null
if [ -n "${BEFORE:-}" ]; then
  "$BEFORE" start --data-dir "$work/lats-before" --sql-port 18316 --detach --memory-mib 1536 --ephemeral >/dev/null
  ports+=(18316) names+=(before)
fi
start_mariadb 18400 --innodb-flush-log-at-trx-commit=2
run() { # port, test, threads, more: transactions per second
  bench "$1" "$2" "$rows" "$3" "$each" "${@:4}" run 2>/dev/null | awk '/transactions:/ { gsub(/[(]/, "", $3); print $3 }'
}
join() { # port, more: joins per second
  sysbench tests/join3.lua --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port="$1" --mysql-user=root --mysql-db=bench \
    --threads=4 --time="$each" "${@:2}"
}
joins() { join "$@" run 2>/dev/null | awk '/transactions:/ { gsub(/[(]/, "", $3); print $3 }'; }
for port in "${ports[@]}"; do
  mysql_at "$port" "CREATE DATABASE bench"
  bench "$port" oltp_read_write "$rows" 8 1 prepare >/dev/null
  join "$port" prepare >/dev/null
done
figure() { # name of the measurement, port
  case "$1" in
    point_select) run "$2" oltp_point_select 8 ;;
    read_only) run "$2" oltp_read_only 8 ;;
    random_points) run "$2" select_random_points 8 ;;
    random_ranges) run "$2" select_random_ranges 8 ;;
    join3_prepared) joins "$2" ;;
    join3_text) joins "$2" --prepared=off ;;
  esac
}
printf '%-16s' workload; printf '%12s' "${names[@]}"; printf '%12s\n' ratio
for name in ${WORKLOADS:-point_select read_only random_points random_ranges join3_prepared join3_text}; do
  sums=()
  for round in $(seq "$rounds"); do
    for at in "${!ports[@]}"; do
      sums[at]="$(awk -v a="${sums[at]:-0}" -v b="$(figure "$name" "${ports[at]}")" 'BEGIN { print a + b }')"
    done
  done
  printf '%-16s' "$name"
  for sum in "${sums[@]}"; do awk -v s="$sum" -v n="$rounds" 'BEGIN { printf "%12.0f", s / n }'; done
  awk -v a="${sums[0]}" -v b="${sums[1]}" 'BEGIN { printf "%12.2f\n", a / b }'
done

if [ -z "${WORKLOADS:-}" ]; then
  for round in $(seq "$rounds"); do
    "$latsdb" bench keys --data-dir "$work/lats" --seconds "$each" --peer mysql://root@127.0.0.1:18400
  done
fi
