"""Ledgers: what papers claim, one entry a claim, with a verdict, its evidence and the tests that check it.

A package states its ledgers through the entry-point group `dpaudit.ledger`; `dpaudit claims` shows all of them.
"""

from dpaudit.ledgers.entries import GROUP, Entry, Ledger, load_ledgers, read_ledger
from dpaudit.ledgers.marks import Mark, collect_marks

__all__ = ["GROUP", "Entry", "Ledger", "Mark", "collect_marks", "load_ledgers", "read_ledger"]
