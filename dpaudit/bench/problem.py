"""A problem of the bench: a mechanism, a claim, one pair of inputs, and what is known of the two output laws.

Conventions
-----------
* P and Q are the output laws on x and x_prime. A cell is a set of outputs; its loss is log(P(cell) / Q(cell)), nats.
* A `Law` holds the masses of finitely many cells, in increasing order of their loss. Its cells are always those of a
  function of the output, so its masses are masses of real events: a coarse grid can only make the two laws a little
  harder to tell apart (data processing), never easier. How far off it can be is said in `note`.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.errors import UsageError
from dpaudit.extensions import entry_points, load
from dpaudit.privacy.claims import LARGEST_EPSILON, Claim, FloatArray, PureDP, epsilon_of_profile

GROUP = "dpaudit.problems"  # the entry-point group
Kind = Literal[
    "continuous",
    "integer",
    "category",
    "vector",
    "bit vector",
    "sequence",
    "string",
    "tuple",
    "dictionary",
    "set",
    "ragged",
    "mixed",
    "exception",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
CELLS = 4_000  # cells of a grid, without its tails
SAME_LOSS = 1e-10  # nats: cells whose losses agree to this are one cell (rounding of sums of 1e3 terms is below it)


@dataclasses.dataclass(frozen=True, eq=False)
class Law:
    """The output laws of one pair as masses of finitely many cells, in increasing order of the loss.

    Masses `p` on x and `q` on x_prime have shape (cells,), and each sum to 1 within 1e-9. `note` says how the law was
    made, and its error; it is empty where the law is exact up to rounding.

    Examples
    --------
    >>> law = finite_law([0.75, 0.25], [0.25, 0.75])
    >>> round(law.epsilon_at(0.0), 6)  # log 3
    1.098612
    """

    p: FloatArray
    q: FloatArray
    note: str = ""

    def __post_init__(self) -> None:
        for name, masses in (("p", self.p), ("q", self.q)):
            if masses.ndim != 1 or not (masses >= 0.0).all() or abs(math.fsum(masses) - 1.0) > 1e-9:
                total = math.fsum(masses.ravel())
                raise UsageError(f"{name} must be masses that sum to 1, got shape {masses.shape} and sum {total!r}.")
        if self.p.shape != self.q.shape:
            raise UsageError(f"p and q must have the same cells, got {self.p.shape} and {self.q.shape}.")

    @property
    def losses(self) -> FloatArray:
        """Loss of each cell in nats, increasing; -inf and inf where only one of the two laws has it."""
        return _losses(self.p, self.q)

    def profile(self, epsilon: float) -> float:
        """The least delta for which the pair keeps (epsilon, delta), both directions."""
        factor = math.exp(min(epsilon, LARGEST_EPSILON))
        first = math.fsum(np.maximum(self.p - factor * self.q, 0.0))
        return max(first, math.fsum(np.maximum(self.q - factor * self.p, 0.0)))

    def epsilon_at(self, delta: float) -> float:
        """The least epsilon in nats for which the pair keeps (epsilon, delta); inf if there is none."""
        return float(np.abs(self.losses).max()) if delta == 0.0 else epsilon_of_profile(self.profile, delta)

    def breaks(self, claim: Claim) -> bool:
        """Tell whether the two laws break a claim of the pair (one with a privacy profile), by more than rounding."""
        if claim.family != "hockey-stick":
            raise UsageError(f"claim must have a privacy profile, got {claim}.")
        if claim.anchored:
            anchors = np.linspace(0.0, 20.0, 401)
            return any(self.profile(anchor) > claim.profile(anchor) + 1e-9 for anchor in anchors.tolist())
        if claim.delta == 0.0:
            return self.epsilon_at(0.0) > claim.value + 1e-9
        return self.profile(claim.value) > claim.delta * (1.0 + 1e-6) + 1e-12


def finite_law(p: ArrayLike, q: ArrayLike, note: str = "") -> Law:
    """The law of two finite distributions over the same outcomes; outcomes of one loss become one cell.

    `UsageError` if shapes differ, a mass is negative, or a sum is not 1 within 1e-9.
    """
    first, second = np.asarray(p, dtype=float).ravel(), np.asarray(q, dtype=float).ravel()
    if first.shape != second.shape:
        raise UsageError(f"p and q must have the same outcomes, got {first.shape} and {second.shape}.")
    for name, masses in (("p", first), ("q", second)):
        if not (masses >= 0.0).all():
            raise UsageError(f"{name} must be masses of at least 0, got {masses[~(masses >= 0.0)][0]!r}.")
    possible = (first != 0.0) | (second != 0.0)
    first, second = first[possible], second[possible]
    losses = _losses(first, second)
    order = np.argsort(losses, kind="stable")
    first, second, losses = first[order], second[order], losses[order]
    with np.errstate(invalid="ignore"):
        differs = ~(np.diff(losses) <= SAME_LOSS) & (losses[1:] != losses[:-1])
    starts = np.concatenate([[0], 1 + np.flatnonzero(differs)])
    return Law(np.add.reduceat(first, starts), np.add.reduceat(second, starts), note)


def grid_law(first: Any, second: Any, edges: ArrayLike, note: str = "") -> Law:
    """The law of two distributions on the line (anything with `cdf` and `sf`), in cells between edges, and two tails.

    Edges increase; put the kinks of the two densities among them.
    """
    edges = np.asarray(edges, dtype=float)

    def masses(law: Any) -> FloatArray:
        below = np.concatenate([[0.0], law.cdf(edges), [1.0]])
        above = np.concatenate([[1.0], law.sf(edges), [0.0]])
        # Differences of the smaller of the two tails, so that masses far out keep their relative precision.
        return np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))

    return finite_law(np.maximum(masses(first), 0.0), np.maximum(masses(second), 0.0), note)


def product_law(laws: Sequence[Law], cells: int = CELLS) -> Law:
    """The law of independent outputs: losses add. Each loss is rounded to a grid, so each cell is a set of outputs.

    The grid has `cells` steps over the range of finite losses: within a cell losses differ by at most len(laws) steps.
    """
    finite = [law.losses[np.isfinite(law.losses)] for law in laws]
    span = sum(float(np.ptp(losses)) if losses.size else 0.0 for losses in finite)
    step = span / cells if span > 0.0 else 1.0
    total_p, total_q = np.ones(1), np.ones(1)
    for law, losses in zip(laws, finite, strict=True):
        if not losses.size:
            total_p, total_q = np.zeros(1), np.zeros(1)
            break
        positions = np.rint((losses - losses[0]) / step).astype(int)
        has = np.isfinite(law.losses)
        total_p = np.convolve(total_p, np.bincount(positions, law.p[has]))
        total_q = np.convolve(total_q, np.bincount(positions, law.q[has]))
    # What one of the two laws alone can give in some output tells the inputs apart for certain.
    only_p, only_q = max(0.0, 1.0 - math.fsum(total_p)), max(0.0, 1.0 - math.fsum(total_q))
    if not any(np.isposinf(law.losses).any() for law in laws):
        total_p, only_p = total_p / math.fsum(total_p), 0.0
    if not any(np.isneginf(law.losses).any() for law in laws):
        total_q, only_q = total_q / math.fsum(total_q), 0.0
    note = f"losses of {len(laws)} independent parts added on a grid of {step:.2g} nats"
    return finite_law(np.concatenate([total_p, [only_p, 0.0]]), np.concatenate([total_q, [0.0, only_q]]), note)


def union_law(parts: Iterable[tuple[float, float, Law]], note: str = "") -> Law:
    """The law of an output that shows which of several parts it is from, each with its masses on x and x_prime."""
    parts = list(parts)
    p = np.concatenate([mass * law.p for mass, _, law in parts])
    q = np.concatenate([mass * law.q for _, mass, law in parts])
    notes = dict.fromkeys(law.note for _, _, law in parts if law.note)
    return finite_law(p, q, note or "; ".join(notes))


SAME = Law(np.ones(1), np.ones(1))  # an output that says nothing


@dataclasses.dataclass(frozen=True)
class Peer:
    """Report of another tool: its bound (nats), its confidence (None: none that holds) and its runs."""

    tool: str
    bound: float
    confidence: float | None
    runs: float | None


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """One problem of the bench."""

    id: str  # unique over all problem sets
    family: str  # what it is a member of, for tables and plots
    kind: Kind  # what an output is
    mechanism: Any  # anything that `dpaudit.audit` takes
    claim: Claim
    pair: tuple[Any, Any]  # (x, x_prime)
    dimensions: int  # numbers, bits or entries in an output (the largest, where they vary)
    sound: bool  # whether the pair keeps its claim
    source: str  # one line: the paper, or what it stands for
    tight: bool = False  # whether the pair sits exactly on its claim
    make_law: Callable[[], Law] | None = None  # gives the `Law` of the pair; `law` caches it
    exact: float | None = None  # epsilon at the claim's delta, where a grid would hide it (an unbounded loss)
    peers: tuple[Peer, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r} at problem {self.id!r}.")
        if self.tight and not self.sound:
            raise UsageError(f"tight must be of a sound problem, got a faulty one at problem {self.id!r}.")

    @property
    def state(self) -> str:
        """Tell whether it keeps its claim, and exactly: "tight", "sound" or "faulty"."""
        return "tight" if self.tight else "sound" if self.sound else "faulty"

    @functools.cached_property
    def law(self) -> Law | None:
        """Known output laws on the two inputs; None where nothing is known."""
        return self.make_law() if self.make_law is not None else None

    @property
    def pair_claim(self) -> Claim:
        """The claim for this pair."""
        return self.claim.for_pair(*self.pair)

    @property
    def truth(self) -> float | None:
        """Epsilon of the pair at the claim's delta, in nats; None where it is not known."""
        if self.exact is not None:
            return self.exact
        return self.law.epsilon_at(self.pair_claim.report_delta) if self.law is not None else None


def problem(
    id: str,
    family: str,
    kind: Kind,
    mechanism: Any,
    claim: Claim,
    make_law: Callable[[], Law],
    source: str,
    pair: tuple[Any, Any] = (0.0, 1.0),
    dimensions: int = 1,
    *,
    true: Literal["tight", "sound", "faulty"] = "faulty",
    **options: Any,
) -> Problem:
    """A problem with a known law; one that breaks its claim by default, `options` are further ones of `Problem`."""
    options |= {"sound": true != "faulty", "tight": true == "tight", "source": source, "make_law": make_law}
    return Problem(id, family, kind, mechanism, claim, pair, dimensions, **options)


def graded(prefix: str, claim: float, loss: float, *about: Any, **options: Any) -> Problem:
    """A problem of a claimed and a true epsilon, which its name and state follow from; `about` goes on at `family`."""
    family, kind, mechanism, *rest = about
    name = f"{prefix} {claim:g}" + (f", true {loss:g}" if loss > claim else "")
    true: Any = "tight" if loss == claim else "sound" if loss < claim else "faulty"
    return problem(name, family, kind, mechanism, PureDP(claim), *rest, true=true, **options)


def load_problems(names: Sequence[str] = ()) -> list[Problem]:
    """The problems of all installed sets, or those that are named, in the order of the sets.

    `UsageError` if no set is installed, two problems share an id, or a name is not among them (with the closest that
    are).
    """
    problems: list[Problem] = []
    for entry in entry_points(GROUP):
        problems += load(entry)()
    if not problems:
        raise UsageError(
            f"problems must be given through the entry-point group {GROUP!r}, got none. Install the package that "
            "registers them again (pip install -e .)."
        )
    return choose(problems, names)


def choose(problems: Sequence[Problem], names: Sequence[str] = ()) -> list[Problem]:
    """The named problems, or all where none is named; `UsageError` as in `load_problems`."""
    known = {problem.id: problem for problem in problems}
    if len(known) < len(problems):
        ids = [problem.id for problem in problems]
        raise UsageError(f"problems must have different ids, got {next(i for i in ids if ids.count(i) > 1)!r} twice.")
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, 3, 0.5) or [k for k in known if name.lower() in k][:3]
            hint = f"Close to it: {', '.join(close)}." if close else "List them with --list."
            raise UsageError(f"problem must be one of the {len(known)} that are installed, got {name!r}. {hint}")
    return [known[name] for name in dict.fromkeys(names)] if names else list(problems)


def _losses(p: FloatArray, q: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(p) - np.log(q)
