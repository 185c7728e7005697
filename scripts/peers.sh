# Sourced by scripts that measure LatsDB beside its peers: a directory for all of them, and their end.
latsdb="$(realpath "${LATSDB:-target/release/latsdb}")"
work="$(mktemp -d)"
pids=()
end() {
  for cluster in "$work"/lats*; do "$latsdb" stop --data-dir "$cluster" >/dev/null 2>&1 || true; done
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap end EXIT
mysql_at() { mariadb -h 127.0.0.1 -P "$1" -u root -N -e "$2"; }
start_mariadb() { # port, options
  local place="$work/maria-$1"
  mkdir "$place"
  mariadb-install-db --no-defaults --auth-root-authentication-method=normal --user="$(id -un)" \
    --datadir="$place/data" >/dev/null 2>&1
  mariadbd --no-defaults --user="$(id -un)" --datadir="$place/data" --port="$1" --bind-address=127.0.0.1 \
    --socket="$place/sock" --pid-file="$place/pid" --innodb-buffer-pool-size=1G "${@:2}" >"$place/log" 2>&1 &
  pids+=($!)
  for _ in $(seq 100); do mysql_at "$1" "SELECT 1" >/dev/null 2>&1 && break; sleep 0.1; done
}
start_mariadb_pair() { # ports of a source and of its replica, options of both: a commit waits until both have it on disk
  start_mariadb "$1" --server-id=1 --log-bin --sync-binlog=1 --rpl-semi-sync-master-enabled=1 \
    --rpl-semi-sync-master-wait-point=AFTER_SYNC --rpl-semi-sync-master-timeout=60000 "${@:3}"
  start_mariadb "$2" --server-id=2 --sync-relay-log=1 --rpl-semi-sync-slave-enabled=1 --slave-parallel-threads=4 "${@:3}"
  mysql_at "$2" "CHANGE MASTER TO master_host='127.0.0.1', master_port=$1, master_user='root', master_use_gtid=slave_pos; START SLAVE"
  for _ in $(seq 100); do mariadb_waits "$1" && return; sleep 0.1; done
  echo "the replica at port $2 does not follow" >&2
  return 1
}
mariadb_waits() { # port of a source: true if its commits wait for a replica
  [ "$(mysql_at "$1" "SHOW STATUS LIKE 'Rpl_semi_sync_master_status'" | cut -f2)" = ON ] &&
    [ "$(mysql_at "$1" "SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'" | cut -f2)" = 1 ]
}
catch_up() { # ports of a source and of its replica: what was written is applied there, too
  local at; at="$(mysql_at "$1" "SELECT @@gtid_binlog_pos")"
  [ "$(mysql_at "$2" "SELECT MASTER_GTID_WAIT('$at', 60)")" = 0 ] || { echo "the replica at port $2 is behind" >&2; return 1; }
}
bench() { # port, test, rows, threads, seconds, more
  sysbench "$2" --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port="$1" --mysql-user=root --mysql-db=bench --tables=1 \
    --table-size="$3" --threads="$4" --time="$5" "${@:6}"
}
