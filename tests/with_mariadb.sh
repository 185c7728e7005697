#!/usr/bin/env bash
# Starts a MariaDB server of our own with an empty data directory, runs a command against it, and stops it.
#   tests/with_mariadb.sh COMMAND...   `{port}` in the command is the server's port
set -euo pipefail
command -v mariadbd >/dev/null || { echo "mariadb: mariadbd is not installed (package mariadb-server)" >&2; exit 1; }
directory="$(mktemp -d)"
server=""
stop() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$directory"
}
trap stop EXIT
port="$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
user="$(id -un)"
echo "mariadb: a MariaDB server of our own starts on port $port"
mariadb-install-db --no-defaults --auth-root-authentication-method=normal --skip-test-db \
  --datadir="$directory/data" --user="$user" >"$directory/install.log" 2>&1 ||
  { echo "mariadb: no data directory for MariaDB:" >&2; tail -n 5 "$directory/install.log" >&2; exit 1; }
# As close to MySQL 8's settings as it goes.
mariadbd --no-defaults --user="$user" --datadir="$directory/data" --socket="$directory/socket" --port="$port" \
  --bind-address=127.0.0.1 --pid-file="$directory/pid" --innodb-flush-log-at-trx-commit=0 \
  --character-set-server=utf8mb4 --collation-server=utf8mb4_uca1400_nopad_ai_ci \
  --sql-mode=ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,TIME_ROUND_FRACTIONAL \
  --transaction-isolation=READ-COMMITTED --default-time-zone=+00:00 >"$directory/log" 2>&1 &
server=$!
for _ in $(seq 100); do
  if mariadb --no-defaults -h 127.0.0.1 -P "$port" -u root -e "SELECT 1" >/dev/null 2>&1; then
    "${@//\{port\}/$port}"
    exit
  fi
  kill -0 "$server" 2>/dev/null || break
  sleep 0.1
done
echo "mariadb: the MariaDB server does not answer:" >&2
tail -n 5 "$directory/log" >&2
exit 1
