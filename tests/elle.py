"""Histories in the form that Elle reads: EDN, one operation a line, each an invocation or its completion."""

import itertools

TYPES = {"committed": ":ok", "rolled_back": ":fail", "unknown": ":info"}


def micro(action, is_told):
    """One read or write of a transaction; what was read is known when it is committed."""
    kind, number, value = action
    if kind == "r":
        shown = "[" + " ".join(map(str, value)) + "]" if isinstance(value, list) else str(value)
        return f"[:r {number} {shown if is_told else 'nil'}]"
    return f"[:{'append' if kind == 'append' else 'w'} {number} {value}]"


def of_lists(transaction):
    """A transaction of `history.py` and `lats-history native`."""
    actions = []
    for action in transaction["actions"]:
        (kind, what), = action.items()
        actions.append(("append", what["list"], what["element"]) if kind == "append" else ("r", what["list"], what["elements"]))
    return transaction["client"], transaction["begun_ns"], transaction["ended_ns"], transaction["outcome"], actions


def write(path, history):
    """`history`: (client, begin, end, outcome, actions). Who is not told of an end never acts again, so a client is another process
    after that."""
    lines, processes, fresh = [], {}, itertools.count()
    for client, begun, ended, outcome, actions in sorted(history, key=lambda one: one[1:3]):
        if not actions:
            continue
        process = processes.setdefault(client, next(fresh))
        for moment, kind, is_told in ((begun, ":invoke", False), (ended, TYPES[outcome], outcome == "committed")):
            value = " ".join(micro(action, is_told) for action in actions)
            lines.append((moment, kind != ":invoke", f":type {kind}, :f :txn, :value [{value}], :process {process}, :time {moment}"))
        if outcome == "unknown":
            del processes[client]
    with open(path, "w", encoding="utf8") as file:
        for index, (_, _, text) in enumerate(sorted(lines)):
            file.write(f"{{:index {index}, {text}}}\n")
