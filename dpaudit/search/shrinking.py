"""A broken pair made small and plain: fewer rows, rounder values, one change; the same fault on fresh draws.

How it shrinks. Passes propose smaller pairs: rows that both inputs share are left out, in halves first and then one by
one, and values become rounder or those of other rows. Each proposal stays adjacent in the same sense, as only what both
inputs have in common is changed, or a value that differs into another one of the domain. A proposal is taken if its
estimated loss on draws of its own is still `KEEP` standard deviations above its budget
(`dpaudit.audits.searching.excess`).

Why the error rate holds. What is taken is chosen on streams of the purposes `SHRINKING`, which no audit draws from. The
last pair is then audited once, under a root seed of its own, at a share of the error rate: given everything that was
drawn before it is a fixed pair, so P(it is called violated though it keeps the claim) is at most that share.
`audit_and_shrink` gives `SHARE` of the error rate to it and the rest to the audit before, whose verdict and bounds do
not depend on it; by the union bound both are right with the confidence that was asked for.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dpaudit.audits.auditing import audit
from dpaudit.audits.searching import Search, excess, line_of
from dpaudit.features.outcomes import Outcomes, read_outputs
from dpaudit.privacy.adjacency import typed_rows
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.differences import difference, is_frame
from dpaudit.privacy.inputs import identity_of
from dpaudit.privacy.pair_budgets import check_order_is_given
from dpaudit.privacy.pairs import Pair, short_form
from dpaudit.results.model import AuditResult, Finding, SideFinding, to_json
from dpaudit.running.streams import root_of, stream
from dpaudit.subjects.callables import CallError, as_subject
from dpaudit.subjects.domains import DatasetDomain, Domain, VectorDomain
from dpaudit.subjects.domains.domain import is_number
from dpaudit.subjects.stated import stated_claim

KIND = "shrunk_pair"
SHRINKING, CONFIRMING = 54, 55  # purposes of streams: of the draws that choose, and of the seed of the last audit
MADE_SMALLER = "a pair to make smaller"  # as the source of pairs in messages
SHARE = 0.1  # of the error rate, for the audit of the small pair
KEEP = 3.0  # standard deviations above the budget
FIRST_DRAWS, MAX_DRAWS = 250, 4_000  # of an input in one test
MAX_PROPOSALS = 2_000  # that are tried
BUDGET = 60_000  # runs of the mechanism, without the last audit


@dataclasses.dataclass(frozen=True)
class Shrunk:
    """A pair that was made small; the pair itself where nothing smaller broke."""

    pair: Pair
    difference: str  # what tells its inputs apart, in words
    rows_before: int | None  # of the larger input; None where inputs are no sequences
    rows_after: int | None
    steps: int  # proposals that were taken
    runs: int  # without those of the audit that confirms
    seconds: float


def shrink(
    mechanism: Any,
    claim: Claim | str | None,
    pair: Pair,
    domain: Domain | None = None,
    *,
    seed: int | None = None,
) -> Shrunk:
    """Make a pair small that an audit called violated. No confidence is attached: audit the small pair.

    Inputs have to be of the domain; without one, rows are left out and values are exchanged for others of the pair.

    Examples
    --------
    >>> def release(data, size, rng):  # one record counts ten times
    ...     return sum(data) + 9.0 * (7.0 in data) + rng.laplace(size=size)
    >>> small = shrink(release, "eps=1", Pair([1.0, 3.0, 2.0, 2.0], [1.0, 3.0, 2.0, 2.0, 7.0]), seed=1)
    >>> small.pair.x, small.difference
    ([], 'row 0 added: 7.0')
    """
    subject, root, started = as_subject(mechanism), root_of(seed), time.perf_counter()
    promise = stated_claim(subject, claim)
    check_order_is_given(promise, MADE_SMALLER)
    runs = tests = 0

    def breaks(x: Any, x_prime: Any) -> bool:
        nonlocal runs, tests
        own = promise.for_pair(x, x_prime)
        if own.is_vacuous:
            return False
        tests += 1
        batches: list[Outcomes] = []
        for place, value in enumerate((x, x_prime)):
            runs += draws
            with contextlib.suppress(CallError):
                rng = stream(root, SHRINKING, tests, place)
                batches.append(read_outputs(subject.sample(value, draws, rng), draws).kept())
        if len(batches) < 2:  # a call that raises for one input only is a difference
            return len(batches) == 1
        return excess(line_of(own), *batches)[0] >= KEEP

    small, steps, draws = pair, 0, FIRST_DRAWS
    while draws <= MAX_DRAWS and not breaks(pair.x, pair.x_prime):  # so many that it is seen to break
        draws *= 4
    if draws <= MAX_DRAWS:
        small, steps = make_smaller(pair, domain, lambda x, x_prime: runs < BUDGET and breaks(x, x_prime))
    before, after = (
        None if isinstance(domain, VectorDomain) or not all(map(_is_rows, batches)) else max(map(len, batches))
        for batches in ((pair.x, pair.x_prime), (small.x, small.x_prime))
    )
    said = difference(small.x, small.x_prime)
    return Shrunk(small, said, before, after, steps, runs, time.perf_counter() - started)


def audit_and_shrink(
    mechanism: Any,
    claim: Claim | str | None,
    search: Search,
    *,
    confidence: float = 0.95,
    seed: int | None = None,
    on_audit: Callable[[AuditResult], None] = lambda _: None,
    **options: Any,
) -> AuditResult:
    """`dpaudit.audit` of the pairs of a search, and the side finding "shrunk_pair" where one of them is violated.

    `confidence` is of the audit and of the finding about the small pair together; `options` are those of the audit.
    `on_audit` is called with its result before a pair is made smaller, which a limit of time may break off.
    """
    root = root_of(seed)
    subject = as_subject(mechanism, options.pop("target", None), options.pop("name", None))
    promise = stated_claim(subject, claim)
    check_order_is_given(promise, MADE_SMALLER)  # before the audit, not behind it
    alpha = 1.0 - confidence
    result = audit(subject, claim, search, confidence=1.0 - (1.0 - SHARE) * alpha, seed=root, **options)
    on_audit(result)
    broken = next((finding for finding in result.findings if finding.verdict == "violated"), None)
    if broken is None:
        return result
    small = shrink(subject, promise, Pair(broken.x, broken.x_prime), search.domain_for(promise), seed=root)
    fresh, samples = int(stream(root, CONFIRMING).integers(2**63)), options.get("samples", 100_000)
    own: dict[str, Any] = {"confidence": 1.0 - SHARE * alpha, "seed": fresh, "floating_point": False}
    again = audit(subject, promise, [small.pair], samples=samples, **own)
    side = side_finding(small, broken, again, SHARE * alpha)
    return dataclasses.replace(result, side_findings=(*result.side_findings, side))


def side_finding(small: Shrunk, broken: Finding, audited: AuditResult, error_rate: float) -> SideFinding:
    """Side finding of the small pair: "found" if its own audit called it violated."""
    (finding,) = audited.findings
    is_found = finding.verdict == "violated"
    rows = "" if small.rows_after is None else f", {small.rows_before} rows made {small.rows_after}"
    shown = small.difference or f"{small.pair.x_id} becomes {small.pair.x_prime_id}"
    end = "broken too, on fresh draws" if is_found else "which fresh draws did not confirm"
    summary = f"From {short_form(small.pair.x, 60)}: {shown}{rows}; {end} ({audited.samples + small.runs:,} runs)."
    details = {
        "from": broken.id,
        "pair": small.pair.id,
        "x": small.pair.x_id,
        "x_prime": small.pair.x_prime_id,
        "difference": shown,
        **{name: getattr(small, name) for name in ("rows_before", "rows_after", "steps", "seconds")},
        "shrinking": small.runs,
        "samples": audited.samples,
        "seed": audited.seed,
        **{name: getattr(finding, name) for name in ("verdict", "epsilon_lower")},
        "budget": finding.budget.epsilon,
    }
    return SideFinding(KIND, "found" if is_found else "nothing_found", summary, error_rate, to_json(details))


def make_smaller(pair: Pair, domain: Domain | None, breaks: Callable[[Any, Any], bool]) -> tuple[Pair, int]:
    """The smallest pair that is reached by passes over proposals that `breaks` says yes to, and how many were taken.

    Examples
    --------
    >>> make_smaller(Pair([4.0, 2.0, 7.0], [4.0, 7.0]), None, lambda x, y: 2.0 in x and 2.0 not in y)[0].id
    '[2.0]|[]'
    """
    small, steps, progress = (pair.x, pair.x_prime), 0, True
    seen = {(identity_of(pair.x), identity_of(pair.x_prime))}
    while progress:
        progress = False
        for smaller in _proposals(domain, *small):
            key = (identity_of(smaller[0]), identity_of(smaller[1]))
            if key[0] == key[1] or key in seen or not (domain is None or domain.is_pair(*smaller)):
                continue
            if len(seen) > MAX_PROPOSALS:
                break
            seen.add(key)
            if breaks(*smaller):
                small, steps, progress = smaller, steps + 1, True
                break
    return (Pair(*small) if steps else pair), steps


def _proposals(domain: Domain | None, x: Any, x_prime: Any) -> Iterator[tuple[Any, Any]]:
    is_vector = isinstance(domain, VectorDomain) and isinstance(x, list)
    if not is_vector and _is_rows(x) and _is_rows(x_prime):
        shared = _shared(x, x_prime)
        yield from _fewer_rows(x, x_prime, shared)
        if not is_frame(x):
            values = domain.values if isinstance(domain, DatasetDomain) else ()
            yield from _plainer_rows(x, x_prime, shared, values)
        return
    is_array = is_vector or all(isinstance(side, np.ndarray) or is_number(side) for side in (x, x_prime))
    if is_array and np.shape(x) == np.shape(x_prime):
        for pair in _plainer_arrays(np.asarray(x), np.asarray(x_prime)):
            yield pair if isinstance(x, np.ndarray) else (pair[0].tolist(), pair[1].tolist())


def _fewer_rows(x: Any, x_prime: Any, shared: Sequence[tuple[int, int]]) -> Iterator[tuple[Any, Any]]:
    """Rows that both have are left out: all, halves, quarters, then one by one."""
    size = len(shared)
    while size:
        for start in range(0, len(shared), size):
            gone = shared[start : start + size]
            yield _without(x, {i for i, _ in gone}), _without(x_prime, {j for _, j in gone})
        size //= 2


def _plainer_rows(
    x: Any, x_prime: Any, shared: Sequence[tuple[int, int]], values: Sequence[Any]
) -> Iterator[tuple[Any, Any]]:
    """Shared rows become the plainest one; then rows that differ become plainer."""
    plainest = sorted([*values, *x, *x_prime], key=_length)[:3]
    alone = [set(range(len(rows))) - {pair[k] for pair in shared} for k, rows in enumerate((x, x_prime))]
    places = [*shared, *((i, None) for i in sorted(alone[0])), *((None, j) for j in sorted(alone[1]))]
    for i, j in places:
        for row in plainest:
            if _length(row) < _length(x_prime[j] if i is None else x[i]):
                yield x if i is None else _with(x, i, row), x_prime if j is None else _with(x_prime, j, row)


def _is_rows(value: Any) -> bool:
    return isinstance(value, list | tuple) or is_frame(value)


def _keys(rows: Any) -> list[str]:
    listed = rows.itertuples(index=False, name=None) if is_frame(rows) else rows
    return [f"{type(row).__name__} {row!r}" for row in listed]


def _shared(x: Any, x_prime: Any) -> list[tuple[int, int]]:
    """The places of rows that both inputs have, in one order: of a replaced row all others, each in its place."""
    import difflib

    pairs = list(zip(_keys(x), _keys(x_prime), strict=False))
    same = [(k, k) for k, (row, other) in enumerate(pairs) if row == other]
    if len(x) == len(x_prime) == len(same) + 1:
        return same
    blocks = difflib.SequenceMatcher(None, _keys(x), _keys(x_prime), autojunk=False).get_matching_blocks()
    return [(block.a + k, block.b + k) for block in blocks for k in range(block.size)]


def _without(rows: Any, places: set[int]) -> Any:
    kept = [k for k in range(len(rows)) if k not in places]
    if is_frame(rows):
        return rows.iloc[kept].reset_index(drop=True)
    return typed_rows(rows, [rows[k] for k in kept])


def _with(rows: Any, place: int, row: Any) -> Any:
    return typed_rows(rows, [*rows[:place], row, *rows[place + 1 :]])


def _plainer_arrays(x: Any, x_prime: Any) -> Iterator[tuple[Any, Any]]:
    """Entries that are the same become zero; those that differ become the same; then all are rounded."""
    same = x == x_prime
    if same.any() and np.any(x[same] != 0):
        yield np.where(same, 0, x).astype(x.dtype), np.where(same, 0, x_prime).astype(x.dtype)
    for place in map(tuple, np.argwhere(~same)):
        changed = x_prime.copy()
        changed[place] = x[place]
        yield x, changed
    yield np.zeros_like(x), (x_prime - x).astype(x.dtype)
    for digits in range(3):
        yield np.round(x, digits), np.round(x_prime, digits)


def _length(value: Any) -> int:
    """Length of a value as it is written: the measure that shrinking makes smaller."""
    return len(repr(value.item() if isinstance(value, np.generic) else value))
