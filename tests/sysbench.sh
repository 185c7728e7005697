#!/usr/bin/env bash
# sysbench against a running cluster: PORT ROWS SECONDS THREADS. Fails if any test reports an error or
# comes to nothing. If all errors say that the node is gone or does not serve for the moment, the status is 75:
# with_cluster.py runs this once more if a node was removed meanwhile.
set -euo pipefail
port="${1:-4306}" rows="${2:-100000}" seconds="${3:-3}" threads="${4:-4}"
patience_s=120 inconclusive=75
for tool in sysbench mariadb; do
  command -v "$tool" >/dev/null || { echo "sysbench: $tool is not installed (scripts/setup.sh --tests)" >&2; exit 1; }
done
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
# True if there are errors in the log, and all are that it cannot connect, that the connection is gone, a temporary error, or a shutdown.
is_temporary() {
  local errors
  errors="$(grep -oiE "error:? [0-9]{4}" "$log" | grep -oE "[0-9]+" | sort -u)" || return 1
  ! grep -qvE "^(2002|2003|2006|2013|1205|1213|1297|1040|1053)$" <<<"$errors"
}
failed() {
  echo "sysbench: $* FAILED:"; grep -E "FATAL|ALERT|ERROR" "$log" | head -n 5
  if is_temporary; then exit "$inconclusive"; fi
  exit 1
}
sql() { mariadb --no-defaults -h 127.0.0.1 -P "$port" -u root -N -e "$1" 2>"$log" || failed "$1"; }
bench() {
  timeout "$patience_s" sysbench "$1" --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port="$port" --mysql-user=root \
    --mysql-db=sbtest --tables=1 --table-size="$rows" "${@:2}" >"$log" 2>&1
}
prepare() {
  local there
  sql "DROP DATABASE IF EXISTS sbtest; CREATE DATABASE sbtest"
  echo "sysbench: preparing $rows rows"
  bench oltp_read_write prepare || failed prepare
  there="$(sql "SELECT COUNT(*) FROM sbtest.sbtest1")"
  if [ "$there" != "$rows" ]; then
    echo "sysbench: prepare FAILED: $there rows instead of $rows"
    exit 1
  fi
}
# What a run did; fails if it did nothing.
report() {
  awk -v n="$1" -v m="$2" '
    /transactions:/ { count = $2; gsub(/[(]/, "", $3); t = $3 } /95th percentile/ { p = $3 }
    /ignored errors:/ { e = $3 }
    END {
      printf "sysbench: %-22s ps-mode %-8s %10.0f transactions/s, 95%% in %s ms, %s retried\n", n, m, t, p, e
      exit count == 0
    }' "$log"
}
run() {
  bench "$name" --threads="$threads" --db-ps-mode="$mode" "$@" run && ! grep -q FATAL "$log" || failed "$name (ps-mode $mode)"
  report "$name" "$mode"
}
for mode in auto disable; do
  prepare
  # oltp_delete comes last: where rows are missing, two transactions of oltp_read_write can insert the
  # same one, which is an error with MySQL as well.
  for name in oltp_point_select oltp_read_write oltp_insert oltp_update_index select_random_points \
    select_random_ranges oltp_delete; do
    # How many transactions fit into a second is a matter of speed; that there is one is not.
    run --time="$seconds" || run --time="$patience_s" --events=1 || failed "$name (ps-mode $mode): no transaction at all"
  done
done
sql "DROP DATABASE sbtest"
