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
  need pip3 python3-pip
  need valgrind valgrind
  need ip iproute2
  need nft nftables
  need mvn maven
  need javac default-jdk-headless
fi
# Packages for Python go into a directory of their own; tests/object_store.py knows which.
install_python_packages() {
  local list="$(dirname "$0")/../tests/requirements.txt" to
  to="${XDG_CACHE_HOME:-$HOME/.cache}/latsdb-tests/python-$(sha256sum "$list" | cut -c1-12)"
  [ ! -e "$to/done" ] || return 0
  say "installing the packages of tests/requirements.txt into $to"
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --no-warn-conflicts --target "$to" -r "$list"
  touch "$to/done"
}
if [ ${#missing[@]} -eq 0 ]; then
  [ "${1:-}" != "--tests" ] || install_python_packages
  say "nothing more to install: all tools are there"
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
[ "${1:-}" != "--tests" ] || install_python_packages
say "installed"
