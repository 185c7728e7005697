#!/usr/bin/env bash
# YCSB against a running cluster: PORT[,PORT...] RECORDS OPERATIONS THREADS. Loads, runs workloads A to F,
# and fails if an operation failed or the numbers of operations and rows do not add up. With several ports
# the threads are spread over them, and go to the next one when their node is gone. E, whose operations
# read 50 rows on average, runs a fifth of the OPERATIONS. If the `mariadb` client finds the node gone, or not serving for the
# moment, the status is 75: with_cluster.py runs this once more if a node was removed meanwhile.
set -euo pipefail
cd "$(dirname "$0")"
ports="${1:-4306}" records="${2:-100000}" operations="${3:-50000}" threads="${4:-4}"
for tool in java mariadb; do
  command -v "$tool" >/dev/null || { echo "ycsb: $tool is not installed (scripts/setup.sh --tests)" >&2; exit 1; }
done
is_built() { [ -f target/built ] && [ -z "$(find pom.xml src -newer target/built)" ]; }
build() {
  # Another run may be building in the same place.
  mkdir -p target
  exec 9>target/lock
  flock 9
  if ! is_built; then
    echo "ycsb: building the JDBC binding" >&2
    mvn -q -B package >&2
    touch target/built
  fi
  exec 9>&-
}
is_built || build
urls=""
for port in ${ports//,/ }; do
  urls+="jdbc:mysql://127.0.0.1:$port/ycsb?user=root&useSSL=false&allowPublicKeyRetrieval=true&useServerPrepStmts=true&cachePrepStmts=true "
done
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
sql() {
  mariadb --no-defaults -h 127.0.0.1 -P "${ports%%,*}" -u root -N -e "$1" 2>"$work/sql.err" || {
    cat "$work/sql.err"
    if grep -qE "ERROR (2002|2003|2006|2013|1205|1213|1297|1040|1053) " "$work/sql.err"; then exit 75; fi
    exit 1
  } >&2
}
fields=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf ', field%d VARCHAR(100)' "$i"; done)
sql "DROP DATABASE IF EXISTS ycsb; CREATE DATABASE ycsb;
  CREATE TABLE ycsb.usertable (ycsb_key VARCHAR(255) PRIMARY KEY$fields)"

expected_rows=0
run() { # name, phase, count of operations, settings
  local name="$1" phase="$2" count="$3" log="$work/out" rows
  shift 3
  timeout 300 java -cp "target/classes:target/lib/*" site.ycsb.Client "$phase" -db latsdb.JdbcClient -s \
    -threads "$threads" -p db.url="$urls" -p workload=site.ycsb.workloads.CoreWorkload \
    -p recordcount="$records" -p operationcount="$count" -p fieldcount=10 -p fieldlength=100 \
    -p readallfields=true "$@" >"$log" 2>"$log.err" || {
    echo "ycsb: $name: YCSB ended with an error:"; tail -n 5 "$log.err"
    return 1
  }
  if grep -E "Return=(ERROR|NOT_FOUND|UNEXPECTED_STATE)|FAILED" "$log"; then
    echo "ycsb: $name: operations failed"; grep "YCSB:" "$log.err" | sort | uniq -c | head -n 5
    return 1
  fi
  # A read-modify-write counts as one of its own, as a read and as an update.
  awk -F', ' -v name="$name" -v wanted="$count" '
    /\[OVERALL\], Throughput/ { throughput = $3 }
    /\[(READ|UPDATE|INSERT|SCAN)\], Return=OK/ { done += $3 }
    /\[READ-MODIFY-WRITE\], Operations/ { done -= $3 }
    END {
      printf "ycsb: %-10s %10.0f operations/s\n", name, throughput
      if (done != wanted) { printf "ycsb: %s: %d operations succeeded instead of %d\n", name, done, wanted; exit 1 }
    }' "$log" || return 1
  expected_rows=$((expected_rows + $(awk -F', ' '/\[INSERT\], Return=OK/ { n += $3 } END { print n + 0 }' "$log")))
  rows="$(sql "SELECT COUNT(*) FROM ycsb.usertable")"
  if [ "$rows" != "$expected_rows" ]; then
    echo "ycsb: $name: the table has $rows rows instead of $expected_rows"
    return 1
  fi
}
mix() { # read update scan insert read-modify-write distribution
  printf -- '-p readproportion=%s -p updateproportion=%s -p scanproportion=%s -p insertproportion=%s ' "$1" "$2" "$3" "$4"
  printf -- '-p readmodifywriteproportion=%s -p requestdistribution=%s' "$5" "$6"
}
run load -load "$records"
# shellcheck disable=SC2046  # each setting is a word
{
  run A -t "$operations" $(mix 0.5 0.5 0 0 0 zipfian)
  run B -t "$operations" $(mix 0.95 0.05 0 0 0 zipfian)
  run C -t "$operations" $(mix 1 0 0 0 0 zipfian)
  run F -t "$operations" $(mix 0.5 0 0 0 0.5 zipfian)
  run D -t "$operations" $(mix 0.95 0 0 0.05 0 latest)
  # D has inserted: E begins behind what is there.
  records="$expected_rows"
  run E -t "$((operations / 5))" $(mix 0 0 0.95 0.05 0 zipfian) -p maxscanlength=100
}
sql "DROP DATABASE ycsb"
