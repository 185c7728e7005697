#!/usr/bin/env bash
# sysbench against a running cluster: PORT ROWS SECONDS THREADS. Fails if any test reports an error or
# comes to nothing.
set -euo pipefail
port="${1:-4306}" rows="${2:-100000}" seconds="${3:-3}" threads="${4:-4}"
for tool in sysbench mariadb; do
  command -v "$tool" >/dev/null || { echo "sysbench: $tool is not installed (scripts/setup.sh --tests)" >&2; exit 1; }
done
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
sql() { mariadb --no-defaults -h 127.0.0.1 -P "$port" -u root -N -e "$1"; }
bench() {
  timeout 120 sysbench "$1" --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port="$port" --mysql-user=root \
    --mysql-db=sbtest --tables=1 --table-size="$rows" "${@:2}" >"$log" 2>&1
}
prepare() {
  local there
  sql "DROP DATABASE IF EXISTS sbtest; CREATE DATABASE sbtest"
  echo "sysbench: preparing $rows rows"
  if ! bench oltp_read_write prepare; then
    echo "sysbench: prepare FAILED:"; grep -E "FATAL|ALERT" "$log" | head -n 5
    exit 1
  fi
  there="$(sql "SELECT COUNT(*) FROM sbtest.sbtest1")"
  if [ "$there" != "$rows" ]; then
    echo "sysbench: prepare FAILED: $there rows instead of $rows"
    exit 1
  fi
}
failed=0
for mode in auto disable; do
  prepare
  # oltp_delete comes last: where rows are missing, two transactions of oltp_read_write can insert the
  # same one, which is an error with MySQL as well.
  for name in oltp_point_select oltp_read_write oltp_insert oltp_update_index select_random_points \
    select_random_ranges oltp_delete; do
    if ! bench "$name" --threads="$threads" --time="$seconds" --db-ps-mode="$mode" run || grep -q FATAL "$log"; then
      echo "sysbench: $name (ps-mode $mode) FAILED:"; grep -E "FATAL|ALERT" "$log" | head -n 5
      failed=$((failed + 1))
    else
      awk -v n="$name" -v m="$mode" '
        /transactions:/ { count = $2; gsub(/[(]/, "", $3); t = $3 } /95th percentile/ { p = $3 }
        /ignored errors:/ { e = $3 }
        END {
          printf "sysbench: %-22s ps-mode %-8s %10.0f transactions/s, 95%% in %s ms, %s retried\n", n, m, t, p, e
          if (count == 0) { print "sysbench: " n ": no transaction at all"; exit 1 }
        }' "$log" || failed=$((failed + 1))
    fi
  done
done
sql "DROP DATABASE sbtest"
[ "$failed" = 0 ]
