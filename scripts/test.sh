#!/usr/bin/env bash
# Installs what the tests need and runs them all: lints, unit tests, the simulator's slice, and real clients against real clusters.
# Prints a table of seconds, slowest first; the last line says how many tests passed and failed. Ends at the first failure.
#   --only TEXT    only steps with this in their names (and the build)
#   --list         the steps, and how each is run
#   --record       appends the seconds to docs/ci-times.csv
#   --long [--minutes N]   the soak instead: what takes hours (docs/soak.md has the sums)
set -euo pipefail
cd "$(dirname "$0")/.."
begun=$SECONDS
bash scripts/setup.sh --tests
# What is built once is built sooner without them.
[ "${CI:-}" != true ] || export CARGO_INCREMENTAL=0 CARGO_PROFILE_CHECKED_DEBUG=none
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-never}"
if [ "${1:-}" = "--long" ]; then
  shift
  exec cargo run --quiet --locked --profile checked -p xtask -- soak "$@"
fi
printf '\n== building the program that runs the checks\n'
cargo build --quiet --locked --profile checked -p xtask
exec "${CARGO_TARGET_DIR:-target}/checked/xtask" ci --prepared-s $((SECONDS - begun)) "$@"
