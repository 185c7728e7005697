"""Runs the same statements, one by one, on LatsDB and on reference servers, and says where the answers differ.

The lead is the reference that says what is right; the second reference only excuses: an answer that it gives too is no fault.
After a change that one server did not make (refused it, or counted other rows), the tables that the statement names are copied to it
from the lead before they are used again, so that one gap does not spoil what follows; where that fails, what names the table is
counted as `cascade`."""

import os
import re
from collections import Counter

from wire import Connection, Lost

REFUSALS = {1235, 1064, 1305, 1193, 1286, 1115, 1273, 1289, 1370, 1128, 1149, 1047, 1295, 1231, 1298, 1248, 1178, 3675}
SHOW = re.compile(r"^\s*(show|desc|describe)\b", re.I)
PLAN = re.compile(r"\s*(explain|analyze(?!\s+(no_write_to_binlog\s+|local\s+)?tables?\b)|(desc|describe)\s+(select|extended|partitions|format|update|delete|insert|with))\b", re.I)
SCHEMA = re.compile(r"\b(information_schema|performance_schema|mysql\s*\.|sys\s*\.|ndbinfo)\b", re.I)
ENGINE = re.compile(r"(\s*,)?\s*\b(storage\s+)?engine\s*=?\s*['\"`]?(myisam|innodb|heap|memory|aria|maria|ndbcluster|ndb|merge|mrg_myisam|csv|archive|blackhole|example)\b['\"`]?", re.I)
NONDETERMINISTIC = re.compile(
    r"\b(rand|uuid|uuid_short|now|sysdate|curdate|curtime|current_timestamp|current_date|current_time|localtime|localtimestamp|utc_date|utc_time|utc_timestamp|"
    r"unix_timestamp|connection_id|version|@@version\w*|user|current_user|session_user|system_user|benchmark|sleep|load_file|last_insert_id|row_count|found_rows|random_bytes|encrypt|des_encrypt|password|sys_guid|get_lock|is_used_lock)\b", re.I)
ORDERED = re.compile(r"\border\s+by\b", re.I)
LIMITED = re.compile(r"\blimit\b|\bfetch\s+(first|next)\b", re.I)
WORDS = re.compile(r"`([^`]+)`|([A-Za-z_$0-9\x80-\xff]+)")
SET_NAMES = re.compile(r"@@?[\w.$]+|\b(sql_mode|names|time_zone|timestamp|autocommit|collation_\w+|character_set_\w+|div_precision_increment|group_concat_max_len|sql_select_limit|default_week_format|lc_time_names|foreign_key_checks|sql_auto_is_null|old_mode|sql_big_selects|max_sort_length|auto_increment_\w+|sql_safe_updates|charset|character\s+set|max_length_for_sort_data|max_allowed_packet)\b", re.I)
# How often a statement of a loop counts.
REPEATED_MAX = 20
LEADING_COMMENT = re.compile(r"\s*(/\*(?![!M]).*?\*/|#[^\n]*\n|--\s[^\n]*\n)\s*", re.S)


def excluded(path=os.path.join(os.path.dirname(os.path.abspath(__file__)), "excluded")):
    """The statements that are left out, as (pattern, reason)."""
    found = []
    with open(path) as file:
        for line in file:
            line = line.rstrip("\n")
            if line and not line.startswith("#"):
                pattern, reason = line.rsplit(" | ", 1)
                found.append((re.compile(pattern, re.I | re.S), reason))
    return found


class Server:
    def __init__(self, name, port):
        self.name = name
        self.port = port
        self.plugin = "caching_sha2_password" if name == "mysql" else "mysql_native_password"
        self.charset = 45 if name == "mariadb" else 255
        self.sessions = {}
        self.admin = None
        self.dirty = {}  # table -> 'rows' or 'all'
        self.tainted = {}  # table -> why
        self.permanent = {}  # table -> what it lacks here until the file ends (triggers, references, being temporary)
        self.approximate = {}  # table -> why it is not the lead's
        self.unprepared = set()  # prepared statements that the lead has and this server refused
        self.gaps = {}  # session variables and user variables that this server does not have as the lead has them

    def open(self, database=""):
        session = Connection(self.port, database, self.plugin, timeout=25.0, charset=self.charset)
        if self.name == "mariadb":
            session.query("SET NAMES utf8mb4 COLLATE utf8mb4_uca1400_nopad_ai_ci")
        return session

    def administrator(self):
        if self.admin is not None and self.admin.broken:
            self.admin.socket.close()
            self.admin = None
        if self.admin is None:
            self.admin = self.open()
            self.admin.query("SET sql_mode = ''")
            if self.name != "latsdb":
                self.admin.query("SET foreign_key_checks = 0")
        return self.admin

    def clean(self):
        """No session, no database but `test`, which is empty; global variables that files like to change are as at the start."""
        for session in self.sessions.values():
            session.close()
        if self.admin:
            self.admin.close()
        self.sessions, self.admin, self.dirty, self.tainted, self.gaps, self.approximate, self.permanent = {}, None, {}, {}, {}, {}, {}
        self.unprepared = set()
        admin = self.administrator()
        if self.name != "latsdb":
            admin.query("SET GLOBAL default_storage_engine = InnoDB")
        for (database,) in admin.query("SHOW DATABASES").rows:
            if database.lower() not in (b"information_schema", b"performance_schema", b"mysql", b"sys"):
                admin.query(b"DROP DATABASE `" + database + b"`")
        admin.query("CREATE DATABASE test")


def words_of(sql):
    """A statement without its constants."""
    return re.sub(r"'[^']*'|\d+", "", sql)[:200]


def target(sql):
    """The words of a statement that may be table names (which are compared with their case)."""
    return {a or b for a, b in WORDS.findall(sql)}


def soften(text):
    """A CREATE TABLE as SHOW gives it, without what LatsDB does not know."""
    text = re.sub(r"\n\).*", "\n)", text, flags=re.S)
    lines = text.split("\n")
    body = []
    for line in lines[1:-1]:
        line = line.strip().rstrip(",")
        if re.match(r"(FULLTEXT|SPATIAL|CONSTRAINT|FOREIGN|CHECK|PERIOD|VECTOR)\b", line):
            continue
        if re.match(r"(UNIQUE )?KEY\b", line) and (re.search(r"\(\d+\)|\(\(|DESC", line)):
            continue
        line = re.sub(r"\s*/\*.*?\*/", "", line)
        line = re.sub(r"\(\d+\)", "", line) if line.startswith("PRIMARY") else line
        line = re.sub(r" zerofill\b", "", line, flags=re.I)
        line = re.sub(r"\b(double|float|real)\(\d+,\d+\)", r"\1", line, flags=re.I)
        line = re.sub(r"\benum\(('([^']|'')*',?)*\)", "varchar(100)", line, flags=re.I)
        line = re.sub(r"\bset\(('([^']|'')*',?)*\)", "varchar(200)", line, flags=re.I)
        line = re.sub(r"(` )json\b", r"\1longtext", line)
        line = re.sub(r"(` )year(\(4\))?", r"\1int", line)
        line = re.sub(r"(` )bit\(\d+\)", r"\1bigint unsigned", line)
        line = re.sub(r" CHARACTER SET \w+| COLLATE \w+| COMMENT '([^']|'')*'| COMPRESSED\b| INVISIBLE\b| STORAGE \w+| COLUMN_FORMAT \w+", "", line)
        line = re.sub(r" CHECK \(.*\)$", "", line)
        line = re.sub(r" DEFAULT \(.*\)| DEFAULT [a-z_]+\(.*\)$", "", line)
        body.append(line)
    if any("AUTO_INCREMENT" in line for line in body) and not any(line.startswith(("PRIMARY", "UNIQUE")) for line in body):
        body = [line.replace(" AUTO_INCREMENT", "") for line in body]
    return re.sub(r"^CREATE TEMPORARY", "CREATE", lines[0]) + "\n" + ",\n".join(body) + "\n)"


def number(value):
    try:
        return float(value)
    except ValueError:
        return None


def close(a, b, kind):
    """Equal but for how a number is written."""
    if a is None or b is None:
        return a is b
    if a == b:
        return True
    if kind in (4, 5, 0, 246, 8, 3, 253):
        x, y = number(a), number(b)
        if x is None or y is None:
            return False
        if kind in (4, 5):
            return x == y or abs(x - y) <= 1e-13 * max(abs(x), abs(y))
        return False
    return False


def compare(sql, ours, theirs):
    """'' when the answers agree, else the kind of difference."""
    if ours.kind == "lost":
        return "lost"
    if theirs.kind == "error":
        if ours.kind == "error":
            return "" if ours.code == theirs.code else "other error"
        return "accepted"
    if ours.kind == "error":
        return "refused" if ours.code in REFUSALS else "error"
    if ours.kind != theirs.kind:
        return "other kind"
    if ours.kind == "ok":
        if not re.match(r"\s*(insert|update|delete|replace)\b", sql, re.I):
            return ""
        return "" if ours.affected == theirs.affected else "affected"
    if len(ours.names) != len(theirs.names):
        return "columns"
    kinds = theirs.types
    if ours.rows == theirs.rows:
        return ""
    if len(ours.rows) == len(theirs.rows):
        def key(row):
            return tuple((v is not None, v or b"") for v in row)

        sorted_ours, sorted_theirs = sorted(ours.rows, key=key), sorted(theirs.rows, key=key)
        ordered = bool(ORDERED.search(sql))
        if sorted_ours == sorted_theirs:
            return "order" if ordered else ""
        pairs = list(zip(ours.rows, theirs.rows)) if ordered else list(zip(sorted_ours, sorted_theirs))
        if all(close(a, b, k) for x, y in pairs for a, b, k in zip(x, y, kinds)):
            return "format"
    return "rows"


class Runner:
    """Runs one file's statements in lock-step; `report(kind, sql, answers, note)` is called for each statement."""

    def __init__(self, latsdb, lead, second, report):
        self.lead, self.second, self.latsdb = lead, second, latsdb
        self.servers = [s for s in (lead, second, latsdb) if s]
        self.report = report
        self.counts = Counter()
        self.verbs = Counter()
        self.tables = set()
        self.unrepaired = Counter()
        self.repairs = Counter()
        self.out_of_scope = {}  # prepared statements that are left out, and why
        self.plans = set()  # prepared statements that show plans
        self.excluded = excluded()
        self.left_out = Counter()
        self.repeated = Counter()
        for server in self.servers:
            server.clean()
        self.current = "default"
        self.connect("default", "root", "test")

    # what mtr.Program calls

    def connect(self, name, user, database):
        if user != "root":
            raise StopIteration
        for server in self.servers:
            session = server.open()
            session.query(b"USE `" + database.encode("latin-1") + b"`")
            server.sessions[name] = session
        self.current = name

    def switch(self, name):
        if name in self.lead.sessions:
            self.current = name

    def disconnect(self, name):
        for server in self.servers:
            session = server.sessions.pop(name, None)
            if session:
                session.close()
        if self.current == name:
            self.current = "default"

    def ask(self, sql):
        return self.lead.sessions["default" if self.current not in self.lead.sessions else self.current].query(sql.encode("latin-1"))

    def session(self, server):
        session = server.sessions.get(self.current)
        if session is None:
            session = server.open("")
            session.query("USE test")
            server.sessions[self.current] = session
        return session

    def statement(self, sql, line):
        sql = LEADING_COMMENT.sub("", sql, 1) if sql.lstrip().startswith(("/*", "#", "--")) else sql
        sql = sql.strip()
        if not sql:
            return
        reason = self.left_out_for(sql)
        if reason:
            self.counts["excluded"] += 1
            self.left_out[reason] += 1
            if re.match(r"\s*(prepare|execute|deallocate|call|lock|unlock|set|grant|create|drop|alter|flush|kill|stop|change|install|uninstall|shutdown|purge|reset|binlog|backup|cache)\b", sql, re.I):
                return  # no server is changed
            if not re.match(r"\s*(load|handler)", sql, re.I):
                return
            self.session(self.lead).query(sql.encode("latin-1"))
            self.changed(sql, [s for s in self.servers if s is not self.lead])
            return
        try:
            sql.encode("latin-1").decode("utf-8")
        except UnicodeDecodeError:
            # a file in latin1: all connections are utf8mb4
            sql = sql.encode("utf-8").decode("latin-1")
        words = target(sql)
        for server in self.servers:
            self.repair(server, words)
        # references keep what they create in InnoDB; LatsDB gets the statement as it stands
        stripped = ENGINE.sub("", sql)
        raw = {s: (sql if s is self.latsdb else stripped).encode("latin-1") for s in self.servers}
        answers = {s: self.session(s).query(raw[s]) for s in self.servers}
        lead = answers[self.lead]
        for server in self.servers:
            if answers[server].kind == "lost":
                session = server.sessions.pop(self.current, None)
                if session:
                    session.socket.close()
        if lead.kind == "lost":
            self.counts["lead lost"] += 1
            return
        # Loops that fill tables would outweigh all else.
        self.repeated[(line, words_of(sql))] += 1
        if self.repeated[(line, words_of(sql))] <= REPEATED_MAX:
            self.judge(sql, line, words, answers, lead)
        self.follow(sql, words, answers, lead)

    def left_out_for(self, sql):
        """Why a statement is left out, if it is; the same for what is prepared from a text and executed."""
        prepared = re.match(r"\s*prepare\s+`?(\w+)`?\s+from\s+(['\"])(.*)", sql, re.I | re.S)
        text = prepared.group(3) if prepared else sql
        reason = next((reason for pattern, reason in self.excluded if pattern.match(text)), None)
        if prepared:
            name = prepared.group(1).lower()
            (self.plans.add if PLAN.match(text) else self.plans.discard)(name)
            if reason:
                self.out_of_scope[name] = reason
            else:
                self.out_of_scope.pop(name, None)
            return reason
        executed = re.match(r"\s*(?:execute|(?:deallocate|drop)\s+prepare)\s+`?(\w+)", sql, re.I)
        return self.out_of_scope.get(executed.group(1).lower(), reason) if executed else reason

    def judge(self, sql, line, words, answers, lead):
        ours = answers[self.latsdb]
        theirs = answers.get(self.second) if self.second else None
        difference = compare(sql, ours, lead)
        if PLAN.match(sql) or self.executes_plan(sql):
            # Plans and their costs are each server's own: what counts is whether there is one.
            same = ours.kind == lead.kind and (ours.kind != "error" or ours.code == lead.code)
            shown = theirs is not None and theirs.kind == "error" and lead.kind != "error"
            kind = "same" if same else "refused, lead only" if shown else "refused"
            self.counts[("plans", kind)] += 1
            return
        area = "schema tables" if SCHEMA.search(sql) else "show" if SHOW.match(sql) else "sql"
        note = ""
        if not difference:
            kind = "same"
            if lead.kind == "error":
                note = "both refuse"
            elif lead.kind == "rows" and ours.names != lead.names and (theirs is None or ours.names != theirs.names):
                note = "column names: " + repr([(a, b) for a, b in zip(ours.names, lead.names) if a != b][:2])[:300]
            reference = theirs if theirs is not None and self.second.name == "mysql" else lead
            if reference.kind == ours.kind != "error" and reference.warnings != ours.warnings:
                self.counts["warnings"] += 1
                if not note:
                    note = f"warnings: {ours.warnings}, should be {reference.warnings}"
        else:
            why = self.cascade(self.latsdb, words, sql)
            excuse = theirs is not None and not compare(sql, ours, theirs) and not self.cascade(self.second, words, sql)
            if difference == "lost":
                kind = "lost"
            elif difference == "refused":
                kind = "refused"
                if why and ours.code == 1305:
                    kind, note = "cascade", why
                if theirs is not None and theirs.kind == "error" and lead.kind != "error":
                    note = f"{self.second.name} refuses it too"
                    if kind == "refused":
                        kind = "refused, lead only"
            elif excuse:
                kind, note = "same", f"as {self.second.name}, unlike {self.lead.name}"
                if difference == "other error":
                    note = ""
            elif why:
                kind, note = "cascade", why
            elif difference == "error" and ours.code in (1146, 1051, 1049):
                # it is there at the lead: what made it was refused before
                kind, note = "cascade", "is not here"
            elif difference == "other error" and ours.code in REFUSALS:
                kind = "same"
                note = "refused, an error in any case"
            elif difference == "other error":
                kind = "other error"
            elif difference == "order":
                kind = "order"
            elif difference == "format":
                kind = "format"
            elif NONDETERMINISTIC.search(sql) and difference == "rows":
                kind = "not comparable"
            elif theirs is not None and difference == "rows" and theirs.kind == "rows" and compare(sql, theirs, lead) in ("rows", "columns"):
                kind, note = "wrong", "references differ too"
            elif LIMITED.search(sql) and difference == "rows":
                kind, note = "wrong", "limit"
            else:
                kind = "wrong"
        self.counts[(area, kind)] += 1
        if area == "sql":
            verb = re.match(r"[\s(]*(\w+)", sql)
            verb = verb.group(1).lower() if verb else "?"
            self.verbs[(verb, kind if kind != "same" or lead.kind != "error" else "same error")] += 1
        if kind != "same" or note:
            self.report(area, kind, difference, sql, line, ours, lead, theirs, note)

    def executes_plan(self, sql):
        executed = re.match(r"\s*execute\s+`?(\w+)", sql, re.I)
        return executed is not None and executed.group(1).lower() in self.plans

    def cascade(self, server, words, sql):
        executed = re.match(r"\s*(?:execute|(?:deallocate|drop)\s+prepare)\s+`?(\w+)", sql, re.I)
        if executed and executed.group(1).lower() in server.unprepared:
            return f"{executed.group(1)}: PREPARE was refused"
        for known in (server.tainted, server.permanent):
            for table, why in known.items():
                if table in words:
                    return f"{table}: {why}"
        for name, why in server.gaps.items():
            if name.startswith("@") and not name.startswith("@@"):
                if name in sql.lower():
                    return f"{name}: {why}"
            elif name.startswith("session ") and SET_NAMES.fullmatch(name[8:]):
                return f"{name[8:]}: {why}"
        for table, level in server.dirty.items():
            if table in words:
                return f"{table}: not copied ({level})"
        return ""

    # how servers are kept equal

    def follow(self, sql, words, answers, lead):
        """Notes what was created, and who did not do what the lead did."""
        match = re.match(r"\s*create\s+(or\s+replace\s+)?(algorithm\s*=\s*\w+\s+|definer\s*=\s*\S+\s+|sql\s+security\s+\w+\s+)*(temporary\s+)?(table|view)\s+(if\s+not\s+exists\s+)?((`[^`]+`|[\w$\x80-\xff]+)\s*\.\s*)?(`[^`]+`|[\w$\x80-\xff]+)", sql, re.I)
        if match:
            self.tables.add(match.group(8).strip("`"))
        verb = re.match(r"[\s(]*(\w+)", sql)
        verb = verb.group(1).lower() if verb else ""
        if verb == "rename" or (verb == "alter" and re.search(r"\brename\b", sql, re.I)):
            for word in re.findall(r"\bto\s+(?:as\s+)?(?:`?\w+`?\.)?`?([\w$]+)`?|\brename\s+(?:as\s+)?`?([\w$]+)`?", sql, re.I):
                self.tables.add(word[0] or word[1])
        for server in self.servers:
            if server is self.lead:
                continue
            own = answers[server]
            handle = re.match(r"\s*prepare\s+`?(\w+)", sql, re.I)
            if handle and own.kind == "ok":
                server.unprepared.discard(handle.group(1).lower())
            agree = (own.kind == "error") == (lead.kind == "error") and own.kind != "lost"
            if verb == "set":
                names = {m.group(0).lower() for m in SET_NAMES.finditer(sql)}
                keys = {n if n.startswith("@") and not n.startswith("@@") else "session " + re.sub(r"^@@(session\.|local\.|global\.)?", "", n) for n in names}
                for key in keys:
                    if agree:
                        server.gaps.pop(key, None)
                    else:
                        server.gaps[key] = f"SET was {'refused' if own.kind == 'error' else 'accepted'} ({own.code})"
                continue
            if agree and own.kind == "ok" and lead.kind == "ok" and (own.affected == lead.affected or verb in ("create", "drop", "truncate", "alter", "rename")):
                if match or verb in ("drop", "truncate"):
                    for table in words & (set(server.dirty) | set(server.tainted)):
                        if verb == "drop" or match:
                            server.approximate.pop(table, None)
                            server.tainted.pop(table, None)
                            server.dirty.pop(table, None)
                continue
            if own.kind == "error" and lead.kind != "error":
                if re.match(r"\s*create\s+(or\s+replace\s+)?(definer\s*=\s*\S+\s+)?(trigger|procedure|function|event)\b", sql, re.I):
                    for name in re.findall(r"@\w+", sql):
                        server.gaps[name.lower()] = "assigned in a stored program"
                    if re.search(r"\btrigger\b", sql, re.I):
                        for table in words & self.tables:
                            server.permanent[table] = "has a trigger"
                elif match and match.group(3):
                    server.permanent[match.group(8).strip("`")] = "a temporary table"
                elif re.search(r"\breferences\b", sql, re.I):
                    for table in words & self.tables:
                        server.permanent[table] = "has foreign keys"
                elif verb == "lock":
                    server.gaps["session autocommit"] = "LOCK TABLES was refused"
            if verb == "unlock":
                server.gaps.pop("session autocommit", None)
            if verb == "drop" and lead.kind == "ok":
                # gone at the lead: gone here too
                self.changed(sql, [server])
                continue
            if agree and own.kind in ("rows", "error"):
                continue
            if verb in ("select", "with", "values", "(select", "show", "desc", "describe", "do", "use", "begin", "start", "commit", "rollback", "savepoint", "release", "lock", "unlock"):
                for name in re.findall(r"@\w+(?=\s*:=)", sql):
                    server.gaps[name.lower()] = "assigned in a statement that was refused"
                if re.search(r"\binto\s+@", sql, re.I):
                    for name in re.findall(r"@\w+", sql):
                        server.gaps[name.lower()] = "SELECT INTO was refused"
                if verb in ("rollback",):
                    self.changed(sql, [server], tables=set(self.tables))
                continue
            if verb in ("execute", "call"):
                self.changed(sql, [server], tables=set(self.tables), rows=True)
                continue
            if verb in ("prepare", "deallocate"):
                handle = re.match(r"\s*prepare\s+`?(\w+)", sql, re.I)
                if handle and lead.kind == "ok":
                    server.unprepared.add(handle.group(1).lower())
                for name in re.findall(r"@\w+", sql):
                    server.gaps[name.lower()] = "may be assigned by a statement whose PREPARE was refused"
                continue
            self.changed(sql, [server], rows=verb in ("insert", "update", "delete", "replace", "truncate", "load"))

    def changed(self, sql, servers, tables=None, rows=False):
        names = target(sql) & self.tables if tables is None else tables
        for server in servers:
            for table in names:
                if server.dirty.get(table) != "all":
                    server.dirty[table] = "rows" if rows else "all"

    def repair(self, server, words):
        if server is self.lead or not server.dirty:
            return
        for table in words & set(server.dirty):
            level = server.dirty[table]
            if self.session(self.lead).status & 1:
                continue  # in a transaction: others do not see its rows yet
            problem = self.copy(server, table, level)
            if problem and level == "rows":
                problem = self.copy(server, table, "all")
            del server.dirty[table]
            problem = problem or server.approximate.get(table, "")
            if problem:
                server.tainted[table] = problem
                self.unrepaired[(server.name, problem[:90])] += 1
            else:
                server.tainted.pop(table, None)
                self.repairs[server.name] += 1

    def copy_view(self, sink, name, text, database):
        """The same for a view."""
        text = re.sub(rb"^CREATE .*? VIEW ", b"CREATE VIEW ", text.replace(b"`" + database + b"`.", b""), count=1)
        sink.query(b"USE `" + database + b"`")
        sink.query(b"DROP TABLE IF EXISTS " + name)
        sink.query(b"DROP VIEW IF EXISTS " + name)
        made = sink.query(text)
        return "" if made.kind == "ok" else f"a view: {made.code} {made.message}"

    def copy(self, server, table, level):
        """Copies a table of the session's database from the lead; says what went wrong."""
        database = self.session(self.lead).query("SELECT DATABASE()").rows[0][0]
        if database is None:
            return "no database"
        name = b"`" + database + b"`.`" + table.encode("latin-1") + b"`"
        source, sink = self.lead.administrator(), server.administrator()
        shown = source.query(b"SHOW CREATE TABLE " + name)
        if shown.kind == "error" and shown.code == 1146:
            # a temporary table is seen by its session only; it becomes an ordinary one
            own = self.session(self.lead).query(b"SHOW CREATE TABLE " + name)
            if own.kind == "rows":
                source, shown = self.session(self.lead), own
        if shown.kind == "error":
            if shown.code in (1146, 1049):
                gone = sink.query(b"DROP TABLE IF EXISTS " + name)
                view = sink.query(b"DROP VIEW IF EXISTS " + name)
                if gone.kind == "error" and gone.code != 1049 and view.kind == "error":
                    return f"cannot be dropped ({gone.code})"
                return ""
            return f"SHOW CREATE TABLE: {shown.code}"
        if len(shown.names) > 2:
            return self.copy_view(sink, name, shown.rows[0][1], database)
        sink.query(b"DROP VIEW IF EXISTS " + name)
        if level == "all":
            text = shown.rows[0][1].decode("utf-8", "surrogateescape")
            text = re.sub(r"^CREATE TEMPORARY", "CREATE", ENGINE.sub("", text))
            text = re.sub(r"\s*(DEFAULT )?CHARSET=utf8mb4 COLLATE=utf8mb4_uca1400_nopad_ai_ci", "", text)
            text = re.sub(r"\s*(CHARACTER SET utf8mb4 )?COLLATE utf8mb4_uca1400_nopad_ai_ci", "", text)
            if server.name == "mariadb":
                text = re.sub(r"\butf8mb4_0900_\w+", "utf8mb4_uca1400_nopad_ai_ci", text)
            if server.name != "mariadb":
                text = re.sub(r"\s*(DEFAULT )?CHARSET=latin1( COLLATE=latin1_swedish_ci)?", "", text)
                text = re.sub(r"\s*CHECK \(json_valid\(`\w+`\)\)", "", text) if server.name == "mysql" else text
            if database != b"test":
                sink.query(b"CREATE DATABASE IF NOT EXISTS `" + database + b"`")
            dropped = sink.query(b"DROP TABLE IF EXISTS " + name)
            if dropped.kind == "lost":
                server.admin = None
                return "lost"
            sink.query(b"USE `" + database + b"`")
            made = sink.query(text.encode("utf-8", "surrogateescape"))
            if made.kind == "lost":
                server.admin = None
                return "lost"
            if made.kind == "error":
                # what can be had without its type or keys, so that what follows is tried at least; nothing wrong is counted on it
                softer = sink.query(soften(text).encode("utf-8", "surrogateescape"))
                if softer.kind == "error":
                    return f"CREATE TABLE: {made.code} {made.message}"
                server.approximate[table] = f"approximate: {made.code} {made.message}"
            else:
                server.approximate.pop(table, None)
        else:
            wiped = sink.query(b"DELETE FROM " + name)
            if wiped.kind == "error":
                return f"DELETE: {wiped.code}"
        rows = source.query(b"SELECT * FROM " + name + b" LIMIT 12001")
        if rows.kind != "rows":
            return f"rows cannot be read: {rows.code}"
        if len(rows.rows) > 12000:
            return "too many rows to copy"
        # generated columns take no values
        shown_columns = source.query(b"SHOW COLUMNS FROM " + name).rows
        generated = {c[0] for c in shown_columns if c[5] and b"GENERATED" in c[5].upper() and b"DEFAULT_GENERATED" not in c[5].upper()}
        keep = [i for i, n in enumerate(rows.names) if n not in generated]
        columns = b", ".join(b"`" + rows.names[i] + b"`" for i in keep)
        for start in range(0, len(rows.rows), 200):
            parts = []
            for row in rows.rows[start : start + 200]:
                values = []
                for i in keep:
                    value = row[i]
                    if value is None:
                        values.append(b"NULL")
                    elif rows.types[i] == 16 or (rows.charsets[i] == 63 and rows.types[i] in (252, 253, 254, 249, 250, 251, 255)):
                        values.append(b"0x" + value.hex().encode() if value else b"''")
                    else:
                        values.append(b"'" + value.replace(b"\\", b"\\\\").replace(b"'", b"''") + b"'")
                parts.append(b"(" + b",".join(values) + b")")
            written = sink.query(b"INSERT INTO " + name + b" (" + columns + b") VALUES " + b",".join(parts))
            if written.kind != "ok":
                return f"INSERT: {written.code} {written.message}"
        return ""
