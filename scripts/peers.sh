# Sourced by scripts that measure LatsDB beside its peers: a directory for all of them, and their end.
latsdb="$(realpath "${LATSDB:-target/release/latsdb}")"
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
start_mariadb() { # port, options
  mkdir "$work/maria"
  mariadb-install-db --no-defaults --auth-root-authentication-method=normal --user="$(id -un)" \
    --datadir="$work/maria/data" >/dev/null 2>&1
  mariadbd --no-defaults --user="$(id -un)" --datadir="$work/maria/data" --port="$1" --bind-address=127.0.0.1 \
    --socket="$work/maria/sock" --pid-file="$work/maria/pid" --innodb-buffer-pool-size=1G "${@:2}" >"$work/maria/log" 2>&1 &
  pids+=($!)
  for _ in $(seq 100); do mysql_at "$1" "SELECT 1" >/dev/null 2>&1 && break; sleep 0.1; done
}
bench() { # port, test, rows, threads, seconds, more
  sysbench "$2" --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port="$1" --mysql-user=root --mysql-db=bench --tables=1 \
    --table-size="$3" --threads="$4" --time="$5" "${@:6}"
}
