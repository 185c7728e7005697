#!/usr/bin/env bash
# The `mariadb` text client against a running cluster: statements in tests/mariadb/*.sql, what they must
# answer in *.expected.
#   tests/mariadb.sh [PORT]              LatsDB on this port (default 4306)
#   tests/mariadb.sh --against-mariadb   the same files against a MariaDB server that is started for it
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
for tool in mariadb python3 stdbuf; do
  command -v "$tool" >/dev/null || { echo "mariadb: $tool is not installed (scripts/setup.sh --tests)" >&2; exit 1; }
done
if [ "${1:-}" != --against-mariadb ]; then
  exec python3 "$here/mariadb/check.py" "${1:-4306}" "${@:2}"
fi
shift
exec bash "$here/with_mariadb.sh" python3 "$here/mariadb/check.py" "{port}" --reference "$@"
