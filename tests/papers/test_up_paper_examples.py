"""The paper's continuous examples: a query that flips irrational numbers, and the K-norm mechanism.

Numbers are a + b sqrt(2) with rational a, b: rational exactly where b = 0, and compared exactly. Example 7: f(x) = x
for rational x, -x for irrational x; datasets and values are the real line.
"""

import dataclasses
import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize

from dpaudit_mechanisms.ledger import entry
from dpaudit_mechanisms.two_metrics import KNorm


@functools.total_ordering
@dataclasses.dataclass(frozen=True)
class Surd:
    """a + b sqrt(2)."""

    a: Fraction
    b: Fraction = Fraction(0)

    @property
    def is_rational(self):
        return self.b == 0

    def __add__(self, other):
        other = surd(other)
        return Surd(self.a + other.a, self.b + other.b)

    __radd__ = __add__

    def __neg__(self):
        return Surd(-self.a, -self.b)

    def __sub__(self, other):
        return self + -surd(other)

    def sign(self):
        parts = [(v > 0) - (v < 0) for v in (self.a, self.b)]
        if parts[0] * parts[1] >= 0:
            return parts[0] or parts[1]
        return parts[0] if self.a**2 > 2 * self.b**2 else parts[1]

    def __eq__(self, other):
        return (self - other).sign() == 0

    def __lt__(self, other):
        return (self - other).sign() < 0

    def __hash__(self):
        return hash((self.a, self.b))

    def __abs__(self):
        return -self if self.sign() < 0 else self

    def ceil(self):
        return math.ceil(self.a) if self.is_rational else self.floor() + 1

    def floor(self):
        guess = math.floor(float(self.a) + float(self.b) * math.sqrt(2.0))
        while Surd(Fraction(guess)) > self:
            guess -= 1
        while Surd(Fraction(guess + 1)) <= self:
            guess += 1
        return guess


def surd(value):
    return value if isinstance(value, Surd) else Surd(Fraction(value))


ROOT = Surd(Fraction(0), Fraction(1))
HALF_ROOT = Surd(Fraction(0), Fraction(1, 64))  # a small irrational number


def flipped(x):
    """f of Example 7; it is its own inverse."""
    return x if x.is_rational else -x


def points_around(ends):
    """Every end, and rational and irrational points between and beyond them."""
    ends = sorted(set(map(surd, ends)))
    found = list(ends)
    for low, high in itertools.pairwise(ends):
        middle = Surd((low.a + high.a) / 2, (low.b + high.b) / 2)
        rational = surd(Fraction(round(1000 * (float(middle.a) + float(middle.b) * math.sqrt(2.0))), 1000))
        found += [point for point in (middle, rational, rational + HALF_ROOT) if low < point < high]
    return [*found, ends[0] - 1, ends[-1] + HALF_ROOT]


# ---- Example 7 ------------------------------------------------------------------------------------------------------


def level_7(x, r):
    """The level of r by eq. (7): the shell of the one dataset whose value it is."""
    return abs(x - flipped(r)).ceil()


def printed_7(x, i, r):
    if r.is_rational:
        return x - i <= r <= x - (i - 1) or x + (i - 1) < r <= x + i
    return -x - i <= r <= -x - (i - 1) or -x + (i - 1) < r <= -x + i


def corrected_7(x, i, r):
    if r.is_rational:
        return x - i <= r < x - (i - 1) or x + (i - 1) < r <= x + i
    return -x - i <= r < -x - (i - 1) or -x + (i - 1) < r <= -x + i


@pytest.mark.claim("UP-X7", "UP-F3")
@pytest.mark.parametrize("x", [surd(0), surd(Fraction(1, 2)), ROOT], ids=["0", "half", "root of 2"])
def test_the_sets_of_example_7_with_half_open_ends(x):
    points = points_around([y + k for y in (x, -x) for k in range(-5, 6)])
    more = 0
    for r in points:
        level = level_7(x, r)
        assert (level == 0) == (r == flipped(x))
        for i in range(1, 5):
            assert corrected_7(x, i, r) == (level == i)
            more += printed_7(x, i, r) and level != i
            assert printed_7(x, i, r) or level != i  # the printed sets lack nothing
    assert more > 0  # at the closed ends they have too much
    for r in points:  # Lemma 1 for a neighbour
        assert abs(level_7(x, r) - level_7(x + Surd(Fraction(1, 3), Fraction(1, 4)), r)) <= 1


@pytest.mark.claim("UP-X7")
def test_the_printed_ends_of_example_7_put_a_point_into_two_sets():
    data = entry("UP-X7").counterexample
    x, r = surd(Fraction(data["x"])), surd(Fraction(data["r"]))
    assert [i for i in range(1, 4) if printed_7(x, i, r)] == data["printed_sets_from_1_on"]
    assert level_7(x, r) == data["level"] not in data["printed_sets_from_1_on"]


# ---- the example that continues it: widths 1 ------------------------------------------------------------------------


def level_12(x, r):
    """The least level of a dataset whose value is within 1 of r, for a whole x; see the comment on each branch."""
    x, found = surd(x), []
    # Rational datasets y = f(y) in [r - 1, r + 1]: the nearest to x is x itself, or an end (reached if r is rational).
    found.append(max((abs(x - r) - 1).ceil(), 0))
    # Irrational datasets with -y in [r - 1, r + 1]: the ends -r -+ 1 are irrational exactly if r is, then reached; x
    # itself is rational, so never one of them. A whole distance that is not reached is one level more.
    away = abs(x + r) - 1
    if away.sign() < 0:
        found.append(1)
    else:
        found.append(away.floor() + 1 if r.is_rational else max(away.ceil(), 1))
    return min(found)


def printed_12(x, i, r):
    x = surd(x)
    if i == 1:
        return -x - 2 <= r <= -x + 2 or x - 2 <= r <= x - 1 or x + 1 < r <= x + 2
    outer = -x - (i + 1) <= r <= -x - i or x + i < r <= x + i + 1
    return outer or (x - 1 >= i and (-x + i < r <= -x + i + 1 or x - (i + 1) <= r <= x - i))


def corrected_12(x, i, r):
    x = surd(x)
    if i == 1:
        return (-x - 2 < r < -x + 2 or x - 2 <= r < x - 1 or x + 1 < r <= x + 2) and not x - 1 <= r <= x + 1
    outer = -x - (i + 1) < r <= -x - i or x + i < r <= x + i + 1
    return outer or (x - 1 >= i and (-x + i <= r < -x + i + 1 or x - (i + 1) <= r < x - i))


@pytest.mark.claim("UP-X12", "UP-F5")
@pytest.mark.parametrize("x", [1, 2, 3, 5])
def test_the_widened_sets_of_the_example_with_the_right_ends(x):
    for r in points_around(range(-x - 12, x + 13)):
        level = level_12(x, r)
        assert (level == 0) == (surd(x - 1) <= r <= surd(x + 1))
        for i in range(1, 10):
            assert corrected_12(x, i, r) == (level == i), (r, i)
        inside = not r.is_rational or r.a.denominator > 1  # not at an end
        if inside and x > 1:  # Figure 5 and the printed sets are right between the ends, up to the overlap with R_0
            printed = [i for i in range(1, 10) if printed_12(x, i, r)]
            assert level == 0 or printed == ([level] if level < 10 else [])


@pytest.mark.claim("UP-X12")
def test_the_printed_widened_sets_of_the_example_overlap():
    data = entry("UP-X12").counterexample
    x, r = data["x"], surd(data["r"])
    assert surd(x - 1) <= r <= surd(x + 1) and level_12(x, r) == 0  # in R_0
    assert [i for i in range(1, 10) if printed_12(x, i, r)] == data["printed_sets_from_1_on"]
    # and for x = 1 not at an end alone: half of R_0 is in the printed R_1
    assert printed_12(1, 1, surd(Fraction(1, 2))) and level_12(1, surd(Fraction(1, 2))) == 0


# ---- Example 11: K-norm ---------------------------------------------------------------------------------------------


def least_l1_preimage(queries, target):
    """min |z|_1 with F z = target, a linear program; and None where there is none."""
    n = queries.shape[1]
    found = optimize.linprog(np.ones(2 * n), A_eq=np.hstack([queries, -queries]), b_eq=target, bounds=(0, None))
    return found.fun if found.success else None


@pytest.mark.claim("UP-X11")
@pytest.mark.parametrize(("d", "n"), [(1, 2), (1, 3), (2, 2), (2, 3)])
def test_the_gauge_of_k_is_the_least_number_of_steps_and_the_level_rounds_it_up(d, n):
    rng = np.random.default_rng([20_261_122, d, n])
    queries = rng.normal(size=(d, n))
    mechanism, rounded = KNorm(queries, 1.0), KNorm(queries, 1.0, discrete=True)
    for _ in range(25):
        r = rng.normal(scale=3.0, size=d)
        b = least_l1_preimage(queries, r)
        assert mechanism.gauge(r[None])[0] == pytest.approx(b, rel=1e-7)
        assert rounded.level(r[None])[0] == math.ceil(b)
        # Membership: r is in ceil(b) K, and not in floor(b) K as b is not whole.
        assert mechanism.gauge(r[None] / math.ceil(b))[0] <= 1.0 + 1e-9
        assert math.floor(b) == 0 or mechanism.gauge(r[None] / math.floor(b))[0] > 1.0
        for inner, outer in ((math.floor(b), b), (b, math.ceil(b))):  # eq. (12): points of one set are in the next
            z = rng.dirichlet(np.ones(n)) * rng.choice([-1.0, 1.0], size=n) * inner
            assert mechanism.gauge((queries @ z)[None])[0] <= outer + 1e-9


@pytest.mark.claim("UP-X11")
def test_at_a_whole_gauge_the_printed_set_is_empty_and_the_level_is_still_that_number():
    data = entry("UP-X11").counterexample
    b, queries = data["whole_gauge"], np.array(data["F"])
    r = queries @ np.array(data["z"])
    assert KNorm(queries, 1.0).gauge(r[None])[0] == pytest.approx(b)
    assert math.ceil(b) == math.floor(b)  # A_ceil(b) - A_floor(b) is empty, and r is not in it
    assert KNorm(queries, 1.0, discrete=True).level(r[None])[0] == b
    # The image of a shell is more than A_i - A_(i-1) where F has a kernel: a dataset one step away, the same answer.
    same = np.array(data["kernel"])
    assert np.abs(same).sum() == 1.0 and not (np.array(data["F_with_kernel"]) @ same).any()
