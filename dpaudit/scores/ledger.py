"""Ledgers of scores in an evidence store: all scores of one name and claim, session behind session.

A ledger keeps the scores themselves. Each look audits all of them anew, by the design `sequential` and with the seed of
the first session. So nothing has to be carried over but the scores, and a look is what one audit of one long file is.

Validity. The sequential design holds at every look at a list that grows, with one error rate for all looks. It needs
that earlier scores stay as they were, that the seed stays, and that each score is counted once. So:

* Columns that begin with all that the ledger has are a file that has grown: what stands behind is new.
* Columns that the ledger begins with, or those of an earlier session (by their digest), add nothing.
* All others are a new session, added as a whole. It must be one that can be told from a copy: two scores of a
  side are equal with probability c, estimated from above by (1 + equal pairs) / (1 + pairs), and the product of c over
  all of the session's scores must be at most `BEYOND_DOUBT`. Otherwise it is refused *whether or not* it is like an
  earlier one. Sessions that were skipped for what they look like would leave a selection of all sessions behind; in one
  growing file every score comes in, also where what is new has the values, and so the digest, of an earlier session.
* A new session that repeats a block of earlier scores is refused. The block is so long that independent runs repeat one
  with probability at most `BEYOND_DOUBT`. A refusal says nothing of the claim.

A version of dpaudit that bets in another way would be a second test of the same scores. So the way of betting
(`bets.WAY`) is a part of what a ledger is of: another one begins a ledger of its own, with an error rate of its own.

That every session comes in, whatever its scores showed, only the user knows: it is an assumption of the result.

The two tables are made in the store with its first ledger. Stores of earlier versions can be gone on with.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpaudit.environment import __version__
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Claim, FloatArray
from dpaudit.running.store import FORGOTTEN, Store, as_text, now
from dpaudit.running.tables import Row, Tables, columns_of, upsert
from dpaudit.scores.bets import WAY
from dpaudit.scores.designs import BEYOND_DOUBT

TABLES = Tables("""
create table score_ledgers (
    id integer primary key, digest text not null unique, name text not null, claim text not null,
    parameter text not null, budget real not null, confidence real not null, seed text not null,
    life integer not null, created text not null);
create table score_nights (
    id integer primary key, ledger integer not null, life integer not null, digest text not null,
    started text not null, ended text, version text not null, count_in integer not null, count_out integer not null,
    scores_in blob not null, scores_out blob not null, log_wealth real, lower real, violated integer);
""")  # fmt: skip
TOLD_AT = (1e-2, 1e-5, 1e-8)  # deltas at which a claim's epsilon tells it from others of the same text


@dataclasses.dataclass(frozen=True)
class ScoreSession:
    """The scores that came in together, and what the audit of all scores up to them said, if there was one."""

    id: int
    life: int  # of the ledger that it belongs to
    digest: str
    started: str
    ended: str | None  # None until its scores were audited
    version: str
    count_in: int
    count_out: int
    scores_in: FloatArray  # empty where they were forgotten, as the other side
    scores_out: FloatArray
    log_wealth: float | None
    lower: float | None
    violated: bool | None


@dataclasses.dataclass(frozen=True)
class Ledger:
    """All scores of one name and claim; `sessions` has those that were forgotten too."""

    id: int
    digest: str
    name: str
    claim: str
    parameter: str
    budget: float
    confidence: float
    seed: int
    life: int
    created: str
    sessions: tuple[ScoreSession, ...]

    @property
    def current(self) -> tuple[ScoreSession, ...]:
        """The sessions that count."""
        return tuple(session for session in self.sessions if session.life == self.life)

    @property
    def scores(self) -> tuple[FloatArray, FloatArray]:
        """All scores that count, in the order in which they came: with the canary, and without."""
        groups = zip(*((session.scores_in, session.scores_out) for session in self.current), strict=True)
        first, second = (np.concatenate(side) for side in groups) if self.current else (np.empty(0), np.empty(0))
        return first, second


def enter(
    store: Store,
    name: str,
    claim: Claim,
    scores_in: FloatArray,
    scores_out: FloatArray,
    confidence: float,
    seed: int | None,
    check: Callable[[FloatArray, FloatArray, int], None],
) -> tuple[Ledger, tuple[int, int]]:
    """Add scores to the ledger of a name and a claim: the ledger as it is then, and how many were new of each side.

    `check` is called with all scores, new ones last, and the seed; nothing is added where it raises.

    Raises
    ------
    UsageError
        If confidence or seed are not those of the first session, or the scores cannot be added (module docstring).
    """
    name = as_text(name)
    given_in, given_out = canonical(scores_in), canonical(scores_out)
    if not len(given_in) + len(given_out):
        raise UsageError("scores must have at least one score, got none.")
    with store.transaction() as execute:
        _prepare(store, execute)
        ledger = _ledger_of(execute, name, claim, confidence, seed)
        new_in, new_out = new_scores(ledger, given_in, given_out)
        if len(new_in) + len(new_out):
            known_in, known_out = ledger.scores
            check(np.concatenate([known_in, new_in]), np.concatenate([known_out, new_out]), ledger.seed)
            _insert(execute, ledger.id, ledger.life, new_in, new_out)
        (ledger,) = _read(execute, digest=ledger.digest)
    return ledger, (len(new_in), len(new_out))


def note_look(store: Store, ledger: Ledger, log_wealth: float | None, lower: float, violated: bool) -> None:
    """Note what the audit of all scores of a ledger said, with its last session."""
    with store.transaction() as execute:
        execute(
            "update score_nights set ended = ?, log_wealth = ?, lower = ?, violated = ? where id = ?",
            (now(), log_wealth, lower, int(violated), ledger.current[-1].id),
        )


def ledgers(store: Store) -> list[Ledger]:
    """Every ledger of a store."""
    with store.transaction() as execute:
        return _read(execute)


def forget(store: Store, digests: Sequence[str]) -> None:
    """Forget the scores of these ledgers. The digests of their sessions stay: the same session is never counted again.

    A longer file that begins with forgotten scores is another session, counted in a life with its own error rate.
    """
    with store.transaction() as execute:
        if not columns_of(execute, "score_ledgers"):
            return
        for digest in digests:
            query = "select id, life from score_ledgers where digest = ?"
            for row, life in execute(query, (digest,)).fetchall():
                change = "update score_nights set scores_in = x'', scores_out = x'', log_wealth = null, lower = null, "
                execute(change + "violated = null where ledger = ? and life = ?", (row, life))
                execute("update score_ledgers set life = life + 1 where id = ?", (row,))


def merge(store: Store, other: Store, writes: bool = True) -> int:
    """Add the sessions of another store's ledgers behind those that are here: how many came.

    All scores of a ledger are audited anew by its next session; what the other store's looks said is not taken over.
    With `writes` false, only check that they can be added.

    Raises
    ------
    UsageError
        If the two have scores of a ledger in common, or confidences or seeds differ: nothing is taken over.
    """
    theirs, count = ledgers(other), 0
    if not theirs:
        return 0
    with store.transaction() as execute:
        _prepare(store, execute)
        here = {ledger.digest: ledger for ledger in _read(execute)}
        for ledger in theirs:
            own = here.get(ledger.digest)
            if own is not None:
                for what in ("confidence", "seed"):
                    first, second = getattr(own, what), getattr(ledger, what)
                    if first != second:
                        raise UsageError(
                            f"{what} must be the same in both stores, got {first} and {second} for {ledger.name!r}."
                        )
                if {session.digest for session in own.sessions} & {session.digest for session in ledger.sessions}:
                    raise UsageError(
                        f"stores must have no scores in common, got some of {ledger.name!r} in both. They would count "
                        "twice."
                    )
                if own.current and ledger.current:
                    _check_new(own, *ledger.scores)
            count += len(ledger.current)
            if writes:
                _take_over(execute, ledger, own)
    return count


def new_scores(ledger: Ledger, given_in: FloatArray, given_out: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scores in two columns that are new to the ledger; `UsageError` where that cannot be said.

    Columns that begin with all that the ledger has are taken for the same files, grown. Where the ledger has one or two
    scores of few values, a session of its own may begin so by chance, and would lose those scores: let a first session
    be longer.
    """
    known = ledger.scores
    groups = list(zip((given_in, given_out), known, strict=True))
    nothing = np.empty(0), np.empty(0)
    if all(_begins_with(given, has) for given, has in groups):
        new_in, new_out = given_in[len(known[0]) :], given_out[len(known[1]) :]
    elif all(_begins_with(has, given) for given, has in groups):
        return nothing
    else:
        digest = digest_of(given_in, given_out)
        if any(session.digest == digest for session in ledger.current):
            return nothing
        _check_new(ledger, given_in, given_out)
        new_in, new_out = given_in, given_out
    if any(session.digest == digest_of(new_in, new_out) for session in ledger.sessions if session.life != ledger.life):
        raise UsageError("scores must be new, got those of a session that was forgotten. They are never counted again.")
    return new_in, new_out


def _check_new(ledger: Ledger, new_in: FloatArray, new_out: FloatArray) -> None:
    """`UsageError` if a session cannot be told from a copy, or repeats a block of what the ledger has."""
    rates, by_chance = [], 0.0
    for new, has in zip((new_in, new_out), ledger.scores, strict=True):
        rates.append(_log_equal(np.concatenate([has, new])))
        by_chance += len(new) * rates[-1]
    if by_chance > math.log(BEYOND_DOUBT):
        raise UsageError(
            f"scores must be enough to tell a session from a copy of another one, got {len(new_in)} in and "
            f"{len(new_out)} out, which repeat others by chance with probability {math.exp(by_chance):.1g}. Give all "
            "scores so far in one growing file a side instead."
        )
    for name, new, has, rate in zip(("scores_in", "scores_out"), (new_in, new_out), ledger.scores, rates, strict=True):
        if len(new) and len(has) and rate < 0.0:
            length = math.ceil((math.log(BEYOND_DOUBT) - math.log(len(new) * len(has))) / rate)
            if _blocks(new, length) & _blocks(has, length):
                raise UsageError(
                    f"{name} must be of runs that were not counted yet, got {length} or more in a row that an earlier "
                    "session has. Give new scores alone, or all so far in their order."
                )


def _log_equal(scores: FloatArray) -> float:
    """The log of an estimate, from above, of the probability that two scores are equal."""
    counts = np.unique(scores, return_counts=True)[1].astype(float)  # NaNs are one value
    pairs = 0.5 * len(scores) * (len(scores) - 1.0)
    return math.log((1.0 + float((0.5 * counts * (counts - 1.0)).sum())) / (1.0 + pairs))


def _blocks(scores: FloatArray, length: int) -> set[bytes]:
    """All runs of so many scores, as bytes."""
    if length > len(scores):
        return set()
    return {row.tobytes() for row in np.lib.stride_tricks.sliding_window_view(scores, length)}


def _begins_with(scores: FloatArray, start: FloatArray) -> bool:
    return scores[: len(start)].tobytes() == start.tobytes()


def canonical(scores: FloatArray) -> FloatArray:
    """Scores of which equal ones have equal bytes: one NaN, one zero."""
    return np.where(np.isnan(scores), np.nan, scores + 0.0).astype("<f8")


def digest_of(scores_in: FloatArray, scores_out: FloatArray) -> str:
    """64 hexadecimal digits of the scores of a session."""
    content = f"{len(scores_in)} {len(scores_out)}\n".encode() + scores_in.tobytes() + scores_out.tobytes()
    return hashlib.sha256(content).hexdigest()


def _identity(name: str, claim: Claim) -> str:
    numbers = " ".join(f"{claim.epsilon_at(delta):.9g}" for delta in TOLD_AT)
    content = f"scores {WAY}\n{name}\n{claim}\n{numbers}"
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


# --- rows ---


def _prepare(store: Store, execute: Any) -> None:
    """Make the tables where they are missing; `UsageError` where they are others."""
    if not columns_of(execute, "score_ledgers"):
        TABLES.make(execute)
    for table, columns in TABLES.columns.items():
        if columns_of(execute, table) != columns:
            raise UsageError(f"store must have the columns of {table}, got others at {str(store.path)!r}.")


def _ledger_of(execute: Any, name: str, claim: Claim, confidence: float, seed: int | None) -> Ledger:
    digest = _identity(name, claim)
    found = _read(execute, digest=digest)
    if not found:
        about = {"digest": digest, "name": name, "claim": str(claim), "parameter": claim.parameter}
        begun = {"budget": claim.value, "confidence": confidence, "seed": str(seed or 0), "life": 0, "created": now()}
        upsert(execute, "score_ledgers", {**about, **begun}, adds=True)
        found = _read(execute, digest=digest)
    (ledger,) = found
    for what, first, given in (("confidence", ledger.confidence, confidence), ("seed", ledger.seed, seed)):
        if given is not None and given != first:
            raise UsageError(f"{what} must be {first}, as on the first session of this evidence, got {given}.")
    return ledger


def _insert(execute: Any, ledger: int, life: int, new_in: FloatArray, new_out: FloatArray) -> None:
    session = {
        "ledger": ledger, "life": life, "digest": digest_of(new_in, new_out), "started": now(), "version": __version__,
        "count_in": len(new_in), "count_out": len(new_out), "scores_in": new_in.tobytes(),
        "scores_out": new_out.tobytes(),
    }  # fmt: skip
    upsert(execute, "score_nights", session, adds=True)


def _take_over(execute: Any, ledger: Ledger, own: Ledger | None) -> None:
    """The sessions of another store's ledger, without what its looks said."""
    if own is None:
        about = {**TABLES.own(vars(ledger), "score_ledgers"), "seed": str(ledger.seed), "life": 0}
        row, life = upsert(execute, "score_ledgers", about, adds=True), 0
    else:
        row, life = own.id, own.life
    for session in ledger.sessions:
        of_life = life if session.life == ledger.life else FORGOTTEN
        kept = {name: getattr(session, name) for name in ("digest", "started", "version", "count_in", "count_out")}
        scores = {"scores_in": session.scores_in.tobytes(), "scores_out": session.scores_out.tobytes()}
        upsert(execute, "score_nights", {"ledger": row, "life": of_life, **kept, **scores}, adds=True)


def _read(execute: Any, **which: Any) -> list[Ledger]:
    if not columns_of(execute, "score_ledgers"):
        return []
    found = []
    for about in TABLES.rows(execute, "score_ledgers", **which):
        sessions = TABLES.rows(execute, "score_nights", ledger=about["id"])
        own = tuple(_session(one, about["life"]) for one in sessions)
        if not about["seed"].isdecimal():
            raise sqlite3.DatabaseError("a seed that is no number")  # the transaction says where
        found.append(Ledger(**about | {"seed": int(about["seed"]), "sessions": own}))
    return found


def _session(row: Row, life: int) -> ScoreSession:
    del row["ledger"]
    try:
        row["scores_in"], row["scores_out"] = (np.frombuffer(row[side], "<f8") for side in ("scores_in", "scores_out"))
        is_intact = row["life"] != life or digest_of(row["scores_in"], row["scores_out"]) == row["digest"]
    except ValueError:
        is_intact = False
    if not is_intact:
        raise sqlite3.DatabaseError("scores that are damaged")  # the transaction says where
    row["violated"] = None if row["violated"] is None else bool(row["violated"])
    return ScoreSession(**row)
