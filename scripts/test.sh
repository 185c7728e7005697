#!/usr/bin/env bash
# Installs what the tests need and runs them all: lints, unit tests, the simulator's slice, and real
# clients against a real cluster. Prints what it does; ends at the first failure.
set -euo pipefail
cd "$(dirname "$0")/.."
target="${CARGO_TARGET_DIR:-target}"
begun=$SECONDS
passed=0
step() {
  local name="$1" since=$SECONDS
  shift
  printf '\n== %s\n' "$name"
  if ! "$@"; then
    printf '\n== FAILED: %s\n%d passed, 1 failed\n' "$name" "$passed"
    exit 1
  fi
  passed=$((passed + 1))
  printf '== %s: done in %d s\n' "$name" $((SECONDS - since))
}

step "what the tests need" bash scripts/setup.sh --tests
step "format" cargo fmt --all --check
step "lints" cargo clippy --workspace --all-targets --locked -- -D warnings
step "unit tests" cargo test --workspace --locked
step "simulator: build" cargo build --profile sim --locked -p lats-sim
step "simulator: fixed seeds, each twice" "$target/sim/sim" --seed 1 --seeds 800 --twice
step "simulator: fresh seeds" "$target/sim/sim" --seeds 400
for bug in forget-tentative-row read-stale-backup answer-early abort-decided; do
  step "simulator: the planted bug $bug is found" bash scripts/planted.sh "$target/sim/sim" "$bug"
done
step "build the server" cargo build --locked -p latsdb
if [ -f tests/run.sh ]; then
  step "real clients" env LATSDB="$target/debug/latsdb" bash tests/run.sh
fi
printf '\n== all steps done in %d s\n%d passed, 0 failed\n' $((SECONDS - begun)) "$passed"
