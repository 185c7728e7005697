#!/usr/bin/env bash
# Builds LatsDB and starts a two-replica cluster on this machine. Arguments go to `latsdb start`.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/setup.sh
printf '\n== building LatsDB (some minutes the first time)\n'
cargo build --release --locked -p latsdb
exec "${CARGO_TARGET_DIR:-target}/release/latsdb" start "$@"
