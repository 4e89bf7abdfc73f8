"""Two evidence stores as one: nights that have no stream in common, and the product of what they won."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Mapping
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.inference.saved import StateError, at_level, joined
from dpaudit.running.store import NIGHT_COLUMNS, Store
from dpaudit.running.store_rows import FAILED, failed_night, share_of

FORGOTTEN = -1  # the life of nights that were forgotten in the other store


def merge(store: Store, other: Store) -> tuple[int, int]:
    """Take over the evidence of another store: the number of nights and of pairs that came.

    Subjects, nights and pairs are added; where both have bet on a pair, on streams of their own, wealth multiplies.

    Validity: the levels stay those of this store, whose error rate is the one that goes on. Pairs that are new here
    share evenly the next generation's share: what they have won elsewhere plays no part in it. Their bounds, made at
    levels of another store, begin anew.

    Raises
    ------
    UsageError
        If the two have a stream of a subject in common, or different confidences for one, or a call raised for a whole
        batch in a night of a subject of both: nothing is taken over.
    """
    theirs, kept = other.subjects(), other.outputs()
    with other.transaction() as execute:
        for subject in theirs:
            other.check_format(execute, subject["id"], subject["life"], subject["name"])
    nights = pairs = 0
    with store.transaction() as execute:
        for subject in theirs:
            row, life = _place(execute, subject)
            store.check_format(execute, row, life, subject["name"])
            _check_goes_on(execute, row, life, subject)
            _add_nights(execute, row, life, subject)
            _add_pairs(store, execute, row, life, subject)
            nights, pairs = nights + len(subject["nights"]), pairs + len(subject["pairs"])
            for key, count, data, digest in kept[subject["id"]]:
                columns = "subject, life, key, count, outputs, digest"
                values = (row, life, key, count, data, digest)
                execute(f"insert or ignore into inputs ({columns}) values (?, ?, ?, ?, ?, ?)", values)
    return nights, pairs


def _place(execute: Any, subject: Mapping[str, Any]) -> tuple[int, int]:
    """Row and life of a subject of another store in this one; a new row where it is not there."""
    query = "select id, life, confidence from subjects where digest = ?"
    found = execute(query, (subject["digest"],)).fetchone()
    if found is None:
        columns = ("digest", "fingerprint", "name", "target", "claim", "confidence", "created")
        execute(
            f"insert into subjects ({', '.join(columns)}, life) values (?, ?, ?, ?, ?, ?, ?, 0)",
            tuple(subject[column] for column in columns),
        )
        found = execute(query, (subject["digest"],)).fetchone()
    row, life, confidence = found
    if confidence != subject["confidence"]:
        raise UsageError(
            f"confidences must be the same in both stores, got {confidence:g} and {subject['confidence']:g} for "
            f"{subject['name']!r}, {subject['claim']}."
        )
    return int(row), int(life)


def _check_goes_on(execute: Any, row: int, life: int, subject: Mapping[str, Any]) -> None:
    """Refuse a product with evidence that ends with a batch that raised; alone it is taken over as it is."""
    if execute("select 1 from nights where subject = ? and life = ?", (row, life)).fetchone() is None:
        return
    of_life = [night for night in subject["nights"] if night["life"] == subject["life"]]
    failed = [number for number, night in enumerate(of_life, 1) if night["status"] == FAILED]
    own = failed_night(execute, row, life)
    if of_life and (failed or own is not None):
        raise UsageError(
            f"mechanism must not have raised for a whole batch in either store, got {subject['name']!r}, which did in "
            f"night {own if own is not None else failed[0]} of the {'first' if own is not None else 'second'} one. "
            "Forget that evidence, or merge without it."
        )


def _add_nights(execute: Any, row: int, life: int, subject: Mapping[str, Any]) -> None:
    """The nights of another store's subject, under this one's life; and those that were forgotten there."""
    for night in subject["nights"]:
        of_life = life if night["life"] == subject["life"] else FORGOTTEN
        try:
            execute(
                f"insert into nights (subject, {', '.join(NIGHT_COLUMNS)}) values (?{', ?' * len(NIGHT_COLUMNS)})",
                (row, *({**night, "life": of_life}[name] for name in NIGHT_COLUMNS)),
            )
        except sqlite3.IntegrityError as error:
            raise UsageError(
                f"stores must have no stream in common, got {night['seed']}/{night['number']} of "
                f"{subject['name']!r}, {subject['claim']}, in both. Its draws would count twice."
            ) from error


def _add_pairs(store: Store, execute: Any, row: int, life: int, subject: Mapping[str, Any]) -> None:
    known = store.pairs_at(execute, row, life)
    generation = 1 + max((pair.generation for pair in known.values()), default=-1)
    new = sum(pair.key not in known for pair in subject["pairs"])
    for pair in subject["pairs"]:
        if pair.key in known:
            own = known[pair.key]
            try:
                state = joined(own.state, pair.state)
            except StateError as error:
                raise UsageError(f"states must be of one claim in both stores, got others ({error}).") from error
            state = at_level(state, own.level, keeps_bounds=True)
            pair = dataclasses.replace(own, state=state, revision=own.revision + 1)
        elif known:
            level = (1.0 - subject["confidence"]) * share_of(generation) / new
            state = at_level(pair.state, level, keeps_bounds=False)
            pair = dataclasses.replace(pair, generation=generation, level=level, state=state)
        # else the whole subject is new here, and its levels are those that it had
        store.write(execute, row, life, pair)
