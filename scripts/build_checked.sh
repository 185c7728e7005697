#!/usr/bin/env bash
# Builds what the checks run: the programs, and the unit tests. The argument is the profile.
set -euo pipefail
cd "$(dirname "$0")/.."
# Costs are counted in programs of the profile `release`.
cargo build --workspace --exclude lats-cost --bins --examples --locked --profile "$1"
cargo test --workspace --no-run --locked --profile "$1"
