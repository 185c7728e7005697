#!/usr/bin/env bash
# The command line as scripts use it: a configuration file, small measurements, a cluster named by an address, and a
# node that is replaced by one with other addresses. LATSDB names the binary; the argument is the first SQL port.
# Each part has a cluster of its own. If something fails in a part, and a node was removed, for it got no processor time
# for a lease, the part is done once more.
#   tests/commands.sh [PORT [PART DIRECTORY]]
set -euo pipefail
latsdb="${LATSDB:-target/release/latsdb}"
port="${1:-26306}"
native=$((port + 100))
patience_s=120 attempts=8 wrong=2
directory="${3:-}" joined=""
# Commands that name the cluster by an address prove with it that they belong to it.
export LATSDB_SECRET_FILE="$directory/cluster/secret"

# Ends what a part has started, when it ends.
stop() {
  if [ -n "$joined" ]; then
    kill "$joined" 2>/dev/null || true
    wait "$joined" 2>/dev/null || true
  fi
  "$latsdb" stop --data-dir "$directory/cluster" >/dev/null 2>&1 || true
}
# Does a part in a shell of its own.
part() {
  local attempt status
  for attempt in $(seq "$attempts"); do
    directory="$(mktemp -d)" status=0
    bash "$0" "$port" "$1" "$directory" || status=$?
    if [ "$status" = 0 ]; then
      rm -rf "$directory"
      return
    fi
    if [ "$status" = "$wrong" ] || ! grep -q "node stops: .*a new process can join" "$directory"/*.log; then break; fi
    echo "commands: $1 once more ($attempt of $((attempts - 1))): a node was removed"
  done
  echo "commands: $1 FAILED, its files are in $directory"
  tail -n 20 "$directory"/*.log || true
  exit 1
}
fail() { echo "commands: $*" >&2; exit 1; }
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
sql=("$latsdb" sql --address "127.0.0.1:$native" -e)
state() { "$latsdb" status --json --address "127.0.0.1:$native" | python3 -c "
import json, sys
print(next(n['$2'] for n in json.load(sys.stdin)['nodes'] if n['node_id'] == $1))"; }
is() { [ "$(state "$1" "$2")" = "$3" ]; }
all_serve() { is 1 state serving && is 2 state serving && is 3 state serving; }
at_node() { timeout "$patience_s" mariadb --no-defaults -h 127.0.0.1 -P "$1" -u root -N -e "$2" 2>/dev/null; }
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
# A cluster in which nobody is removed any more because it has come late. Who is removed while it is founded is not started
# again by itself.
start() {
  local node
  "$latsdb" start --data-dir "$directory/cluster" --sql-port "$port" --ephemeral --detach --restart-delay-ms 300
  for node in $(sed -n 's/^latsdb: node \([0-9]*\) has died$/\1/p' "$directory/cluster.log"); do
    "$latsdb" start-node "$node" --data-dir "$directory/cluster"
  done
  sleep 0.5
  wait_for "all nodes serve" all_serve
}

configuration() {
  echo 'sql_prot = 1' >"$directory/bad.toml"
  refused "is no configuration" "$latsdb" start --config "$directory/bad.toml"
  refused "cannot read the configuration" "$latsdb" start --config "$directory/none.toml"
}

# A small run of the benchmark: all that it was asked for is done, and the table is gone afterwards.
flex() {
  local bench=("$latsdb" bench flex --address "127.0.0.1:$native")
  start
  measured "
for stage in ('insert', 'read', 'update', 'delete'): checked(said[stage])
assert said['config']['rows'] == 5000, said" "${bench[@]}" --rows 5000 --transactions 8 --client-threads 2 || fail "bench flex"
  refused "rows of its own" "${bench[@]}" --rows 5
  refused "bench.flex" "${sql[@]}" "SELECT COUNT(*) FROM bench.flex"
}

# The same for keys through SQL, with the cluster as its own peer.
keys() {
  local how keys=("$latsdb" bench keys --address "127.0.0.1:$native" --peer)
  start
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
  refused "bench.lookup" "${sql[@]}" "SELECT COUNT(*) FROM bench.lookup"
}

# Workloads of YCSB, natively or through SQL.
ycsb() {
  local ycsb=("$latsdb" bench ycsb --address "127.0.0.1:$native" --records 1000 --client-threads 2)
  start
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
    for one in done.values(): checked(one)" "${ycsb[@]}" $1 --connections 4 || fail "bench ycsb $1"
  refused "not be more than" "${ycsb[@]}" --connections 1
  refused "required arguments" "${ycsb[@]}" --peer "mysql://root@127.0.0.1:$port"
  refused "bench.usertable" "${sql[@]}" "SELECT COUNT(*) FROM bench.usertable"
}
ycsb_natively() { ycsb ""; }
ycsb_through_sql() { ycsb --sql; }

# A configuration file says that no node is started again. One that has died is replaced by another one.
replaced() {
  local dead=("$latsdb" declare-dead --address "127.0.0.1:$native")
  local join=("$latsdb" node --join "127.0.0.1:$native" --data-dir "$directory/joined")
  local keeps rows=""
  printf 'sql_port = %d\nno_restart = true\ndata_dir = "%s"\n' "$port" "$directory/cluster" >"$directory/good.toml"
  "$latsdb" start --config "$directory/good.toml" --detach
  "${sql[@]}" "CREATE TABLE test.kept (id INT PRIMARY KEY); INSERT INTO test.kept VALUES (1), (2), (3)" >/dev/null
  refused "no node 9" "${dead[@]}" 9
  refused "it lives" "${dead[@]}" 2
  refused "no such node of the cluster is down" "${join[@]}"
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
  is 2 native_address "127.0.0.2:$((port + 200))" || fail "node 2 is not where it was told to be"
  counts() { rows="$(at_node $((port + 201)) 'SELECT COUNT(*) FROM test.kept')"; }
  wait_for "the new node 2 answers" counts
  if [ "$rows" != 3 ]; then
    echo "commands: the new node 2 answers '$rows' instead of 3 rows"
    exit "$wrong"
  fi
  [ "$(at_node $((port + 201)) 'SELECT @@durability')" = disk ] || fail "the new node 2 does not know what commits wait for"
  refused "no node of the cluster answers" "$latsdb" stop --address "127.0.0.1:$((port + 299))"
  "$latsdb" stop --address "127.0.0.1:$native"
  refused "no node of the cluster answers" "$latsdb" status --address "127.0.0.1:$native"
}

# The last replica is killed: the cluster says so, at once and later.
gone() {
  start
  "$latsdb" status --data-dir "$directory/cluster" | head -n 1 >/dev/null
  kill -9 "$(state 1 pid)" "$(state 2 pid)"
  wait_for "the cluster says that its rows are gone" [ -f "$directory/cluster/ended.txt" ]
  refused "they are gone" "$latsdb" status --data-dir "$directory/cluster"
  grep -q "they are gone" "$directory/cluster.log" || fail "the log does not say that the rows are gone"
}

if [ -n "$directory" ]; then
  trap stop EXIT
  "$2"
  exit
fi
for name in configuration flex keys ycsb_natively ycsb_through_sql replaced gone; do
  part "$name"
done
echo "commands: all as expected"
