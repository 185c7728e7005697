#!/usr/bin/env bash
# sysbench against a running cluster: PORT ROWS SECONDS THREADS. Fails if any test reports an error.
set -euo pipefail
port="${1:-4306}" rows="${2:-100000}" seconds="${3:-3}" threads="${4:-4}"
sql() { mariadb -h 127.0.0.1 -P "$port" -u root -e "$1"; }
bench() {
  sysbench "$1" --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port="$port" --mysql-user=root \
    --mysql-db=sbtest --tables=1 --table-size="$rows" "${@:2}"
}
failed=0
for mode in auto disable; do
  sql "DROP DATABASE IF EXISTS sbtest; CREATE DATABASE sbtest"
  echo "sysbench: preparing $rows rows"
  bench oltp_read_write prepare >/dev/null
  # oltp_delete comes last: where rows are missing, two transactions of oltp_read_write can insert the
  # same one, which is an error with MySQL as well.
  for name in oltp_point_select oltp_read_write oltp_insert oltp_update_index select_random_points \
    select_random_ranges oltp_delete; do
    log=$(mktemp)
    if ! timeout 120 sysbench "$name" --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port="$port" \
      --mysql-user=root --mysql-db=sbtest --tables=1 --table-size="$rows" --threads="$threads" \
      --time="$seconds" --db-ps-mode="$mode" run >"$log" 2>&1 || grep -q FATAL "$log"; then
      echo "sysbench: $name (ps-mode $mode) FAILED:"; grep -E "FATAL|ALERT" "$log" | head -n 5
      failed=$((failed + 1))
    else
      awk -v n="$name" -v m="$mode" '
        /transactions:/ { gsub(/[(]/, "", $3); t = $3 } /95th percentile/ { p = $3 }
        /ignored errors:/ { e = $3 }
        END { printf "sysbench: %-22s ps-mode %-8s %10s transactions/s, 95%% in %s ms, %s retried\n", n, m, t, p, e }' "$log"
    fi
    rm -f "$log"
  done
done
sql "DROP DATABASE sbtest"
[ "$failed" = 0 ]
