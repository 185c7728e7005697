#!/usr/bin/env bash
# Fuzzes one target, or each in turn: fuzz.sh [TARGET] [SECONDS]. Targets: packets, signals, programs, files, statements.
# Inputs that were worth keeping stay in the corpus beside the build; an input that fails is kept, and named in the output.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds="${2:-60}"
case "${1:-all}" in all) targets="packets signals programs files statements" ;; *) targets="$1" ;; esac
built="$(realpath -m "${CARGO_TARGET_DIR:-../target}")/fuzz"
# What libFuzzer needs to see which branches an input has taken.
flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
  -Cllvm-args=-sanitizer-coverage-pc-table -Ccodegen-units=1"
host="$(rustc -vV | sed -n 's/^host: //p')"
RUSTFLAGS="$(echo $flags)" cargo build --quiet --locked --release --target "$host" --target-dir "$built"
for target in $targets; do
  corpus="$built/corpus/$target" failures="$built/failures/$target"
  mkdir -p "$corpus" "$failures"
  # Statements begin with those that the tests have; the first byte is the SQL mode.
  [ "$target" != statements ] || awk -v to="$corpus" '!/^\/\// && NF { sub(/ => .*/, ""); file = to "/test-" NR; printf "@%s", $0 > file; close(file) }' \
    ../tests/statements/*.txt
  "$built/$host/release/$target" "$corpus" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=2048 -max_len=8192 \
    -artifact_prefix="$failures/" -print_final_stats=1
  echo "fuzz: $target: nothing found in $seconds s; again: bash scripts/fuzz.sh $target $seconds"
done
