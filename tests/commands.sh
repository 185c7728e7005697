#!/usr/bin/env bash
# The command line as scripts use it: a configuration file, a cluster named by an address, and a node that
# is replaced by one with other addresses. LATSDB names the binary; the argument is the first SQL port.
set -euo pipefail
latsdb="${LATSDB:-target/release/latsdb}"
port="${1:-26306}"
native=$((port + 100))
directory="$(mktemp -d)"
joined=""
stop() {
  [ -z "$joined" ] || kill "$joined" 2>/dev/null || true
  "$latsdb" stop --data-dir "$directory/cluster" >/dev/null 2>&1 || true
  "$latsdb" stop --data-dir "$directory/cluster2" >/dev/null 2>&1 || true
  rm -rf "$directory"
}
trap stop EXIT
fail() { echo "commands: $*" >&2; exit 1; }
# Runs a command that must fail with this text in its one line.
refused() {
  local text="$1" said
  shift
  if said="$(timeout 20 "$@" 2>&1)"; then fail "succeeded: $*"; fi
  case "$said" in *"$text"*) ;; *) fail "'$*' said '$said', not '$text'" ;; esac
}
state() { "$latsdb" status --json --address "127.0.0.1:$native" | python3 -c "
import json, sys
print(next(n['$2'] for n in json.load(sys.stdin)['nodes'] if n['node_id'] == $1))"; }

printf 'sql_port = %d\nno_restart = true\ndata_dir = "%s"\n' "$port" "$directory/cluster" >"$directory/good.toml"
echo 'sql_prot = 1' >"$directory/bad.toml"
refused "is no configuration" "$latsdb" start --config "$directory/bad.toml"
refused "cannot read the configuration" "$latsdb" start --config "$directory/none.toml"
"$latsdb" start --config "$directory/good.toml" --detach
"$latsdb" sql --address "127.0.0.1:$native" -e \
  "CREATE TABLE test.kept (id INT PRIMARY KEY); INSERT INTO test.kept VALUES (1), (2), (3)" >/dev/null

# A small run of the benchmark: all that it was asked for is done, and the table is gone afterwards.
bench=("$latsdb" bench flex --address "127.0.0.1:$native")
"${bench[@]}" --rows 5000 --transactions 8 --client-threads 2 --seconds 1 --json - | python3 -c "
import json, sys
said = json.load(sys.stdin)
for stage in ('insert', 'read', 'update', 'delete'):
    one = said[stage]
    assert one['errors'] == 0 and one['ops_per_second'] > 0, said
    assert 0 < one['p50_us'] <= one['p99_us'] <= one['max_us'] * 1.01, said
assert said['config']['rows'] == 5000, said" || fail "bench flex"
refused "rows of its own" "${bench[@]}" --rows 5
refused "bench.flex" "$latsdb" sql --address "127.0.0.1:$native" -e "SELECT COUNT(*) FROM bench.flex"

# The same for keys through SQL, with the cluster as its own peer.
keys=("$latsdb" bench keys --address "127.0.0.1:$native" --peer)
for how in "" --text; do
  # shellcheck disable=SC2086 # no option at all, or one
  "${keys[@]}" "mysql://root@127.0.0.1:$port" $how --rows 2000 --keys 50 --connections 5 --client-threads 2 --seconds 1 --json - | python3 -c "
import json, sys
said = json.load(sys.stdin)
for one in (said['latsdb'], said['peer']):
    assert one['errors'] == 0 and one['ops_per_second'] > 0, said
    assert 0 < one['p50_us'] <= one['p99_us'] <= one['max_us'] * 1.01, said
assert 0.1 < said['ratio'] < 10, said" || fail "bench keys"
done
refused "is no URL" "${keys[@]}" "mariadb.example"
refused "cannot connect" "${keys[@]}" "mysql://root@127.0.0.1:9"
refused "bench.lookup" "$latsdb" sql --address "127.0.0.1:$native" -e "SELECT COUNT(*) FROM bench.lookup"

# Workloads of YCSB, natively and through SQL.
ycsb=("$latsdb" bench ycsb --address "127.0.0.1:$native" --records 1000 --client-threads 2 --seconds 1)
for how in "" --sql; do
  # shellcheck disable=SC2086 # no option at all, or one
  "${ycsb[@]}" $how --connections 4 --json - | python3 -c "
import json, sys
said = json.load(sys.stdin)['latsdb']
kinds = {'load': ['insert'], 'A': ['read', 'update'], 'B': ['read', 'update'], 'C': ['read'], 'D': ['insert', 'read'],
         'E': ['insert', 'scan'], 'F': ['read', 'read+update']}
assert sorted(said) == sorted(kinds), said
for workload, wanted in kinds.items():
    done = {kind: one for kind, one in said[workload].items() if kind != 'ops_per_second'}
    assert sorted(done) == wanted, said
    for one in done.values():
        assert one['errors'] == 0 and one['ops_per_second'] > 0 and 0 < one['p50_us'] <= one['p99_us'], said" ||
    fail "bench ycsb $how"
done
refused "not be more than" "${ycsb[@]}" --connections 1
refused "required arguments" "${ycsb[@]}" --peer "mysql://root@127.0.0.1:$port"
refused "bench.usertable" "$latsdb" sql --address "127.0.0.1:$native" -e "SELECT COUNT(*) FROM bench.usertable"

dead=("$latsdb" declare-dead --address "127.0.0.1:$native")
refused "no node 9" "${dead[@]}" 9
refused "it lives" "${dead[@]}" 2

join=("$latsdb" node --join "127.0.0.1:$native" --data-dir "$directory/joined")
refused "no such node of the cluster is down" "${join[@]}"
at_node() { timeout 5 mariadb --no-defaults -h 127.0.0.1 -P "$1" -u root -N -e "$2" 2>/dev/null; }
keeps="$(at_node "$port" "SET PERSIST durability = 'disk'; SELECT @@global.durability")" || fail "SET PERSIST durability"
[ "$keeps" = disk ] || fail "commits wait for '$keeps'"
kill -9 "$(state 2 pid)"
for _ in $(seq 100); do [ "$(state 2 state)" = down ] && break; sleep 0.05; done
[ "$(state 2 state)" = down ] || fail "node 2 was killed and is not seen as down"
refused "is down already" "${dead[@]}" 2
refused "is alive" "${join[@]}" --node-id 1
refused "no node 9" "${join[@]}" --node-id 9
refused "no such node" "${join[@]}" --roles witness
refused "cannot be told to others" "${join[@]}" --listen "0.0.0.0:$((port + 200))"
refused "no HOST:PORT" "${join[@]}" --listen nonsense
"${join[@]}" --listen "127.0.0.2:$((port + 200))" --sql-listen "127.0.0.1:$((port + 201))" 2>"$directory/joined.log" &
joined=$!
for _ in $(seq 200); do [ "$(state 2 state)" = serving ] && break; sleep 0.05; done
[ "$(state 2 state)" = serving ] || { cat "$directory/joined.log"; fail "the new node 2 is not in sync"; }
[ "$(state 2 native_address)" = "127.0.0.2:$((port + 200))" ] || fail "node 2 is not where it was told to be"
rows=""
for _ in $(seq 100); do
  rows="$(at_node $((port + 201)) 'SELECT COUNT(*) FROM test.kept')" && break
  sleep 0.05
done
[ "$rows" = 3 ] || fail "the new node 2 answers '$rows' instead of 3 rows"
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
for _ in $(seq 200); do [ -f "$directory/cluster2/ended.txt" ] && break; sleep 0.05; done
refused "they are gone" "$latsdb" status --data-dir "$directory/cluster2"
grep -q "they are gone" "$directory/cluster2.log" || fail "the log does not say that the rows are gone"
echo "commands: all as expected"
