#!/usr/bin/env bash
# Where the modules live changes nothing but speed: clients work, and nodes are killed, under a placement.
# PORT THREAD_CONFIG DATA_NODES; LATSDB names the binary.
set -euo pipefail
cd "$(dirname "$0")/.."
latsdb="${LATSDB:-target/release/latsdb}" port="$1" threads="$2" nodes="$3"
python3 tests/with_cluster.py --binary "$latsdb" --sql-port "$port" --start "--thread-config $threads --nodes $nodes" -- \
  bash tests/sysbench.sh "$port" 20000 1 4
python3 tests/kill.py --binary "$latsdb" --kills 5 --sql-port $((port + 50)) --thread-config "$threads"
