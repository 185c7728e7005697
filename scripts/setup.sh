#!/usr/bin/env bash
# Installs what building LatsDB needs and this machine lacks. With --tests: what its tests need, too.
# Does nothing when everything is there.
set -euo pipefail
say() { printf '\n== %s\n' "$*"; }

command -v cargo >/dev/null 2>&1 || {
  echo "setup: Rust is needed (https://rustup.rs); rust-toolchain.toml says which version." >&2
  exit 1
}

missing=()
# Servers live in sbin, which is not on everybody's path.
need() { PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }
need protoc protobuf-compiler
need cc build-essential
need pkg-config pkg-config
if [ "${1:-}" = "--tests" ]; then
  need mariadb mariadb-client
  need mariadbd mariadb-server
  need redis-server redis-server
  need redis-cli redis-tools
  need sysbench sysbench
  need python3 python3
  need valgrind valgrind
  need ip iproute2
  need nft nftables
  need mvn maven
  need javac default-jdk-headless
fi
if [ ${#missing[@]} -eq 0 ]; then
  say "nothing to install: all tools are there"
  exit 0
fi
command -v apt-get >/dev/null 2>&1 || {
  echo "setup: no apt-get here; install what Debian calls: ${missing[*]}" >&2
  exit 1
}

say "installing: ${missing[*]}"
# The database servers are for the tests only, so no service may start by itself. This file is how
# Debian is told; one that is there already is somebody's choice and stays.
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
fi
quiet=(env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -qq)
"${as_root[@]}" "${quiet[@]}" update
"${as_root[@]}" "${quiet[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null
say "installed"
