#!/usr/bin/env bash
# The command line as scripts use it: a configuration file, a cluster named by an address, and a node that
# is replaced by one with other addresses. LATSDB names the binary; the argument is the first SQL port.
# A node that gets no processor time for a lease is removed, and this cluster starts no node again: if something
# fails then, all is done once more.
set -euo pipefail
disturbed=75 attempts=5 patience_s=120
if [ -z "${COMMANDS_ATTEMPT:-}" ]; then
  for attempt in $(seq "$attempts"); do
    status=0
    COMMANDS_ATTEMPT="$attempt" bash "$0" "$@" || status=$?
    [ "$status" = "$disturbed" ] || exit "$status"
    echo "commands: once more ($attempt of $((attempts - 1))): a node was removed"
  done
  exit 1
fi
latsdb="${LATSDB:-target/release/latsdb}"
port="${1:-26306}"
native=$((port + 100))
directory="$(mktemp -d)"
joined=""
stop() {
  local status=$?
  if [ -n "$joined" ]; then
    kill "$joined" 2>/dev/null || true
    wait "$joined" 2>/dev/null || true
  fi
  "$latsdb" stop --data-dir "$directory/cluster" >/dev/null 2>&1 || true
  "$latsdb" stop --data-dir "$directory/cluster2" >/dev/null 2>&1 || true
  if [ "$status" = 1 ] && grep -q "the cluster has removed this node" "$directory"/*.log 2>/dev/null; then
    status="$disturbed"
  elif [ "$status" != 0 ]; then
    tail -n 20 "$directory"/*.log >&2 || true
  fi
  rm -rf "$directory"
  exit "$status"
}
trap stop EXIT
fail() { echo "commands: $*" >&2; exit 1; }
# What nothing excuses.
wrong() { echo "commands: $*" >&2; exit 2; }
# Waits until a command succeeds.
wait_for() {
  local end=$((SECONDS + patience_s)) what="$1"
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || fail "waited $patience_s s, and not yet: $what; $("$latsdb" status --address "127.0.0.1:$native" 2>&1)"
    sleep 0.05
  done
}
# Runs a command that must fail with this text in its one line.
refused() {
  local text="$1" said
  shift
  if said="$(timeout "$patience_s" "$@" 2>&1)"; then fail "succeeded: $*"; fi
  case "$said" in *"$text"*) ;; *) fail "'$*' said '$said', not '$text'" ;; esac
}
state() { "$latsdb" status --json --address "127.0.0.1:$native" | python3 -c "
import json, sys
print(next(n['$2'] for n in json.load(sys.stdin)['nodes'] if n['node_id'] == $1))"; }
is() { [ "$(state "$1" "$2")" = "$3" ]; }
# A measurement, and what Python must find of what it says: with more time if nothing was done in the first second.
measured() {
  local check="$1" said seconds status
  shift
  for seconds in 1 10 60; do
    said="$("$@" --seconds "$seconds" --json -)" || return 1
    status=0
    python3 -c "import json, sys
said = json.loads(sys.argv[1])
def checked(one):
    assert one['errors'] == 0, said
    if one['ops_per_second'] == 0: sys.exit(3)
    assert 0 < one['p50_us'] <= one['p99_us'] <= one['max_us'] * 1.01, said
$check" "$said" || status=$?
    [ "$status" = 3 ] || return "$status"
  done
  return 1
}

printf 'sql_port = %d\nno_restart = true\ndata_dir = "%s"\n' "$port" "$directory/cluster" >"$directory/good.toml"
echo 'sql_prot = 1' >"$directory/bad.toml"
refused "is no configuration" "$latsdb" start --config "$directory/bad.toml"
refused "cannot read the configuration" "$latsdb" start --config "$directory/none.toml"
"$latsdb" start --config "$directory/good.toml" --detach
"$latsdb" sql --address "127.0.0.1:$native" -e \
  "CREATE TABLE test.kept (id INT PRIMARY KEY); INSERT INTO test.kept VALUES (1), (2), (3)" >/dev/null

# A small run of the benchmark: all that it was asked for is done, and the table is gone afterwards.
bench=("$latsdb" bench flex --address "127.0.0.1:$native")
measured "
for stage in ('insert', 'read', 'update', 'delete'): checked(said[stage])
assert said['config']['rows'] == 5000, said" "${bench[@]}" --rows 5000 --transactions 8 --client-threads 2 || fail "bench flex"
refused "rows of its own" "${bench[@]}" --rows 5
refused "bench.flex" "$latsdb" sql --address "127.0.0.1:$native" -e "SELECT COUNT(*) FROM bench.flex"

# The same for keys through SQL, with the cluster as its own peer.
keys=("$latsdb" bench keys --address "127.0.0.1:$native" --peer)
for how in "" --text; do
  # shellcheck disable=SC2086 # no option at all, or one
  measured "
for one in (said['latsdb'], said['peer']): checked(one)
assert said['ratio'] > 0, said
print('commands: bench keys is', said['ratio'], 'times as fast as its peer, itself')" \
    "${keys[@]}" "mysql://root@127.0.0.1:$port" $how --rows 2000 --keys 50 --connections 5 --client-threads 2 || fail "bench keys"
done
refused "is no URL" "${keys[@]}" "mariadb.example"
refused "cannot connect" "${keys[@]}" "mysql://root@127.0.0.1:$((port + 298))"
refused "bench.lookup" "$latsdb" sql --address "127.0.0.1:$native" -e "SELECT COUNT(*) FROM bench.lookup"

# Workloads of YCSB, natively and through SQL.
ycsb=("$latsdb" bench ycsb --address "127.0.0.1:$native" --records 1000 --client-threads 2)
for how in "" --sql; do
  # shellcheck disable=SC2086 # no option at all, or one
  measured "
said = said['latsdb']
kinds = {'load': ['insert'], 'A': ['read', 'update'], 'B': ['read', 'update'], 'C': ['read'], 'D': ['insert', 'read'],
         'E': ['insert', 'scan'], 'F': ['read', 'read+update']}
assert sorted(said) == sorted(kinds), said
for workload, wanted in kinds.items():
    done = {kind: one for kind, one in said[workload].items() if kind != 'ops_per_second'}
    if set(done) < set(wanted): sys.exit(3)
    assert sorted(done) == wanted, said
    for one in done.values(): checked(one)" "${ycsb[@]}" $how --connections 4 || fail "bench ycsb $how"
done
refused "not be more than" "${ycsb[@]}" --connections 1
refused "required arguments" "${ycsb[@]}" --peer "mysql://root@127.0.0.1:$port"
refused "bench.usertable" "$latsdb" sql --address "127.0.0.1:$native" -e "SELECT COUNT(*) FROM bench.usertable"

dead=("$latsdb" declare-dead --address "127.0.0.1:$native")
refused "no node 9" "${dead[@]}" 9
refused "it lives" "${dead[@]}" 2

join=("$latsdb" node --join "127.0.0.1:$native" --data-dir "$directory/joined")
refused "no such node of the cluster is down" "${join[@]}"
at_node() { timeout 60 mariadb --no-defaults -h 127.0.0.1 -P "$1" -u root -N -e "$2" 2>/dev/null; }
keeps="$(at_node "$port" "SET PERSIST durability = 'disk'; SELECT @@global.durability")" || fail "SET PERSIST durability"
[ "$keeps" = disk ] || fail "commits wait for '$keeps'"
kill -9 "$(state 2 pid)"
wait_for "node 2, which was killed, is seen as down" is 2 state down
refused "is down already" "${dead[@]}" 2
refused "is alive" "${join[@]}" --node-id 1
refused "no node 9" "${join[@]}" --node-id 9
refused "no such node" "${join[@]}" --roles witness
refused "cannot be told to others" "${join[@]}" --listen "0.0.0.0:$((port + 200))"
refused "no HOST:PORT" "${join[@]}" --listen nonsense
"${join[@]}" --listen "127.0.0.2:$((port + 200))" --sql-listen "127.0.0.1:$((port + 201))" 2>"$directory/joined.log" &
joined=$!
wait_for "the new node 2 is in sync" is 2 state serving
[ "$(state 2 native_address)" = "127.0.0.2:$((port + 200))" ] || fail "node 2 is not where it was told to be"
rows=""
counts() { rows="$(at_node $((port + 201)) 'SELECT COUNT(*) FROM test.kept')"; }
wait_for "the new node 2 answers" counts
[ "$rows" = 3 ] || wrong "the new node 2 answers '$rows' instead of 3 rows"
[ "$(at_node $((port + 201)) 'SELECT @@durability')" = disk ] || fail "the new node 2 does not know what commits wait for"
refused "no node of the cluster answers" "$latsdb" stop --address "127.0.0.1:$((port + 299))"
"$latsdb" stop --address "127.0.0.1:$native"
refused "no node of the cluster answers" "$latsdb" status --address "127.0.0.1:$native"

# The last replica is killed: the cluster says so, at once and later.
kill "$joined" 2>/dev/null || true
"$latsdb" start --sql-port "$port" --data-dir "$directory/cluster2" --ephemeral --detach
"$latsdb" status --data-dir "$directory/cluster2" | head -n 1 >/dev/null
pid() { "$latsdb" status --json --data-dir "$directory/cluster2" | python3 -c "
import json, sys
print(next(n['pid'] for n in json.load(sys.stdin)['nodes'] if n['node_id'] == $1))"; }
one="$(pid 1)" two="$(pid 2)"
kill -9 "$one" "$two"
wait_for "the cluster says that its rows are gone" [ -f "$directory/cluster2/ended.txt" ]
refused "they are gone" "$latsdb" status --data-dir "$directory/cluster2"
grep -q "they are gone" "$directory/cluster2.log" || fail "the log does not say that the rows are gone"
echo "commands: all as expected"
