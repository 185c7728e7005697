#!/usr/bin/env bash
# YCSB against a running cluster: PORT RECORDS OPERATIONS THREADS. Loads, runs workloads A to F, and
# fails if any operation failed.
set -euo pipefail
cd "$(dirname "$0")"
port="${1:-4306}" records="${2:-100000}" operations="${3:-50000}" threads="${4:-4}"
[ -d target/lib ] && [ -d target/classes ] || mvn -q -B package >&2
url="jdbc:mysql://127.0.0.1:$port/ycsb?user=root&useSSL=false&allowPublicKeyRetrieval=true&useServerPrepStmts=true&cachePrepStmts=true"
fields=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf ', field%d VARCHAR(100)' "$i"; done)
mariadb -h 127.0.0.1 -P "$port" -u root -e "DROP DATABASE IF EXISTS ycsb; CREATE DATABASE ycsb;
  CREATE TABLE ycsb.usertable (ycsb_key VARCHAR(255) PRIMARY KEY$fields)"
run() { # name, phase, count of operations, settings
  local name="$1" phase="$2" count="$3" log
  shift 3
  log=$(mktemp)
  timeout 300 java -cp "target/classes:target/lib/*" site.ycsb.Client "$phase" -db latsdb.JdbcClient -s \
    -threads "$threads" -p db.url="$url" -p workload=site.ycsb.workloads.CoreWorkload \
    -p recordcount="$records" -p operationcount="$count" -p fieldcount=10 -p fieldlength=100 \
    -p readallfields=true "$@" >"$log" 2>"$log.err" || { tail -n 5 "$log.err"; return 1; }
  if grep -E "Return=(ERROR|NOT_FOUND|UNEXPECTED_STATE)|FAILED" "$log"; then
    echo "ycsb: $name: operations failed"; grep "YCSB:" "$log.err" | sort | uniq -c | head -n 5
    return 1
  fi
  awk -F', ' -v n="$name" '/\[OVERALL\], Throughput/ { printf "ycsb: %-10s %10.0f operations/s\n", n, $3 }' "$log"
  rm -f "$log" "$log.err"
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
  count=$(mariadb -h 127.0.0.1 -P "$port" -u root -N -e "SELECT COUNT(*) FROM ycsb.usertable")
  records="$count"
  run E -t "$((operations / 5))" $(mix 0 0 0.95 0.05 0 zipfian) -p maxscanlength=100
}
mariadb -h 127.0.0.1 -P "$port" -u root -e "DROP DATABASE ycsb"
