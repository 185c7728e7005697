#!/usr/bin/env bash
# Builds what the checks run: the programs, and the unit tests. The argument is the profile.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --workspace --bins --examples --locked --profile "$1"
cargo test --workspace --no-run --locked --profile "$1"
