"""The set sequences of the paper on two metric spaces, word by word: Python sets and rationals, no shared code.

A `Space` has a dataset metric `hidden`, the value `f[x]` of each dataset and a value metric `kept`, in rationals. Every
function returns the sets of one dataset as a list, up to an index from which on nothing can be added.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np

from dpaudit_mechanisms.two_metrics import FiniteSpaces


@dataclasses.dataclass(frozen=True)
class Space:
    hidden: tuple[tuple[Fraction, ...], ...]
    f: tuple[int, ...]
    kept: tuple[tuple[Fraction, ...], ...]
    measure: tuple[Fraction, ...]

    @property
    def datasets(self):
        return range(len(self.f))

    @property
    def outcomes(self):
        return range(len(self.kept))

    @property
    def neighbours(self):
        return [(x, y) for x, y in itertools.permutations(self.datasets, 2) if self.hidden[x][y] <= 1]

    @property
    def sensitivity(self):
        return max((self.kept[self.f[x]][self.f[y]] for x, y in self.neighbours), default=Fraction(0))

    def shell(self, x, i):
        return {y for y in self.datasets if i - 1 < self.hidden[x][y] <= i}

    def ball(self, x, i):
        return {y for y in self.datasets if self.hidden[x][y] <= i}

    def last(self):
        """An index at which every shell and every set has been seen."""
        top = max(max(row) for row in self.hidden)
        if self.sensitivity:
            top = max(top, max(max(row) for row in self.kept) / self.sensitivity)
        return math.ceil(top) + 1

    def spaces(self):
        def floats(matrix):
            return [[float(v) for v in row] for row in matrix]

        return FiniteSpaces(floats(self.hidden), self.f, floats(self.kept), [float(v) for v in self.measure])


def staircase_sets(space, x, gamma=Fraction(0)):
    """UP-T1, UP-X9; a query of sensitivity 0 has no printed sets."""
    unit, away = space.sensitivity, space.kept[space.f[x]]
    return [{r for r in space.outcomes if (i - 1) * unit + gamma < away[r] <= i * unit + gamma}
            for i in range(space.last() + 1)]  # fmt: skip


def ladder_sets(space, x):
    """UP-X10, with the sums as printed: nothing below the first."""
    away, sets, below = space.kept[space.f[x]], [], Fraction(0)
    while max(away) > below or not sets:
        above = below + local_sensitivity(space, x, len(sets))
        sets.append({r for r in space.outcomes if below < away[r] <= above})
        below = above
    return sets


def local_sensitivity(space, x, i):
    """Delta_i^x of UP-D12."""

    def at(z):
        return max(space.kept[space.f[z]][space.f[y]] for y in space.datasets if space.hidden[z][y] <= 1)

    return max(at(z) for z in space.datasets if space.hidden[x][z] <= i)


def privacy_first_sets(space, x):
    """UP-T2, eq. (7)."""
    sets = []
    for i in range(space.last() + 1):
        reached = {space.f[y] for y in space.ball(x, i - 1)} if i else set()
        sets.append({space.f[y] for y in space.shell(x, i)} - reached)
    return sets


def widened_sets(space, x, widths, subtract="shell"):
    """UP-D-R: what is subtracted is the union over the last shell as printed, or over the whole ball."""
    zero = [{r for r in space.outcomes if space.kept[space.f[y]][r] <= widths[y]} for y in space.datasets]
    nearer = space.shell if subtract == "shell" else space.ball
    sets = []
    for i in range(space.last() + 1):
        before = set().union(*(zero[y] for y in nearer(x, i - 1))) if i else set()
        sets.append(set().union(*(zero[y] for y in space.shell(x, i))) - before)
    return sets


def zero_sets(space, widths):
    """T_0 of UP-D-T for each dataset; `widths` by value."""
    return [{space.f[y] for z in space.datasets if space.f[z] == space.f[x]
             for y in space.datasets if space.hidden[z][y] <= widths[space.f[x]]} for x in space.datasets]  # fmt: skip


def widened_staircase_sets(space, x, widths):
    """UP-D-T, eqs. (14) to (17)."""
    zero, stairs, sets = zero_sets(space, widths), staircase_sets(space, x), []
    for i in range(len(stairs)):
        lower = set().union(*stairs[:i])
        before = set().union(*(zero[y] for y in space.datasets if space.f[y] in lower))
        sets.append(set().union(*(zero[y] for y in space.datasets if space.f[y] in stairs[i])) - before)
    return sets


def is_partition(sets, outcomes):
    return sorted(r for one in sets for r in one) == list(outcomes)


def level_in(sets, r):
    return next(i for i, one in enumerate(sets) if r in one)


def levels(space, make):
    """The level of every value on every dataset, from sets that are a partition."""
    found = [make(space, x) for x in space.datasets]
    for sets in found:
        assert is_partition(sets, space.outcomes)
    return [[level_in(sets, r) for r in space.outcomes] for sets in found]


def loss(space, levels_of, epsilon):
    """AUDIT: the largest |log ratio| over neighbours and values, of weights exp(-epsilon level) times the measure."""

    def log_law(x):
        weights = [float(m) * math.exp(-epsilon * level) for m, level in zip(space.measure, levels_of[x], strict=True)]
        total = math.log(math.fsum(weights))
        return [-epsilon * level - total for level in levels_of[x]]

    laws = [log_law(x) for x in space.datasets]
    return max((abs(p - q) for x, y in space.neighbours for p, q in zip(laws[x], laws[y], strict=True)), default=0.0)


def random_metric(rng, points, kind):
    """A metric on points, in rationals: of a random connected graph, or of random rational lengths, closed."""
    while True:
        steps = [[None] * points for _ in range(points)]
        for i, j in itertools.combinations(range(points), 2):
            length = Fraction(1) if kind == "integer" else Fraction(int(rng.integers(1, 9)), 4)
            if rng.random() < 0.6:
                steps[i][j] = steps[j][i] = length
        for k in range(points):
            steps[k][k] = Fraction(0)
        for k, i, j in itertools.product(range(points), repeat=3):
            if steps[i][k] is not None and steps[k][j] is not None:
                through = steps[i][k] + steps[k][j]
                if steps[i][j] is None or through < steps[i][j]:
                    steps[i][j] = through
        if all(v is not None for row in steps for v in row):
            return tuple(tuple(row) for row in steps)


def random_space(seed, most=6, injective=False, kind=None):
    """3 to `most` datasets, integer or rational metrics, any query onto its values, positive masses."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, most + 1))
    values = count if injective else int(rng.integers(2, count + 1))
    f = np.concatenate([np.arange(values), rng.integers(0, values, size=count - values)])
    rng.shuffle(f)
    kinds = [kind or str(rng.choice(["integer", "rational"])) for _ in range(2)]
    masses = tuple(Fraction(int(v), 4) for v in rng.integers(1, 40, size=values))
    return Space(random_metric(rng, count, kinds[0]), tuple(f.tolist()), random_metric(rng, values, kinds[1]), masses)


def space_of(data):
    """A space from the data of a ledger's counterexample: `dbar`, `f`, and `d` and `measure` where they are given."""
    f = tuple(data["f"])
    count = max(f) + 1
    kept = data.get("d", [[abs(i - j) for j in range(count)] for i in range(count)])
    masses = data.get("measure", [1] * count)

    def exact(matrix):
        return tuple(tuple(Fraction(v) for v in row) for row in matrix)

    return Space(exact(data["dbar"]), f, exact(kept), tuple(Fraction(v) for v in masses))
