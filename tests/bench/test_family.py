"""The leaks of a family have exactly the loss and the mass that they state, and one seed makes one family."""

import collections

import numpy as np
import pytest
from leak_family import FORMS, IN_A, IN_B, OUTSIDE, family
from scipy import special, stats

SEED = 20_261_128
DRAWS, DOCUMENTS = 20_000, 2_500  # of each of the five leaks of a form on each input: 200,000 arrays, 25,000 texts
FALSE_POSITIVE_RATE = 1e-10  # of one count, from the binomial law of the sum of five
LEAKS = [leak if k % 16 < 8 else leak.with_loss(1.0, 0.1) for k, leak in enumerate(family(SEED))]


def counted(leaks, draws):
    """How many outputs of these leaks are in A and in B, by input and half, from the outputs alone."""
    found = collections.Counter()
    for k, leak in enumerate(leaks):
        for x in (0, 1):
            places = leak.where(leak.sample(x, draws, np.random.default_rng((SEED, k, x))))
            found.update({(x, half): int(np.sum(places == half)) for half in (IN_A, IN_B)})
    return found


def surprises(found, leaks, draws, more_loss=0.0, more_mass=1.0):
    """Counts that losses and masses do not allow.

    The tails of a sum of Bernoulli draws with different p are at most those of the binomial law of their mean, beyond
    one draw from its mean (Hoeffding 1956, theorem 5).
    """
    surprising = []
    for (x, half), count in found.items():
        sign = 1.0 if (half == IN_A) == bool(x) else -1.0
        p = np.mean([leak.mass * more_mass * special.expit(sign * (leak.loss + more_loss)) for leak in leaks])
        law = stats.binom(draws * len(leaks), p)
        if not law.ppf(FALSE_POSITIVE_RATE / 2) <= count <= law.isf(FALSE_POSITIVE_RATE / 2):
            surprising.append((x, half, count, law.mean()))
    return surprising


@pytest.mark.parametrize("form", FORMS)
def test_a_form_has_the_loss_and_the_mass_that_it_states(form):
    """Four counts a form: false-positive rate 4e-10 a form, 3.2e-9 in all.

    Negative controls, by the same binomial laws: a loss that is off by 1, or a mass by 30%, passes the four counts of a
    form with probability below 1e-11.
    """
    leaks = [leak for leak in LEAKS if leak.form == form]
    assert len(leaks) == 5
    draws = DOCUMENTS if form in ("token", "number inside") else DRAWS
    found = counted(leaks, draws)
    assert surprises(found, leaks, draws) == []
    assert surprises(found, leaks, draws, more_loss=1.0)
    assert surprises(found, leaks, draws, more_mass=1.3)


def margins(leak):
    """Largest Kolmogorov-Smirnov distance between A and B of a column, and how many outputs the smaller half has."""
    leak = leak.with_loss(0.0, 0.3)
    outputs = leak.sample(1, DRAWS // 4, np.random.default_rng(SEED)).astype(float)
    a, b = (outputs[leak.where(outputs) == half] for half in (IN_A, IN_B))
    distances = [stats.ks_2samp(*pair, method="asymp").statistic for pair in zip(a.T, b.T, strict=True)]
    return max(distances), min(len(a), len(b))


def test_columns_that_tell_together_tell_nothing_alone():
    """Two empirical distributions of n draws are each within d of their laws but for probability 2 exp(-2 n d^2)."""
    for leak in LEAKS:
        if leak.form in ("two columns together", "several columns together"):
            distance, size = margins(leak)
            slack = np.sqrt(np.log(4 * 30 / FALSE_POSITIVE_RATE) / (2 * size))  # at most 30 columns
            assert distance < 2 * slack + 0.05, leak  # the two cuts come from draws, and are not quite of one mass
    assert max(margins(leak)[0] for leak in LEAKS if leak.form == "one level" and leak.kind == "row") > 0.9


def test_one_seed_makes_one_family_and_another_seed_another():
    leaks, again, other = family(SEED), family(SEED, 8), family(SEED + 1, 8)
    assert list(map(repr, leaks[:8])) == list(map(repr, again))
    assert not {leak.mass for leak in leaks} & {leak.mass for leak in other}
    for leak, same, different in zip(leaks, again, other, strict=False):
        first, second, third = (each.sample(1, 20, np.random.default_rng(0)) for each in (leak, same, different))
        assert np.array_equal(first, second)
        assert str(first) != str(third)


def test_outputs_are_of_the_kind_that_a_leak_states():
    types = {"number": np.float64, "integer": np.int64, "booleans": np.bool_, "text": str, "object": dict}
    kinds = set()
    for leak in LEAKS:
        outputs = leak.sample(0, 3, np.random.default_rng(0))
        item = outputs[0]
        assert len(outputs) == 3
        if leak.kind in ("row", "booleans"):
            assert item.ndim == 1
            item = item[0]
        assert isinstance(item, types.get(leak.kind, np.number))
        kinds.add(leak.kind)
    assert kinds == {*types, "row"}


def test_an_input_shows_one_half_alone_where_the_loss_has_no_bound():
    """At a loss of 40 the other half has probability below 1e-18 a draw; all else is absent with probability 1e-48."""
    for leak in LEAKS[:8]:
        sure = leak.with_loss(40.0, 0.2)
        for x, half in ((1, IN_A), (0, IN_B)):
            assert set(sure.where(sure.sample(x, 500, np.random.default_rng(x))).tolist()) == {OUTSIDE, half}
