"""Reads the language of mysqltest as far as SQL suites need it: a program becomes statements for a runner.

Understood: delimiters, comments, let (literals, queries, query_get_value), inc, dec, while, if, eval, error, echo, source (files
that only ask for features are left out), connect, connection, disconnect, send and reap (as one statement), here-documents
(skipped). Not understood: exec, perl, shutdown: those commands are left out, and the count of them is kept."""

import os
import re
import tempfile

IGNORED = set(
    """connection_ sleep real_sleep echo result require error replace_result replace_column replace_regex replace_numeric_round
    ping enable_query_log disable_query_log enable_result_log disable_result_log enable_warnings disable_warnings enable_info
    disable_info enable_metadata disable_metadata enable_prepare_warnings disable_prepare_warnings enable_ps_protocol disable_ps_protocol
    enable_ps2_protocol disable_ps2_protocol enable_sp_protocol disable_sp_protocol enable_view_protocol disable_view_protocol
    enable_cursor_protocol disable_cursor_protocol enable_non_blocking_api disable_non_blocking_api enable_service_connection
    disable_service_connection enable_column_names disable_column_names enable_session_track_info disable_session_track_info
    enable_abort_on_error disable_abort_on_error enable_reconnect disable_reconnect enable_rpl_parse disable_rpl_parse
    enable_connect_log disable_connect_log enable_async_client disable_async_client enable_testcase disable_testcase
    enable_optimizer_trace disable_optimizer_trace vertical_results horizontal_results sorted_result partially_sorted_result
    lowercase_result start_timer end_timer character_set result_format output remove_file remove_files_wildcard file_exists copy_file
    copy_files_wildcard chmod cat_file diff_files mkdir rmdir force-rmdir force-cpdir list_files list_files_write_file
    list_files_append_file move_file send_quit change_user reset_connection system exec execw exec_in_background save_master_pos
    sync_with_master sync_slave_with_master wait_for_slave_to_stop die_ assert skip_if_hypergraph send_shutdown shutdown_server
    query_attributes evalp_ expr show_warnings_ optimizer_trace log_warnings ps_protocol tls_version""".split()
)
HANDLED = set(
    """let inc dec while if eval evalp query query_vertical query_horizontal eval_vertical source connect connection disconnect dirty_close
    send send_eval reap delimiter end exit die skip write_file append_file perl error disable_parsing enable_parsing""".split()
)
WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9-]*")
SKIP_SOURCE = re.compile(
    r"(have_|not_|no_|is_|big_test|long_test|count_sessions|wait_|restart|start_|shutdown|kill_|default_|master-slave|"
    r"big_|force_restart|linux|windows|check_|add_anonymous|delete_anonymous|mysqld--|expect_|turn_off|explain_|show_|"
    r"protocol|maybe_|innodb_|last_query_cost|analyze-|min_null_max_|sync_|rpl|running_event|ps_modify|system_db|"
    r"ndb_(wait|have|not|restart|report|desc|start|stop|backup|default_cluster|setup|add|tables|init|print|show|get|global|verify|check|find|kill|all|is)|"
    r"get_ndb|suppress|mtr_|write_|read_|load_sysvars|assert|force_|explain)"
)


class Skip(Exception):
    """The file asks for something that cannot be done here."""


def commands(text):
    """Splits a program into (line, command) pairs; the delimiter is taken off, `{` and `}` are commands."""
    out = []
    delimiter = ";"
    at, size = 0, len(text)
    parsing = True
    while at < size:
        # at the start of a command
        while at < size and text[at] in " \t\r\n":
            at += 1
        if at >= size:
            break
        line = text.count("\n", 0, at) + 1
        end = text.find("\n", at)
        end = size if end < 0 else end
        if text[at] == "#":
            at = end + 1
            continue
        if text.startswith("--", at):
            body = text[at + 2 : end].strip()
            at = end + 1
            word = WORD.match(body)
            name = word.group(0).lower() if word else ""
            if name == "disable_parsing":
                parsing = False
            elif name == "enable_parsing":
                parsing = True
            elif not parsing:
                continue
            elif name == "delimiter":
                delimiter = body[9:].strip()
                if delimiter.endswith(";") and len(delimiter) > 1:
                    delimiter = delimiter[:-1]
            elif name in ("write_file", "append_file", "perl"):
                at = heredoc(text, at, body)
            elif name in HANDLED or name in IGNORED:
                if body.endswith(";") and name != "let":
                    body = body[:-1]
                out.append((line, "--" + body))
            # anything else is a comment
            continue
        if text[at] in "{}":
            if parsing:
                out.append((line, text[at]))
            at += 1
            continue
        # a command up to the delimiter
        start = at
        first = WORD.match(text, at)
        name = first.group(0).lower() if first else ""
        quote = ""
        block = name in ("while", "if")
        closed = False
        while at < size:
            char = text[at]
            if quote:
                if char == "\\" and quote != "`":
                    at += 2
                    continue
                if char == quote:
                    quote = ""
                at += 1
                continue
            if text.startswith(delimiter, at):
                closed = True
                break
            if block and char == "{":
                break
            if char in "'\"`":
                quote = char
            at += 1
        body = text[start:at].strip()
        if closed:
            at += len(delimiter)
        if name == "disable_parsing":
            parsing = False
            continue
        if name == "enable_parsing":
            parsing = True
            continue
        if not parsing:
            continue
        if name == "delimiter":
            delimiter = body[9:].strip() or ";"
            continue
        if name in ("write_file", "append_file", "perl"):
            at = heredoc(text, text.find("\n", at) + 1 or size, body)
            continue
        if body:
            out.append((line, body))
    return out


def heredoc(text, at, body):
    words = body.replace(";", " ").split()
    mark = "EOF"
    if words[0].lower() == "perl" and len(words) > 1:
        mark = words[1]
    elif len(words) > 2:
        mark = words[2]
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if text[at:end].strip().rstrip(";") == mark:
            return end + 1
        at = end + 1
    return at


class Program:
    """Interprets a file; `runner` has statement(sql, line), ask(sql) -> Answer, connect(name, user, database), switch(name), disconnect(name)."""

    def __init__(self, root, runner, limit=200_000):
        self.root = root
        self.runner = runner
        self.names = {"MYSQL_TEST_DIR": root, "MYSQLTEST_VARDIR": os.path.join(tempfile.gettempdir(), "vardir"), "ENGINE": "InnoDB", "engine_type": "InnoDB", "default_engine": "InnoDB"}
        self.limit = limit
        self.left_out = 0
        self.steps = 0

    def expand(self, text):
        def one(match):
            name = match.group(1)
            return self.names.get(name, "")

        return re.sub(r"\$([A-Za-z_0-9]+)", one, text.replace("\\$", "\0")).replace("\0", "$")

    def file(self, path, depth=0):
        with open(path, "rb") as file:
            text = file.read().decode("latin-1")
        self.folder = os.path.dirname(path)
        self.block(commands(text), depth, os.path.basename(path))

    def block(self, program, depth, name):
        matches, stack = {}, []
        for index, (_, command) in enumerate(program):
            if command == "{":
                stack.append(index)
            elif command == "}" and stack:
                matches[stack.pop()] = index
        self.run(program, 0, len(program), matches, depth, name)

    def run(self, program, at, end, matches, depth, name):
        while at < end:
            self.steps += 1
            if self.steps > self.limit:
                raise Skip("too many statements")
            line, command = program[at]
            if command in "{}":
                at += 1
                continue
            dashed = command.startswith("--")
            body = command[2:].strip() if dashed else command
            word = WORD.match(body)
            verb = word.group(0).lower() if word else ""
            rest = body[len(verb) :].strip() if word else ""
            if verb in ("while", "if") and rest.startswith("("):
                if at + 1 >= end or program[at + 1][1] != "{" or at + 1 not in matches:
                    raise Skip(f"{verb} without a block in line {line}")
                close = matches[at + 1]
                rounds = 0
                while self.condition(rest):
                    self.run(program, at + 2, close, matches, depth, name)
                    rounds += 1
                    if verb == "if":
                        break
                    if rounds > 20_000:
                        raise Skip("a loop without an end")
                at = close + 1
                continue
            self.command(verb, rest, body, dashed, line, depth, name)
            at += 1

    def command(self, verb, rest, body, dashed, line, depth, name):
        if verb == "let":
            match = re.match(r"\$?([A-Za-z_0-9]+)\s*=\s*(.*)", rest, re.S)
            if match:
                self.names[match.group(1)] = self.value(match.group(2).strip())
        elif verb in ("inc", "dec"):
            key = rest.strip().lstrip("$").split()[0]
            number = int(re.match(r"\s*-?\d+|", self.names.get(key, "0") or "0").group(0) or 0)
            self.names[key] = str(number + (1 if verb == "inc" else -1))
        elif verb in ("eval", "evalp", "send_eval", "eval_vertical"):
            self.runner.statement(self.expand(rest), line)
        elif verb in ("query", "query_vertical", "query_horizontal"):
            self.runner.statement(rest, line)
        elif verb == "send":
            if rest:
                self.runner.statement(rest, line)
        elif verb == "source":
            self.source(self.expand(rest), depth)
        elif verb == "connect" and rest.startswith("("):
            parts = [self.expand(p.strip()) for p in rest.strip("()").split(",")]
            parts += [""] * (5 - len(parts))
            self.runner.connect(parts[0], parts[2] or "root", parts[4] or "test")
        elif verb == "connect" and re.match(r"\w+\s*,", rest):
            parts = [self.expand(p.strip()) for p in rest.split(",")] + [""] * 5
            self.runner.connect(parts[0], parts[2] or "root", parts[4] or "test")
        elif verb == "connection":
            self.runner.switch(self.expand(rest.strip()))
        elif verb in ("disconnect", "dirty_close"):
            self.runner.disconnect(self.expand(rest.strip()))
        elif verb in ("exit", "skip", "die"):
            raise StopIteration
        elif verb in ("reap", "end"):
            pass
        elif verb == "replace" or (verb == "result" and not dashed):
            self.runner.statement(body, line)
        elif verb in IGNORED:
            if verb in ("exec", "system", "shutdown_server", "send_shutdown"):
                self.left_out += 1
        elif dashed:
            pass
        else:
            self.runner.statement(body, line)

    def value(self, text):
        if text.startswith("`") and text.endswith("`"):
            return self.query(self.expand(text[1:-1]))
        match = re.match(r"query_get_value\s*\((.*)\)\s*$", text, re.S)
        if match:
            parts = match.group(1).rsplit(",", 2)
            if len(parts) == 3:
                answer = self.runner.ask(self.expand(parts[0].strip().strip("\"'")))
                try:
                    column = [n.decode() for n in answer.names].index(parts[1].strip())
                    value = answer.rows[int(parts[2]) - 1][column]
                    return "NULL" if value is None else value.decode("latin-1")
                except (ValueError, IndexError):
                    return "No such row"
        if re.match(r"(escape|substr|concat|upper|lower|regexp_replace|length|convert_error)\s*\(", text):
            raise Skip("let with a function")
        if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0] and text.count(text[0]) == 2:
            text = text[1:-1]
        return self.expand(text)

    def query(self, sql):
        answer = self.runner.ask(sql)
        if answer.kind != "rows" or not answer.rows:
            return ""
        return "\t".join("" if v is None else v.decode("latin-1") for v in answer.rows[0])

    def condition(self, text):
        inner = text.strip()
        inner = inner[1 : inner.rindex(")")].strip()
        match = re.match(r"(!?)\s*(\$\w+|`.*`|-?\d+|'[^']*')\s*(==|!=|<=|>=|<|>)\s*(.*)$", inner, re.S)
        if match and not (inner.startswith("`") and inner.endswith("`") and inner.count("`") == 2):
            left, right = self.operand(match.group(2)), self.operand(match.group(4).strip())
            try:
                left, right = int(left), int(right)
            except ValueError:
                left, right = str(left), str(right)
            result = {"==": left == right, "!=": left != right}.get(match.group(3))
            if result is None:
                if isinstance(left, str):
                    raise Skip("comparison of texts")
                result = {"<": left < right, ">": left > right, "<=": left <= right, ">=": left >= right}[match.group(3)]
            return result
        negated = inner.startswith("!")
        value = self.operand(inner.lstrip("!").strip())
        truth = value not in ("", "0") and not re.match(r"0+$", value)
        return truth != negated

    def operand(self, text):
        if text.startswith("`"):
            return self.query(self.expand(text.strip("`")))
        if text.startswith("'") and text.endswith("'"):
            return text[1:-1]
        return self.expand(text)

    def source(self, path, depth):
        base = os.path.basename(path)
        if SKIP_SOURCE.match(base) or depth > 6:
            return
        here = self.folder
        for root in (self.root, here):
            full = os.path.join(root, path)
            if os.path.exists(full):
                self.file(full, depth + 1)
                self.folder = here
                return
        self.left_out += 1
