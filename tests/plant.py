"""Errors that are planted into what clients were told, one by name: a test that does not find its planted error has a blind checker.

`load` is what `reset.Load` or `campaign.Clients` has noted, after its clients have ended.
"""

import time

# Nobody has so large a number.
NOBODYS = 9_999_999_999


def lost_transfer(load):
    load.ledger.note(load.ledger.committed, NOBODYS)


def ghost_transfer(load):
    load.ledger.refused.append(load.ledger.committed.pop())


def unsure(ledger, row):
    """Changes of a counter that may have come about or not."""
    return ledger.cut_off.get(row, 0) + sum(at == row for at, _ in ledger.not_told)


def lost_count(load):
    ledger = load.ledger
    ledger.counted[0] = ledger.counted.get(0, 0) + unsure(ledger, 0) + 1


def double_count(load):
    ledger = load.ledger
    ledger.counted[0] = ledger.counted.get(0, 0) - unsure(ledger, 0) - 1


def strange_error(load):
    load.ledger.error(1064)


def lost_write(load):
    registers = load.registers
    registers.tried[0] += 1
    registers.acknowledged[0] = registers.tried[0]


def stale_read(load):
    registers, begun = load.registers, time.monotonic()
    before = list(registers.acknowledged)
    registers.see(begun, before, [(0, before[0] - 1), *list(enumerate(before))[1:]], "a planted read")


def lost_append(load):
    begun = time.monotonic_ns()
    load.lists[0].history.append({"client": NOBODYS, "begun_ns": begun, "ended_ns": begun + 1, "outcome": "committed", "locks": True,
                                  "actions": [{"append": {"list": 0, "element": NOBODYS}}]})


def money(load):
    load.bank.note(load.bank.committed, (50, 1))


def half_a_bank(load):
    load.bank.note(load.bank.committed, (49, 0))


def strange_bank_error(load):
    load.bank.error(1064)


def lost_round(load):
    load.kept.add(NOBODYS)


# By name: what it does, and a word of what must be found.
PLANTS = {
    "lost transfer": (lost_transfer, "acknowledged transfers are lost"),
    "ghost transfer": (ghost_transfer, "refused transfers are there"),
    "lost count": (lost_count, "counter 0 is at"),
    "double count": (double_count, "counter 0 is at"),
    "strange error": (strange_error, "1064"),
    "lost write": (lost_write, "register 0 was"),
    "stale read": (stale_read, "a planted read"),
    "lost append": (lost_append, "the history has anomalies"),
}
# Only the campaign has a bank, and rows of each round on disk.
OF_THE_CAMPAIGN = {
    **PLANTS,
    "money": (money, "accounts"),
    "half a bank": (half_a_bank, "accounts"),
    "strange bank error": (strange_bank_error, "1064"),
    "lost round": (lost_round, "were on disk, and are gone"),
}
