"""The evidence store: one SQLite file in which the evidence of audits accumulates from session to session.

A *subject* here is a mechanism's fingerprint together with a claim. A *session* is one audit of it: it draws from a
stream that no other session has, noted before the first draw (so that a session that was broken off is seen), and
multiplies the wealth of each pair's bets. Each subject has one error rate for its whole life, all sessions together;
each pair has a share of it, fixed when it first came in: `share_of`.

Everything is written in transactions: a kill, a full disk or another writer leaves the file as it was after some round.
The file has one writer at a time and waits for the other; two sessions of one subject that run beside each other are
joined round by round, see `Store.save`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.environment import __version__
from dpaudit.errors import DpauditError, UsageError
from dpaudit.inference.saved import FORMAT, State, StateError, at_level, joined
from dpaudit.running.journal import open_private
from dpaudit.running.plain_data import inflated
from dpaudit.running.streams import EVIDENCE
from dpaudit.running.tables import Row, Tables, layout_of, upsert

APPLICATION = 0x64704576  # "dpEv": what tells the file from other SQLite files
LAYOUT = 1  # of the tables: a store of another one is refused
MAX_VALUE = 128 << 20  # bytes of one value, or row
PATIENCE = 60.0  # seconds to wait for another writer
FIRST_SHARE = 0.95  # of a subject's error rate, for the pairs of its first session
FAILED = "failed"  # of a session in which a call raised for a whole batch
FORGOTTEN = -1  # the life of sessions that were forgotten in a store that was merged
TABLES = Tables("""
create table subjects (
    id integer primary key, digest text not null unique, fingerprint text not null, name text not null, target text,
    claim text not null, confidence real not null, life integer not null, created text not null);
create table nights (
    id integer primary key, subject integer not null references subjects, life integer not null, seed text not null,
    number integer not null, started text not null, ended text, status text not null, samples integer not null,
    runs integer not null, version text not null, unique (subject, seed, number));
create table pairs (
    id integer primary key, subject integer not null references subjects, life integer not null, key text not null,
    name text not null, x text not null, x_prime text not null, parameter text not null, budget real not null,
    generation integer not null, level real not null, labelled integer not null, log_wealth real, lower real not null,
    violated integer not null, revision integer not null, state blob not null, digest text not null,
    unique (subject, life, key));
create table inputs (
    subject integer not null references subjects, life integer not null, key text not null, count integer not null,
    outputs blob not null, digest text not null, primary key (subject, life, key));
create table looks (
    pair integer not null references pairs, night integer not null references nights, labelled integer not null,
    log_wealth real, lower real not null, primary key (pair, night));
""")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Identity:
    """Subject of evidence: a mechanism's fingerprint, with its name and target, and a claim."""

    fingerprint: str
    name: str
    target: str | None
    claim: str

    @property
    def digest(self) -> str:
        """64 hexadecimal digits; the name and the target do not count."""
        return hashlib.sha256(f"{self.fingerprint}\n{self.claim}".encode("utf-8", "surrogatepass")).hexdigest()


@dataclasses.dataclass(frozen=True)
class Session:
    """One audit in a store: its subject's row, its own, the subject's life, the seed and number of its stream."""

    subject: int
    id: int
    life: int
    seed: int
    number: int
    digest: str
    ordinal: int

    @property
    def origin(self) -> str:
        """Names its streams."""
        return f"{self.seed}/{self.number}"

    @property
    def stream_seed(self) -> int:
        """The seed of its streams, 128 bits from the seed of the call, the subject, and the number of the session."""
        words = [int(self.digest[start : start + 8], 16) for start in range(0, 64, 8)]
        sequence = np.random.SeedSequence(self.seed, spawn_key=(EVIDENCE, *words, self.number))
        return int.from_bytes(sequence.generate_state(4, np.uint32).tobytes(), "little")


@dataclasses.dataclass(frozen=True)
class SavedPair:
    """Stored evidence on one pair. `revision` counts the writes."""

    key: str
    name: str
    x: str
    x_prime: str
    parameter: str
    budget: float
    generation: int
    level: float
    state: State
    revision: int = 0

    @property
    def labelled(self) -> int:
        """Labelled draws that were bet on."""
        return int(self.state["labelled"])

    @property
    def log_wealth(self) -> float | None:
        """Log e-value against the budget; None where it was not known when it was saved."""
        use = self.state["uses"][0]
        return None if use["now"] is None else float(use["now"]) + math.log(float(use.get("share", 1.0)))

    @property
    def lower(self) -> float:
        """The lower bound on the claim's parameter."""
        return float(self.state["uses"][0]["lower"])

    @property
    def is_violated(self) -> bool:
        return bool(self.state["violated"])


ABOUT_PAIR = [field.name for field in dataclasses.fields(SavedPair) if field.name != "state"]


def share_of(generation: int) -> float:
    """The share of a subject's error rate for the pairs that came in together, as the `generation`-th of its life.

    The pairs of the first session have 95%; those that come later share what is left, in a series that sums to 5%.

    Examples
    --------
    >>> share_of(0), round(share_of(1), 4), sum(share_of(g) for g in range(10_000)) <= 1.0
    (0.95, 0.0304, True)
    """
    return FIRST_SHARE if generation == 0 else (1.0 - FIRST_SHARE) * 6.0 / (math.pi * generation) ** 2


class StoreError(DpauditError):
    """The store cannot be read or written (exit status 3); what was committed before stays."""


class Store:
    """An evidence store. Open it with `Store.at(path)`, and close it; or use it in a `with` statement.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with Store.at(pathlib.Path(tempfile.mkdtemp()) / "evidence.db") as store:
    ...     store.subjects()
    []
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self._connection = path, connection

    @classmethod
    def at(cls, path: str | os.PathLike[str], create: bool = True) -> Store:
        """Open the store at `path`; make it where there is none, if `create`.

        `UsageError` if it is no store, one of another version, or not there.
        """
        place = Path(path)
        if not place.exists() and not create:
            raise UsageError(f"store must be a file that is there, got {str(place)!r}.")
        if (place.exists() and not place.is_file()) or not place.parent.is_dir():
            raise UsageError(f"store must be a file in a folder that is there, got {str(place)!r}.")
        try:
            if not place.exists():  # records may be in it: nobody else may read it (sqlite gives its journals its mode)
                open_private(place).close()
            connection = sqlite3.connect(place, timeout=PATIENCE, isolation_level=None)
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
            connection.execute("pragma trusted_schema = off")  # functions of a file's own SQL
        except (sqlite3.Error, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"store must be a file that can be opened, got {str(place)!r} ({reason}).") from error
        store = cls(place, connection)
        try:
            store._prepare()
        except BaseException:
            connection.close()
            raise
        return store

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _prepare(self) -> None:
        with self.transaction() as execute:
            application = execute("pragma application_id").fetchone()[0]
            layout = execute("pragma user_version").fetchone()[0]
            tables = execute("select count(*) from sqlite_master").fetchone()[0]
            if tables == 0 and application == 0:
                TABLES.make(execute)
                execute(f"pragma application_id = {APPLICATION}")
                execute(f"pragma user_version = {LAYOUT}")
            elif application != APPLICATION:
                raise UsageError(f"store must be a store of evidence, got another database at {str(self.path)!r}.")
            elif layout != LAYOUT:
                raise UsageError(
                    f"store must have layout {LAYOUT}, got {layout} at {str(self.path)!r}. Use the version of dpaudit "
                    "that made it, or another file."
                )
            else:
                self._check_layout(execute)

    def _check_layout(self, execute: Any) -> None:
        """`UsageError` if our tables have other SQL than ours, or there is any that runs by itself: a store is data."""
        found, ours = layout_of(execute), TABLES.layout
        looked_at = [name for name, (kind, table, _) in found.items() if kind in ("trigger", "view") or table in ours]
        if wrong := [name for name in [*ours, *looked_at] if found.get(name) != ours.get(name)]:
            raise UsageError(
                f"store must have the tables of layout {LAYOUT} to the letter, got another {wrong[0]!r:.80} at "
                f"{str(self.path)!r}."
            )

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Any]:
        """One transaction of a writer: all of it or nothing."""
        try:
            self._connection.execute("begin immediate")
            try:
                yield self._connection.execute
                self._connection.execute("commit")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("rollback")
                raise
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # a damaged file may have texts that are none
            raise self._said(error) from error

    def _said(self, error: Exception) -> DpauditError:
        place = repr(str(self.path))
        if "full" in str(error) or "disk I/O" in str(error):
            return StoreError(f"store must have room to grow, got {error} at {place}. What was saved before is intact.")
        written = "store must be a file that can be written"
        if "readonly" in str(error):  # SQLite makes a journal beside the file
            where = place if not os.access(self.path, os.W_OK) else f"the folder of {place}"
            return UsageError(f"{written}, in a folder that can be, got {where}, which cannot.")
        if "locked" in str(error):
            return StoreError(f"{written}, got {error} at {place}.")
        return UsageError(f"store must be an intact store of evidence, got {error} at {place}.")

    # --- an audit ---

    def begin(self, identity: Identity, confidence: float, seed: int, samples: int) -> Session:
        """Note a new session, before its first draw: its stream is used up, whatever comes of it.

        `UsageError` if the confidence is not that of the subject's first session, or a session failed.
        """
        with self.transaction() as execute:
            about = {name: as_text(value) for name, value in dataclasses.asdict(identity).items() if value is not None}
            row: Row = {"digest": identity.digest, **about, "confidence": confidence, "life": 0, "created": now()}
            upsert(execute, "subjects", row, keeps=True)
            change = "update subjects set name = ?, target = coalesce(?, target) where digest = ?"
            execute(change, (about["name"], about.get("target"), identity.digest))
            (row,) = TABLES.rows(execute, "subjects", digest=identity.digest)
            if row["confidence"] != confidence:
                raise UsageError(
                    f"confidence must be {row['confidence']:g}, as on the first session of this evidence, got "
                    f"{confidence:g}. Audit with that, or keep another store."
                )
            subject, life = row["id"], row["life"]
            if (failed := _failed_session(execute, subject, life)) is not None:
                raise UsageError(
                    f"mechanism must not have raised for a whole batch, got {identity.name!r}, which did in session "
                    f"{failed}. Let it return one output a call, or forget its evidence and begin anew."
                )
            self._check_format(execute, row)
            earlier = TABLES.rows(execute, "nights", subject=subject, seed=str(seed))
            number = max((session["number"] for session in earlier), default=-1) + 1
            session = {"subject": subject, "life": life, "seed": str(seed), "number": number, "started": now()}
            first = {"status": "started", "samples": samples, "runs": 0, "version": __version__}
            id_ = upsert(execute, "nights", {**session, **first})
            ordinal = len(TABLES.rows(execute, "nights", subject=subject, life=life))
        return Session(subject, id_, life, seed, number, identity.digest, ordinal)

    def pairs_of(self, session: Session) -> dict[str, SavedPair]:
        """The pairs of the session's subject, by their keys."""
        with self.transaction() as execute:
            return self._pairs_at(execute, session.subject, session.life)

    def outputs_of(self, session: Session, key: str) -> bytes | None:
        """The outputs of an input that fits may see."""
        with self.transaction() as execute:
            found = self._inputs_at(execute, session.subject, session.life, key=key)
        return found[0]["outputs"] if found else None

    def admit(self, session: Session, new: Sequence[SavedPair]) -> dict[str, SavedPair]:
        """Let new pairs in, none of whose draws was counted yet; gives all of them back as they stand in the store.

        Where others came in since the generation was asked for, the levels are those of a later generation. A pair that
        another session let in since stands as that session has it.
        """
        with self.transaction() as execute:
            self._check_may_add(execute, session)
            known = self._pairs_at(execute, session.subject, session.life)
            generation = next_generation(known)
            for pair in new:
                if pair.key in known:
                    continue
                if pair.generation != generation:
                    level = pair.level * share_of(generation) / share_of(pair.generation)
                    state = {**pair.state, "level": level}
                    pair = dataclasses.replace(pair, generation=generation, level=level, state=state)
                _write(execute, session.subject, session.life, pair)
            there = self._pairs_at(execute, session.subject, session.life)
        return {pair.key: there[pair.key] for pair in new}

    def save(
        self,
        session: Session,
        known: Mapping[str, SavedPair],
        state_of: Callable[[str, SavedPair | None], State | None],
        outputs: Mapping[str, tuple[int, bytes]],
        runs: int,
    ) -> dict[str, SavedPair]:
        """Save one round in one transaction: gives the pairs that were saved, as they stand in the store.

        Validity: the verdicts are those of the one product that is in the store. Where another session of the subject
        has written since, this one joins that to its own and looks again; what it saw alone does not count.

        `known` is what this session knows of the store, by keys. `state_of` gives the state to be saved, or None for
        none, of a key and the pair that another session has written, or None for nothing new. `outputs` are those of
        inputs, by keys, with their counts; `runs` are all of this session.
        """
        with self.transaction() as execute:
            self._check_may_add(execute, session)
            saved: dict[str, SavedPair] = {}
            for key, before in known.items():
                query = "select id, revision from pairs where subject = ? and life = ? and key = ?"
                row, revision = execute(query, (session.subject, session.life, key)).fetchone()
                is_same = revision == before.revision
                there = before if is_same else self._pairs_at(execute, session.subject, session.life, key=key)[key]
                state = state_of(key, None if is_same else there)
                if state is None:
                    continue
                pair = saved[key] = dataclasses.replace(there, state=state, revision=there.revision + 1)
                _write(execute, session.subject, session.life, pair)
                look = {"labelled": pair.labelled, "log_wealth": _not_nan(pair.log_wealth), "lower": pair.lower}
                upsert(execute, "looks", {"pair": row, "night": session.id, **look})
            for key, (count, data) in outputs.items():
                about = {"subject": session.subject, "life": session.life, "key": key, "count": count}
                upsert(execute, "inputs", {**about, "outputs": data, "digest": _digest(data)})
            execute("update nights set runs = ? where id = ?", (runs, session.id))
        return saved

    def end(self, session: Session, status: str) -> None:
        """Note how a session ended: "finished", or `FAILED`."""
        with self.transaction() as execute:
            execute("update nights set ended = ?, status = ? where id = ?", (now(), status, session.id))

    # --- what is there ---

    def subjects(self) -> list[Row]:
        """Every subject with its sessions, and what is known of its pairs."""
        with self.transaction() as execute:
            found = TABLES.rows(execute, "subjects")
            for subject in found:
                subject["nights"] = TABLES.rows(execute, "nights", subject=subject["id"])
                subject["pairs"] = list(self._pairs_at(execute, subject["id"], subject["life"]).values())
                query = "select key, seed, number, started, looks.* from looks join pairs on pair = pairs.id "
                query += "join nights on night = nights.id where pairs.subject = ? and pairs.life = ? order by night"
                subject["looks"] = TABLES.read(execute(query, (subject["id"], subject["life"])))
        return found

    def forget(self, digests: Sequence[str]) -> int:
        """Forget the evidence of these subjects; the number of pairs that were forgotten.

        Sessions stay on record, so that no stream is ever drawn again. Later evidence of a subject that was forgotten
        has an error rate of its own.
        """
        forgotten = 0
        with self.transaction() as execute:
            for subject in (row for digest in digests for row in TABLES.rows(execute, "subjects", digest=digest)):
                row = subject["id"], subject["life"]
                query = "delete from looks where pair in (select id from pairs where subject = ? and life = ?)"
                execute(query, row)
                forgotten += execute("delete from pairs where subject = ? and life = ?", row).rowcount
                execute("delete from inputs where subject = ? and life = ?", row)
                execute("update subjects set life = life + 1 where id = ?", row[:1])
        return forgotten

    def merge(self, other: Store) -> tuple[int, int]:
        """Take over the evidence of another store: the number of sessions and of pairs that came.

        Subjects, sessions and pairs are added; where both have bet on a pair, on their own streams, wealth multiplies.

        Validity: the levels stay those of this store, whose error rate is the one that goes on. Pairs that are new here
        share evenly the next generation's share: what they have won elsewhere plays no part in it. Their bounds, made
        at levels of another store, begin anew. Which stores are taken over must not depend on what they hold: of
        several the most telling ones would be a selection, whose product is no e-value.

        `UsageError` if the two have a stream of a subject in common, or different confidences for one, or a call raised
        for a whole batch in a session of a subject of both: nothing is taken over.
        """
        theirs = other.subjects()
        with other.transaction() as execute:
            for subject in theirs:
                other._check_format(execute, subject)
                subject["inputs"] = other._inputs_at(execute, subject["id"], subject["life"])
        with self.transaction() as execute:
            for subject in theirs:
                upsert(execute, "subjects", {**TABLES.own(subject, "subjects"), "life": 0}, keeps=True)
                (own,) = TABLES.rows(execute, "subjects", digest=subject["digest"])
                here = {"subject": own["id"], "life": own["life"]}
                if own["confidence"] != subject["confidence"]:
                    raise UsageError(
                        f"confidences must be the same in both stores, got {own['confidence']:g} and "
                        f"{subject['confidence']:g} for {subject['name']!r}, {subject['claim']}."
                    )
                self._check_format(execute, own)
                _check_goes_on(execute, own, subject)
                for session in subject["nights"]:
                    of_life = own["life"] if session["life"] == subject["life"] else FORGOTTEN
                    try:
                        upsert(execute, "nights", {**TABLES.own(session, "nights"), **here, "life": of_life}, adds=True)
                    except sqlite3.IntegrityError as error:
                        raise UsageError(
                            f"stores must have no stream in common, got {session['seed']}/{session['number']} of "
                            f"{subject['name']!r}, {subject['claim']}, in both. Its draws would count twice."
                        ) from error
                known = self._pairs_at(execute, **here)
                new = sum(pair.key not in known for pair in subject["pairs"])
                generation = next_generation(known)
                level = (1.0 - subject["confidence"]) * share_of(generation) / max(new, 1)
                for pair in subject["pairs"]:
                    if pair.key in known:
                        pair = _joined_pair(known[pair.key], pair)
                    elif known:
                        state = at_level(pair.state, level, keeps_bounds=False)
                        pair = dataclasses.replace(pair, generation=generation, level=level, state=state)
                    # else the whole subject is new here, and its levels are those that it had
                    _write(execute, own["id"], own["life"], pair)
                for row in subject["inputs"]:
                    upsert(execute, "inputs", {**row, **here}, keeps=True)
        return sum(len(one["nights"]) for one in theirs), sum(len(one["pairs"]) for one in theirs)

    # --- rows ---

    def _check_format(self, execute: Any, subject: Row) -> None:
        """Refuse to go on from evidence of an earlier engine: all pairs of a life have one format."""
        row, life = subject["id"], subject["life"]
        if all(pair.state.get("format") == FORMAT for pair in self._pairs_at(execute, row, life).values()):
            return
        sessions = TABLES.rows(execute, "nights", subject=row, life=life)
        by = sessions[-1]["version"] if sessions else "of another version"
        raise UsageError(
            f"store must have evidence that this version goes on from, got that of dpaudit {by} for "
            f"{subject['name']!r} at {str(self.path)!r}. It can still be listed and exported; begin anew in another "
            "file, forget it with `dpaudit evidence forget`, or go on with that version."
        )

    def _check_may_add(self, execute: Any, session: Session) -> None:
        (subject,) = TABLES.rows(execute, "subjects", id=session.subject)
        if subject["life"] != session.life:
            raise StoreError("evidence must not be forgotten while an audit adds to it, got a new life of its subject.")
        # As in `begin`; also of a session that was under way when the batch of another one raised.
        failed = _failed_session(execute, session.subject, session.life, besides=session.id)
        if failed is not None:
            raise StoreError(
                f"mechanism must not raise for a whole batch while an audit adds evidence, got session {failed}, in "
                "which it did. Let it return one output a call, or forget its evidence and begin anew."
            )

    def _pairs_at(self, execute: Any, subject: int, life: int, **which: Any) -> dict[str, SavedPair]:
        """The pairs of a life, by their keys."""
        found = {}
        for row in TABLES.rows(execute, "pairs", subject=subject, life=life, **which):
            data = self._checked(row["state"], row["digest"], f"the state of pair {row['name']}")
            try:
                state = json.loads(inflated(data))
                if not isinstance(state, dict):
                    raise ValueError("it is no object")
            except (ValueError, RecursionError) as error:
                raise self._said(sqlite3.DatabaseError(f"a state that cannot be read: {error}")) from error
            found[row["key"]] = SavedPair(**{name: row[name] for name in ABOUT_PAIR}, state=state)
        return found

    def _inputs_at(self, execute: Any, subject: int, life: int, **which: Any) -> list[Row]:
        """The outputs that are kept of inputs."""
        found = TABLES.rows(execute, "inputs", subject=subject, life=life, **which)
        for row in found:
            self._checked(row["outputs"], row["digest"], f"the outputs of input {row['key'][:12]}")
        return found

    def _checked(self, blob: bytes, digest: str, what: str) -> bytes:
        if _digest(blob) != digest:
            raise self._said(sqlite3.DatabaseError(f"{what} that is damaged"))
        return blob


def _write(execute: Any, subject: int, life: int, pair: SavedPair) -> None:
    blob = zlib.compress(json.dumps(pair.state).encode(), 6)
    row = {
        **{name: getattr(pair, name) for name in ABOUT_PAIR},
        "labelled": pair.labelled,
        "log_wealth": _not_nan(pair.log_wealth),
        "lower": pair.lower,
        "violated": int(pair.is_violated),
        "state": blob,
        "digest": _digest(blob),
    }
    upsert(execute, "pairs", {"subject": subject, "life": life, **row}, keeps=True)
    where = "where subject = ? and life = ? and key = ?"
    changed = ", ".join(f"{name} = ?" for name in row)
    execute(f"update pairs set {changed} {where}", (*row.values(), subject, life, pair.key))


def _failed_session(execute: Any, subject: int, life: int, besides: int | None = None) -> int | None:
    """First session of this life, from 1 on, with a call that raised for a whole batch, none of this row; or None.

    Validity: the batch was dropped for what it would have shown, so no product goes on behind it.
    """
    sessions = enumerate(TABLES.rows(execute, "nights", subject=subject, life=life), 1)
    return next((k for k, session in sessions if session["status"] == FAILED and session["id"] != besides), None)


def _check_goes_on(execute: Any, own: Row, subject: Row) -> None:
    """Refuse a product with evidence that ends with a batch that raised; alone it is taken over as it is."""
    here = [session["status"] for session in TABLES.rows(execute, "nights", subject=own["id"], life=own["life"])]
    there = [session["status"] for session in subject["nights"] if session["life"] == subject["life"]]
    for which, sessions in (("first", here), ("second", there)):
        if here and there and FAILED in sessions:
            raise UsageError(
                f"mechanism must not have raised for a whole batch in either store, got {subject['name']!r}, which did "
                f"in session {sessions.index(FAILED) + 1} of the {which} one. Forget that evidence or merge without it."
            )


def _joined_pair(own: SavedPair, other: SavedPair) -> SavedPair:
    """Joined evidence of two stores on one pair, at the level of its own."""
    try:
        state = at_level(joined(own.state, other.state), own.level, keeps_bounds=True)
    except StateError as error:
        raise UsageError(f"states must be of one claim in both stores, got others ({error}).") from error
    return dataclasses.replace(own, state=state, revision=own.revision + 1)


def next_generation(pairs: Mapping[str, SavedPair]) -> int:
    """The generation of pairs that come in behind these."""
    return 1 + max((pair.generation for pair in pairs.values()), default=-1)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _not_nan(value: float | None) -> float | None:
    """For a column: SQLite has infinities, but no NaN."""
    return None if value is None or math.isnan(value) else value


def as_text(value: str) -> str:
    """Text that UTF-8 can hold."""
    return value.encode("utf-8", "backslashreplace").decode()


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
