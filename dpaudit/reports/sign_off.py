"""The decisions of a person about a report: which mechanism is accepted or rejected, when, and under which conditions.

A TOML file that `dpaudit report --sign-off` reads; an unknown key is an error that names its place:

    name = "A. Person"
    role = "Data protection officer"
    date = 2026-11-25
    results = "9f2c…"                       # the digest that the sign-off block prints: binds it to these results
    decision = "accept"                     # or "accept with conditions", or "reject"

    [mechanisms.CityLaplace]                # a decision of its own; that above is of all others
    decision = "accept with conditions"
    conditions = "Release 2.1 alone."       # with that decision only

Without a decision at the top, each mechanism of the report needs its own.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from dpaudit.errors import UsageError
from dpaudit.files import read_toml
from dpaudit.reports.deployment import StrictTable
from dpaudit.reports.dossier import Decision, Dossier, SignOff

DECISIONS = ("accept", "accept with conditions", "reject")
KEYS = ("name", "role", "date", "decision", "conditions", "results", "mechanisms")
DECISION_KEYS = ("decision", "conditions")  # of one mechanism


def results_digest(dossier: Dossier) -> str:
    """SHA-256 over the digests of the results, whatever their order: what a sign-off is bound to."""
    digests = [source.digest for source in dossier.sources]
    digests += [one.digest for one in dossier.judged]
    text = "\n".join(sorted(digests))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def read_sign_off(path: str | os.PathLike[str], dossier: Dossier) -> SignOff:
    """Read a decision about the results of a dossier.

    `UsageError` if the file cannot be read, a key is unknown or missing or of the wrong type, the conditions do not fit
    a decision, a mechanism is not in the report or has no decision, or the file was made on other results.
    """
    file = Path(path)
    where = f" at {str(file)!r}"
    table = StrictTable(read_toml("sign_off", file), KEYS, where)
    stated = table.table("mechanisms", dossier.subjects)
    mechanisms = tuple(_decision(name, stated.table(name, DECISION_KEYS)) for name in stated.values)
    decided = {one.mechanism for one in mechanisms}
    left = next((name for name in dossier.subjects if name not in decided), None)
    whole = Decision("", "")
    if "decision" in table or "conditions" in table or not mechanisms:
        whole = _decision("", table)
    elif left is not None:
        raise UsageError(f"decision must be stated for every mechanism, got none for {left!r}{where}.")
    results, here = table.text("results"), results_digest(dossier)
    if results not in ("", here):
        raise UsageError(f"results must be the digest of these results, {here}, got {results[:64]!r}{where}.")
    name, role = table.text("name", is_needed=True), table.text("role", is_needed=True)
    return SignOff(name, role, table.date("date"), whole.decision, whole.conditions, results, mechanisms)


def _decision(mechanism: str, table: StrictTable) -> Decision:
    """The decision that a table states, with its conditions where it needs some."""
    decision, conditions = table.one_of("decision", DECISIONS), table.text("conditions")
    if bool(conditions) != (decision == "accept with conditions"):
        must = "stated" if decision == "accept with conditions" else "left out"
        table.refuse("conditions", f"be {must} to {decision}", conditions)
    return Decision(mechanism, decision, conditions)
