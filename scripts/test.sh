#!/usr/bin/env bash
# Installs what the tests need and runs them all: lints, unit tests, the simulator's slice, and real
# clients against a real cluster. Prints what it does; ends at the first failure. The last line says
# how many tests passed and failed.
set -euo pipefail
cd "$(dirname "$0")/.."
target="${CARGO_TARGET_DIR:-target}"
begun=$SECONDS
passed=0
output="$(mktemp)"
trap 'rm -f "$output"' EXIT

# What a step's output says: the results of cargo's test programs, else its last line `N passed, N
# failed`. Prints "PASSED FAILED"; nothing if the step counted nothing.
counted() {
  awk '/^test result: / { ok += $4; bad += $6; cargo = 1 }
    /^[0-9]+ passed, [0-9]+ failed$/ { last_ok = $1; last_bad = $3; script = 1 }
    END { if (cargo) print ok, bad; else if (script) print last_ok, last_bad }' "$output"
}

# Runs a command under a name. One that counts no tests is one test itself.
step() {
  local name="$1" since=$SECONDS count ok bad good=yes
  shift
  printf '\n== %s: %s\n' "$name" "$*"
  "$@" 2>&1 | tee "$output" || good=no
  count="$(counted)"
  if [ $good = no ]; then
    read -r ok bad <<<"${count:-0 1}"
    printf '\n== FAILED: %s, after %d s\n' "$name" $((SECONDS - since))
    printf '%d passed, %d failed\n' $((passed + ok)) $((bad > 0 ? bad : 1))
    exit 1
  fi
  read -r ok bad <<<"${count:-1 0}"
  passed=$((passed + ok))
  printf '== %s: done in %d s\n' "$name" $((SECONDS - since))
}

# Runs a command that prepares the next steps and tests nothing.
prepare() {
  local before=$passed
  step "$@"
  passed=$before
}

prepare "what the tests need" bash scripts/setup.sh --tests
step "format" cargo fmt --all --check
step "lints" cargo clippy --workspace --all-targets --locked -- -D warnings
step "unit tests" cargo test --workspace --exclude lats-sim --locked
step "ring and gate, in every interleaving" cargo test -p lats-runtime --features loom --locked -- ring gate
step "shared data managers, in every interleaving" cargo test -p lats-node --features loom --locked
prepare "simulator: build" cargo build --profile sim --locked -p lats-sim
# Without optimisation these would take eight times as long.
step "simulator: seeds that once failed" cargo test --profile sim --locked -p lats-sim
step "simulator: fixed seeds, each twice" "$target/sim/sim" --seed 1 --seeds 200 --twice
step "simulator: more fixed seeds" "$target/sim/sim" --seed 201 --seeds 600
step "simulator: fresh seeds" "$target/sim/sim" --seeds 600
step "simulator: fresh storms" "$target/sim/sim" --seeds 20 --storm
step "simulator: a node group is lost or falls silent, fresh seeds" "$target/sim/sim" --seeds 200 --outage
step "simulator: all nodes of two node groups die, fresh seeds" "$target/sim/sim" --seeds 200 --blackout
for bug in forget-tentative-row read-stale-backup answer-early abort-decided carry-in-parts \
  epoch-done-early forget-older-version keep-refused-statement share-without-lock blind-to-deadlocks \
  hasty-victim forget-index-change forget-open-change; do
  step "simulator: the planted bug $bug is found" bash scripts/planted.sh "$target/sim/sim" "$bug"
done
for bug in drop-carried-decision commit-partly-held forget-ended \
  epoch-uncounted show-index-early build-without-pending forget-begun-scan seal-early forget-sync trim-early forget-restarts \
  restart-without-all restart-beyond-state forget-gone-rows end-before-taken trust-damaged-log confirm-void report-without-state tell-before-joining; do
  step "simulator: the planted bug $bug is found" bash scripts/planted.sh "$target/sim/sim" "$bug" 800
done
# Every two-hundredth seed finds it on average, but none of the first 800.
step "simulator: the planted bug lose-passed-part is found" \
  bash scripts/planted.sh "$target/sim/sim" lose-passed-part 1600
# This takes a disk that is full for long while much is changed.
step "simulator: the planted bug ignore-backlog is found" \
  bash scripts/planted.sh "$target/sim/sim" ignore-backlog 261+2500
# This takes a restart that makes void a deletion that a node being filled has heard of by its absence only.
step "simulator: the planted bug gone-too-early is found" \
  bash scripts/planted.sh "$target/sim/sim" gone-too-early 331+1600 --blackout
# This takes a coordinator that dies between two completions of one transaction of a rare kind.
step "simulator: the planted bug carry-past-others is found" \
  bash scripts/planted.sh "$target/sim/sim" carry-past-others 481+2500
# This takes a transaction that holds a row in the few milliseconds in which its primary moves.
step "simulator: the planted bug hand-over-early is found" \
  bash scripts/planted.sh "$target/sim/sim" hand-over-early 1500
# And these a node that is cut off together with a client that reads there: storms have more of that.
step "simulator: the planted bug ignore-lease is found" \
  bash scripts/planted.sh "$target/sim/sim" ignore-lease 100 --storm
step "simulator: the planted bug forget-earlier-leases is found" \
  bash scripts/planted.sh "$target/sim/sim" forget-earlier-leases 600 --storm
step "simulator: the planted bug keep-alone is found" \
  bash scripts/planted.sh "$target/sim/sim" keep-alone 400 --blackout
for bug in commit-without-lost wait-for-the-silent forget-the-silent; do
  step "simulator: the planted bug $bug is found" bash scripts/planted.sh "$target/sim/sim" "$bug" 200 --outage
done
step "costs: nothing is dearer than it was when recorded" cargo xtask cost --check
prepare "build the server" cargo build --locked -p latsdb -p lats-history
if [ -f tests/run.sh ]; then
  step "real clients" env LATSDB="$target/debug/latsdb" bash tests/run.sh
fi
printf '\n== all steps done in %d s\n%d passed, 0 failed\n' $((SECONDS - begun)) "$passed"
