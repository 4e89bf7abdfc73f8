"""The evidence store: one SQLite file in which the evidence of audits accumulates from night to night.

A *subject* here is a mechanism's fingerprint together with a claim. A *night* is one audit of it: it draws from a
stream that no other night has, noted before the first draw (so that a night that was broken off is seen), and
multiplies the wealth of each pair's bets. Each subject has one error rate for its whole life, all nights together; each
pair has a share of it, fixed when it first came in: `share_of`.

Everything is written in transactions: a kill, a full disk or another writer leaves the file as it was after some round.
The file has one writer at a time and waits for the other; two nights of one subject that run beside each other are
joined round by round, see `Store.save`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpaudit.environment import __version__
from dpaudit.errors import DpauditError, UsageError
from dpaudit.inference.saved import FORMAT, State
from dpaudit.running.journal import open_private
from dpaudit.running.store_rows import Identity, Night, SavedPair, failed_night, share_of

APPLICATION = 0x64704576  # "dpEv": what tells the file from other SQLite files
LAYOUT = 1  # of the tables: a store of another one is refused
PATIENCE = 60.0  # seconds to wait for another writer
MOST_STATE = 1 << 26  # bytes of the state of a pair, unpacked: more is no state of ours
TABLES = """
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
"""


# The columns of each table, in their order: what stands before the first blank of each part, but for constraints.
COLUMNS = {
    statement.split("(", 1)[0].split()[-1]: [
        part.split()[0]
        for part in re.sub(r"\([^()]*\)", "", statement.split("(", 1)[1].rsplit(")", 1)[0]).split(",")
        if part.split()[0] not in ("unique", "primary")
    ]
    for statement in TABLES.split(";")
    if statement.strip()
}
NIGHT_COLUMNS = ("seed", "number", "life", "started", "ended", "status", "samples", "runs", "version")
LOOK_COLUMNS = ("key", "seed", "number", "started", "labelled", "log_wealth", "lower")
ABOUT_PAIR = ("name", "x", "x_prime", "parameter", "budget", "generation", "level")
PAIR_COLUMNS = (*ABOUT_PAIR, "labelled", "log_wealth", "lower", "violated", "revision", "state", "digest")


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

        Raises
        ------
        UsageError
            If it is no store, one of a later version, or not there.
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
        except (sqlite3.Error, OSError) as error:
            raise UsageError(f"store must be a file that can be opened, got {str(place)!r} ({error}).") from error
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
                for statement in TABLES.split(";"):
                    execute(statement)
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
        """`UsageError` if the file has other tables or columns than ours, or code of its own: a store is data."""
        found = {
            name: [column[1] for column in execute(f"pragma table_info({name})").fetchall()]
            for kind, name in execute("select type, name from sqlite_master").fetchall()
            if kind == "table" and name in COLUMNS
        }
        others = execute("select type, name from sqlite_master where type in ('trigger', 'view')").fetchall()
        if others:
            kind, name = others[0]
            raise UsageError(f"store must have no {kind}, got {name!r:.80} at {str(self.path)!r}.")
        if found != COLUMNS:
            wrong = next(name for name in COLUMNS if found.get(name) != COLUMNS[name])
            raise UsageError(
                f"store must have the columns of layout {LAYOUT}, got others in {wrong} at {str(self.path)!r}."
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
        if "locked" in str(error) or "readonly" in str(error):
            return StoreError(f"store must be a file that can be written, got {error} at {place}.")
        return UsageError(f"store must be an intact store of evidence, got {error} at {place}.")

    # --- an audit ---

    def begin(self, identity: Identity, confidence: float, seed: int, samples: int) -> Night:
        """Note a new night, before its first draw: its stream is used up, whatever comes of it.

        Raises
        ------
        UsageError
            If the confidence is not that of the subject's first night, or a night failed.
        """
        with self.transaction() as execute:
            name, target = as_text(identity.name), None if identity.target is None else as_text(identity.target)
            execute(
                "insert into subjects (digest, fingerprint, name, target, claim, confidence, life, created) "
                "values (?, ?, ?, ?, ?, ?, 0, ?) "
                "on conflict (digest) do update set name = excluded.name, target = coalesce(excluded.target, target)",
                (identity.digest, identity.fingerprint, name, target, as_text(identity.claim), confidence, _now()),
            )
            query = "select id, confidence, life from subjects where digest = ?"
            subject, first, life = execute(query, (identity.digest,)).fetchone()
            if first != confidence:
                raise UsageError(
                    f"confidence must be {first:g}, as on the first night of this evidence, got {confidence:g}. "
                    "Audit with that, or keep another store."
                )
            # Validity: the batch that raised was dropped for what it would have shown, so no product goes on behind it.
            if (failed := failed_night(execute, subject, life)) is not None:
                raise UsageError(
                    f"mechanism must not have raised for a whole batch, got {identity.name!r}, which did in night "
                    f"{failed}. Let it return one output a call, or forget its evidence and begin anew."
                )
            self.check_format(execute, subject, life, name)
            number = execute(
                "select coalesce(max(number) + 1, 0) from nights where subject = ? and seed = ?", (subject, str(seed))
            ).fetchone()[0]
            night = execute(
                "insert into nights (subject, life, seed, number, started, status, samples, runs, version) "
                "values (?, ?, ?, ?, ?, 'started', ?, 0, ?)",
                (subject, life, str(seed), number, _now(), samples, __version__),
            ).lastrowid
            query = "select count(*) from nights where subject = ? and life = ?"
            ordinal = execute(query, (subject, life)).fetchone()[0]
        return Night(subject, night, life, seed, number, identity.digest, ordinal)

    def pairs_of(self, night: Night) -> dict[str, SavedPair]:
        """The pairs of the night's subject, by their keys."""
        with self.transaction() as execute:
            return self.pairs_at(execute, night.subject, night.life)

    def outputs_of(self, night: Night, key: str) -> bytes | None:
        """The outputs of an input that fits may see."""
        with self.transaction() as execute:
            row = execute(
                "select outputs, digest from inputs where subject = ? and life = ? and key = ?",
                (night.subject, night.life, key),
            ).fetchone()
        if row is None:
            return None
        return self._checked(row[0], row[1], f"the outputs of input {key[:12]}")

    def next_generation(self, night: Night, execute: Any = None) -> int:
        """The generation of pairs that are new tonight, unless others come in first."""
        if execute is None:
            with self.transaction() as execute:
                return self.next_generation(night, execute)
        query = "select coalesce(max(generation) + 1, 0) from pairs where subject = ? and life = ?"
        return int(execute(query, (night.subject, night.life)).fetchone()[0])

    def admit(self, night: Night, new: Sequence[SavedPair]) -> dict[str, SavedPair]:
        """Let new pairs in, none of whose draws was counted yet; gives all of them back as they stand in the store.

        Where others came in since the generation was asked for, the levels are those of a later generation. A pair that
        another night let in since stands as that night has it.
        """
        with self.transaction() as execute:
            self._check_may_add(execute, night)
            known = self.pairs_at(execute, night.subject, night.life)
            generation = self.next_generation(night, execute)
            for pair in new:
                if pair.key in known:
                    continue
                if pair.generation != generation:
                    level = pair.level * share_of(generation) / share_of(pair.generation)
                    pair = dataclasses.replace(
                        pair, generation=generation, level=level, state={**pair.state, "level": level}
                    )
                self.write(execute, night.subject, night.life, pair)
            return {pair.key: self.pairs_at(execute, night.subject, night.life)[pair.key] for pair in new}

    def save(
        self,
        night: Night,
        known: Mapping[str, SavedPair],
        state_of: Callable[[str, SavedPair | None], State | None],
        outputs: Mapping[str, tuple[int, bytes]],
        runs: int,
    ) -> dict[str, SavedPair]:
        """Save one round in one transaction: gives the pairs that were saved, as they stand in the store.

        Validity: the verdicts are those of the one product that is in the store. Where another night of the subject has
        written since, this one joins that to its own and looks again (`state_of`); what it saw alone does not count.

        Parameters
        ----------
        known : mapping of key to SavedPair
            What this night knows of the store.
        state_of : callable
            (key, pair) to the state to be saved, where the pair is what another night has written, or None for nothing
            new; None where nothing must be saved.
        outputs : mapping of an input's key to (count, bytes)
            To be kept, where they have grown.
        runs : int
            Of the mechanism, this night.
        """
        with self.transaction() as execute:
            self._check_may_add(execute, night)
            saved: dict[str, SavedPair] = {}
            for key, before in known.items():
                query = "select revision from pairs where subject = ? and life = ? and key = ?"
                is_same = execute(query, (night.subject, night.life, key)).fetchone()[0] == before.revision
                there = before if is_same else self.pairs_at(execute, night.subject, night.life, key)[key]
                state = state_of(key, None if is_same else there)
                if state is None:
                    continue
                pair = saved[key] = dataclasses.replace(there, state=state, revision=there.revision + 1)
                row = self.write(execute, night.subject, night.life, pair)
                execute(
                    "insert or replace into looks (pair, night, labelled, log_wealth, lower) values (?, ?, ?, ?, ?)",
                    (row, night.id, pair.labelled, _not_nan(pair.log_wealth), pair.lower),
                )
            for key, (count, data) in outputs.items():
                execute(
                    "insert or replace into inputs (subject, life, key, count, outputs, digest) values (?,?,?,?,?,?)",
                    (night.subject, night.life, key, count, data, _digest(data)),
                )
            execute("update nights set runs = ? where id = ?", (runs, night.id))
        return saved

    def end(self, night: Night, status: str) -> None:
        """Note how a night ended: "finished", or `FAILED`."""
        with self.transaction() as execute:
            execute("update nights set ended = ?, status = ? where id = ?", (_now(), status, night.id))

    # --- what is there ---

    def subjects(self) -> list[dict[str, Any]]:
        """Every subject with the number of its nights and what is known of its pairs."""
        with self.transaction() as execute:
            columns = "id, digest, fingerprint, name, target, claim, confidence, life, created"
            rows = execute(f"select {columns} from subjects order by id").fetchall()
            found = [dict(zip(columns.split(", "), row, strict=True)) for row in rows]
            for subject in found:
                query = f"select {', '.join(NIGHT_COLUMNS)} from nights where subject = ? order by id"
                nights = execute(query, (subject["id"],)).fetchall()
                subject["nights"] = [dict(zip(NIGHT_COLUMNS, row, strict=True)) for row in nights]
                subject["pairs"] = list(self.pairs_at(execute, subject["id"], subject["life"]).values())
                query = (
                    "select pairs.key, nights.seed, nights.number, nights.started, looks.labelled, looks.log_wealth, "
                    "looks.lower from looks join pairs on looks.pair = pairs.id join nights on looks.night = nights.id "
                    "where pairs.subject = ? and pairs.life = ? order by nights.id"
                )
                rows = execute(query, (subject["id"], subject["life"])).fetchall()
                subject["looks"] = [dict(zip(LOOK_COLUMNS, row, strict=True)) for row in rows]
        return found

    def outputs(self) -> dict[int, list[tuple[str, int, bytes, str]]]:
        """The outputs that are kept of every subject, by its row: input's key, count, bytes and their digest."""
        with self.transaction() as execute:
            rows = execute(
                "select subjects.id, key, count, outputs, inputs.digest from subjects left join inputs "
                "on inputs.subject = subjects.id and inputs.life = subjects.life order by subjects.id, key"
            ).fetchall()
        kept: dict[int, list[tuple[str, int, bytes, str]]] = {row[0]: [] for row in rows}
        for row, key, count, data, digest in rows:
            if key is not None:
                kept[row].append((key, count, self._checked(data, digest, "outputs"), digest))
        return kept

    def forget(self, digests: Sequence[str]) -> int:
        """Forget the evidence of these subjects; the number of pairs that were forgotten.

        Nights stay on record, so that no stream is ever drawn again. What comes next is a new life, with an error rate
        of its own.
        """
        forgotten = 0
        with self.transaction() as execute:
            for digest in digests:
                row = execute("select id, life from subjects where digest = ?", (digest,)).fetchone()
                if row is None:
                    continue
                query = "delete from looks where pair in (select id from pairs where subject = ? and life = ?)"
                execute(query, row)
                forgotten += execute("delete from pairs where subject = ? and life = ?", row).rowcount
                execute("delete from inputs where subject = ? and life = ?", row)
                execute("update subjects set life = life + 1 where id = ?", (row[0],))
        return forgotten

    # --- rows ---

    def check_format(self, execute: Any, subject: int, life: int, name: str) -> None:
        """Refuse to go on from evidence of an earlier engine: all pairs of a life have one format.

        Raises
        ------
        UsageError
        """
        key = execute("select key from pairs where subject = ? and life = ? limit 1", (subject, life)).fetchone()
        if key is None or self.pairs_at(execute, subject, life, key[0])[key[0]].state.get("format") == FORMAT:
            return
        query = "select version from nights where subject = ? and life = ? order by id desc limit 1"
        version = execute(query, (subject, life)).fetchone()
        by = "of another version" if version is None else version[0]
        raise UsageError(
            f"store must have evidence that this version goes on from, got that of dpaudit {by} for {name!r} at "
            f"{str(self.path)!r}. It can still be listed and exported; begin anew in another file, forget it with "
            "`dpaudit evidence forget`, or go on with that version."
        )

    def _check_may_add(self, execute: Any, night: Night) -> None:
        life = execute("select life from subjects where id = ?", (night.subject,)).fetchone()[0]
        if life != night.life:
            raise StoreError("evidence must not be forgotten while an audit adds to it, got a new life of its subject.")
        # Validity: as in `begin`; also of a night that was under way when the batch of another one raised.
        failed = failed_night(execute, night.subject, night.life, besides=night.id)
        if failed is not None:
            raise StoreError(
                f"mechanism must not raise for a whole batch while an audit adds to its evidence, got night {failed}, "
                "in which it did. Let it return one output a call, or forget its evidence and begin anew."
            )

    def pairs_at(self, execute: Any, subject: int, life: int, key: str | None = None) -> dict[str, SavedPair]:
        columns = ", ".join(("key", *ABOUT_PAIR, "state", "digest", "revision"))
        query = f"select {columns} from pairs where subject = ? and life = ?"
        chosen = (query + " and key = ?", (subject, life, key)) if key else (query + " order by id", (subject, life))
        found = {}
        for row in execute(*chosen).fetchall():
            about, (blob, digest, revision) = dict(zip(("key", *ABOUT_PAIR), row, strict=False)), row[-3:]
            data = self._checked(blob, digest, f"the state of pair {about['name']}")
            try:
                inflater = zlib.decompressobj()
                text = inflater.decompress(data, MOST_STATE)
                state = None if inflater.unconsumed_tail else json.loads(text)
                if not isinstance(state, dict):
                    raise ValueError(f"it is no object of at most {MOST_STATE:,} bytes")
            except (zlib.error, ValueError, RecursionError) as error:
                raise self._said(sqlite3.DatabaseError(f"a state that cannot be read: {error}")) from error
            found[about["key"]] = SavedPair(**about, state=state, revision=revision)
        return found

    def write(self, execute: Any, subject: int, life: int, pair: SavedPair) -> int:
        blob = zlib.compress(json.dumps(pair.state).encode(), 6)
        values = (
            *(getattr(pair, name) for name in ABOUT_PAIR),
            pair.labelled,
            _not_nan(pair.log_wealth),
            pair.lower,
            int(pair.is_violated),
            pair.revision,
            blob,
            _digest(blob),
        )
        changed = ", ".join(f"{name} = excluded.{name}" for name in PAIR_COLUMNS)
        execute(
            f"insert into pairs (subject, life, key, {', '.join(PAIR_COLUMNS)}) "
            f"values (?, ?, ?{', ?' * len(PAIR_COLUMNS)}) on conflict (subject, life, key) do update set {changed}",
            (subject, life, pair.key, *values),
        )
        query = "select id from pairs where subject = ? and life = ? and key = ?"
        return int(execute(query, (subject, life, pair.key)).fetchone()[0])

    def _checked(self, blob: bytes, digest: str, what: str) -> bytes:
        if _digest(blob) != digest:
            raise self._said(sqlite3.DatabaseError(f"{what} that is damaged"))
        return blob


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _not_nan(value: float | None) -> float | None:
    """For a column: SQLite has infinities, but no NaN."""
    return None if value is None or math.isnan(value) else value


def as_text(value: str) -> str:
    """Text that UTF-8 can hold."""
    return value.encode("utf-8", "backslashreplace").decode()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
