#!/usr/bin/env bash
# sysbench against a running cluster: PORT ROWS SECONDS THREADS. Fails if any test reports an error or
# comes to nothing. If all errors say that the node is gone or does not serve for the moment, and the cluster's log
# (CLUSTER_LOG, see with_cluster.py) says that a node was removed meanwhile, what was done is done once more.
set -euo pipefail
port="${1:-4306}" rows="${2:-100000}" seconds="${3:-3}" threads="${4:-4}"
patience_s=120 attempts=8
for tool in sysbench mariadb; do
  command -v "$tool" >/dev/null || { echo "sysbench: $tool is not installed (scripts/setup.sh --tests)" >&2; exit 1; }
done
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
removals() { grep -c "node stops: .*a new process can join" "${CLUSTER_LOG:-/dev/null}" || true; }
# True if there are errors in the log, and all are that it cannot connect, that the connection is gone, a temporary error, or a shutdown.
is_temporary() {
  local errors
  errors="$(grep -oiE "error:? [0-9]{4}" "$log" | grep -oE "[0-9]+" | sort -u)" || return 1
  ! grep -qvE "^(2002|2003|2006|2013|1205|1213|1297|1040|1053)$" <<<"$errors"
}
sql() { mariadb --no-defaults -h 127.0.0.1 -P "$port" -u root -N -e "$1" 2>"$log"; }
bench() {
  timeout "$patience_s" sysbench "$1" --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port="$port" --mysql-user=root \
    --mysql-db=sbtest --tables=1 --table-size="$rows" "${@:2}" >"$log" 2>&1 && ! grep -q FATAL "$log"
}
# True if a node was removed since there were so many removals. It says so when it gets processor time.
was_disturbed() {
  local end=$((SECONDS + patience_s))
  while [ "$SECONDS" -lt "$end" ]; do
    if [ "$(removals)" -gt "$1" ] && sql "SELECT 1" >/dev/null; then return 0; fi
    sleep 0.2
  done
  return 1
}
# Does it; once more, if it was disturbed.
at_last() {
  local attempt before errors
  for attempt in $(seq "$attempts"); do
    before="$(removals)"
    if "$@"; then return 0; fi
    errors="$(grep -E "FATAL|ALERT|ERROR" "$log" | head -n 5 || true)"
    is_temporary && was_disturbed "$before" || break
    echo "sysbench: once more ($attempt of $((attempts - 1))): $*: a node was removed"
  done
  echo "sysbench: $* FAILED:"; echo "$errors"
  return 1
}
prepare() {
  sql "DROP DATABASE IF EXISTS sbtest; CREATE DATABASE sbtest" && bench oltp_read_write prepare
}
count_rows() {
  there="$(sql "SELECT COUNT(*) FROM sbtest.sbtest1")"
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
# How many transactions fit into a second is a matter of speed; that there is one is not.
run() {
  local name="$1" mode="$2"
  bench "$name" --threads="$threads" --db-ps-mode="$mode" --time="$seconds" run || return 1
  report "$name" "$mode" && return
  bench "$name" --threads="$threads" --db-ps-mode="$mode" --time="$patience_s" --events=1 run && report "$name" "$mode"
}
for mode in auto disable; do
  echo "sysbench: preparing $rows rows"
  at_last prepare
  at_last count_rows
  if [ "$there" != "$rows" ]; then
    echo "sysbench: prepare FAILED: $there rows instead of $rows"
    exit 1
  fi
  # oltp_delete comes last: where rows are missing, two transactions of oltp_read_write can insert the
  # same one, which is an error with MySQL as well.
  for name in oltp_point_select oltp_read_write oltp_insert oltp_update_index select_random_points \
    select_random_ranges oltp_delete; do
    at_last run "$name" "$mode"
  done
done
at_last sql "DROP DATABASE sbtest"
