#!/usr/bin/env bash
# Installs what building LatsDB needs and this machine lacks. With --tests: what its tests need, too.
set -euo pipefail
say() { printf '\n== %s\n' "$*"; }

missing=()
need() { command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }
need protoc protobuf-compiler
need cc build-essential
if [ "${1:-}" = "--tests" ]; then
  need mariadb mariadb-client
  need sysbench sysbench
  need python3 python3
  need mvn maven
  need java default-jdk-headless
fi
if [ ${#missing[@]} -gt 0 ]; then
  say "installing: ${missing[*]}"
  # Services that come with a package must not start by themselves.
  export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
  sudo=""; [ "$(id -u)" = 0 ] || sudo=sudo
  $sudo apt-get update -qq
  $sudo apt-get install -y -qq "${missing[@]}" >/dev/null
fi
command -v cargo >/dev/null 2>&1 || {
  echo "Rust is needed (https://rustup.rs); rust-toolchain.toml says which version." >&2
  exit 1
}
