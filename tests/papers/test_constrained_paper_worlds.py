"""The paper on constrained privacy, on finite worlds and in rationals: belief change, conditioning, unions.

Every two inputs are neighbours. Ratios and divergences are compared as fractions, so that no tolerance is needed, save
where logarithms enter. Counterexamples come from the ledger.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from constrained_worlds import (
    as_fractions,
    events,
    fractions,
    largest_ratio,
    loss_ratio,
    nearest_worlds,
    profile,
    pushed,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from dpaudit.errors import UsageError
from dpaudit_mechanisms.constrained.finite import conditioned, imaged, masses
from dpaudit_mechanisms.ledger import entry

FIXED = settings(max_examples=200)
SEEDS = st.integers(0, 2**32)
FACTORS = (Fraction(1), Fraction(3, 2), Fraction(3))  # e^epsilon


# ---- belief change (Section 2) --------------------------------------------------------------------------------------


@pytest.mark.claim("CD-P2.1")
def test_conditioning_is_what_excludes_the_rest_and_keeps_ratios_inside():
    """Both directions, over all laws on three worlds with weights 0, 1, 2 and all events of positive probability."""
    weights = [w for w in itertools.product(range(3), repeat=3) if sum(w)]
    laws = sorted({tuple(Fraction(v, sum(w)) for v in w) for w in weights})
    cube = list(itertools.product((0, 1), repeat=3))
    inside = {event: [b for b in cube if all(x <= e for x, e in zip(b, event, strict=True))] for event in cube}

    def mass(law, event):
        return sum(p for p, e in zip(law, event, strict=True) if e)

    checked = 0
    for law, (event, parts) in itertools.product(laws, inside.items()):
        if mass(law, event) == 0:
            continue
        expected = tuple(p / mass(law, event) if e else Fraction(0) for p, e in zip(law, event, strict=True))
        assert expected == tuple(conditioned(np.array([law], dtype=object), np.array(event, dtype=bool))[0])
        for other in laws:
            first = mass(other, event) == 1
            pairs = [(b, c) for b in parts for c in parts if mass(law, c) > 0]
            second = all(mass(other, c) > 0 and mass(other, b) * mass(law, c) == mass(law, b) * mass(other, c)
                         for b, c in pairs)  # fmt: skip
            assert (first and second) == (other == expected)
            checked += 1
    assert checked > 1_000


@pytest.mark.claim("CD-P2.2", "CD-T3.5.1", "CD-TAB1")
@given(SEEDS, st.integers(2, 5))
def test_conditioning_on_a_disjoint_union_mixes_both_by_weights_that_depend_on_the_input(seed, worlds):
    """Where one of the two events has probability 0, its weight is 0 and its undefined law is left out."""
    rng = np.random.default_rng(seed)
    law = fractions(rng, 2, worlds, zeros=True)
    places = rng.integers(0, 3, size=worlds)  # 0: outside of both
    first, second = places == 1, places == 2
    c, c_prime = masses(law, first), masses(law, second)
    if not (c + c_prime).all():
        with pytest.raises(UsageError, match="positive probability"):
            conditioned(law, first | second)
        return
    weight = (c / (c + c_prime))[:, None]
    parts = [w * conditioned(law, event) for w, event in ((weight, first), (1 - weight, second)) if w.all()]
    assert (conditioned(law, first | second) == sum(parts)).all()


def divergence(p, q):
    """sum p log(p / q), in nats; inf where q excludes a world of p."""
    with np.errstate(divide="ignore"):
        pairs = [(a, b) for a, b in zip(p, q, strict=True) if a > 0]
        return math.fsum(a * (math.log(a) - math.log(b)) if b > 0 else math.inf for a, b in pairs)


@pytest.mark.claim("CD-S1")
@settings(max_examples=25)
@given(SEEDS, st.integers(2, 5))
def test_the_conditional_law_is_nearest_in_the_information_distance(seed, worlds):
    """I(P, P') = sum P' log(P'/P) of Sec. 2 is minus log P(C) at the conditional law, and no less elsewhere."""
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.ones(worlds))
    event = rng.random(worlds) < 0.6
    event[0] = True
    best = conditioned(law[None], event)[0]
    least = -math.log(law[event].sum())
    assert divergence(best, law) == pytest.approx(least, abs=1e-12)
    for other in rng.dirichlet(np.ones(int(event.sum())), size=20):
        spread = np.zeros(worlds)
        spread[event] = other
        assert divergence(spread, law) >= least - 1e-12
    inside = law[event]
    found = optimize.minimize(
        lambda w: divergence(np.abs(w) + 1e-15, inside),
        np.full(len(inside), 1.0 / len(inside)),
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0},
        bounds=[(1e-12, 1.0)] * len(inside),
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.x == pytest.approx(best[event], abs=2e-5)  # flat at the minimum: an error e costs about e^2


@pytest.mark.claim("CD-S8")
def test_as_printed_the_minimum_principle_of_conditioning_singles_out_nothing():
    """I(P', P_M) in the order of Sec. 2 is sum P_M log(P_M / P'), infinite where P' excludes what M does not."""
    data = entry("CD-S8").counterexample
    law, event = np.array(data["law"]), np.array(data["event"])
    best = conditioned(law[None], event)[0]
    for other in ([1.0, 0.0, 0.0], [0.25, 0.75, 0.0], best):
        assert divergence(law, other) == math.inf == float(data["value"])
    assert divergence(best, law) == pytest.approx(-math.log(law[event].sum()))  # the corrected order
    assert divergence([1.0, 0.0, 0.0], law) > divergence(best, law)
    # A line in the plane has probability 0: every law on it has an infinite divergence in both orders.
    assert divergence([1.0, 0.0], [0.0, 1.0]) == math.inf == divergence([0.0, 1.0], [1.0, 0.0])


@pytest.mark.claim("CD-S2", "CD-S9")
@FIXED
@given(SEEDS, st.integers(1, 6))
def test_imaging_moves_the_probability_of_every_world_to_its_closest_one(seed, worlds):
    rng = np.random.default_rng(seed)
    law, points = fractions(rng, 2, worlds), rng.normal(size=(worlds, 2))
    event = rng.random(worlds) < 0.5
    event[rng.integers(worlds)] = True
    nearest = nearest_worlds(points, event)
    for row, moved in zip(law, imaged(law, nearest), strict=True):
        for world in range(worlds):
            assert moved[world] == sum(row[v] for v in range(worlds) if nearest[v] == world)
        assert sum(moved) == 1 and sum(moved[event]) == 1
    for v in range(worlds):
        distances = [np.linalg.norm(points[v] - points[w]) for w in np.flatnonzero(event)]
        assert np.linalg.norm(points[v] - points[nearest[v]]) == min(distances)


@pytest.mark.claim("CD-S3")
@FIXED
@given(SEEDS, st.integers(2, 5), st.fractions(0, 1))
def test_rules_that_respect_mixtures_are_those_of_a_kernel_and_imaging_is_one(seed, worlds, weight):
    """The corrected statement: homomorphic rules move each world's probability by a kernel; imaging by a map.

    Such a rule is fixed by what it does to the single worlds, since every law is their mixture.
    """
    rng = np.random.default_rng(seed)
    p, q = (fractions(rng, 1, worlds) for _ in range(2))
    nearest = rng.integers(0, worlds, size=worlds)
    mixture = weight * p + (1 - weight) * q
    assert (imaged(mixture, nearest) == weight * imaged(p, nearest) + (1 - weight) * imaged(q, nearest)).all()
    kernel = fractions(rng, worlds, worlds)
    assert (mixture @ kernel == weight * (p @ kernel) + (1 - weight) * (q @ kernel)).all()
    one = np.array([[Fraction(int(i == j)) for j in range(worlds)] for i in range(worlds)], dtype=object)
    assert (sum(p[0, v] * (one[v] @ kernel) for v in range(worlds)) == p[0] @ kernel).all()
    assert (imaged(one, nearest) == np.array([one[v] for v in nearest])).all()


@pytest.mark.claim("CD-S3")
def test_as_printed_imaging_is_not_the_only_rule_that_respects_mixtures():
    data = entry("CD-S3").counterexample
    kernel, event = as_fractions(data["kernel"]), np.array(data["event"])
    assert (kernel.sum(axis=1) == 1).all() and (kernel[:, ~event] == 0).all()  # it moves everything into the event
    worlds = len(event)
    for v in np.flatnonzero(event):
        assert kernel[v, v] == 1  # and leaves what is there alone
    for p, q, weight in itertools.product(kernel, kernel, (Fraction(1, 3), Fraction(1, 2))):
        assert ((weight * p + (1 - weight) * q) @ kernel == weight * (p @ kernel) + (1 - weight) * (q @ kernel)).all()
    one = np.array([[Fraction(int(i == j)) for j in range(worlds)] for i in range(worlds)], dtype=object)
    for nearest in itertools.product(np.flatnonzero(event), repeat=worlds):  # no imaging does what it does
        assert (imaged(one, nearest) != one @ kernel).any()


@pytest.mark.claim("CD-S3", "CD-X2.3")
def test_the_example_of_four_worlds():
    """Imaging makes impossible worlds possible and sure events uncertain; conditioning does neither."""
    law = as_fractions([[0, "0.7", "0.3", 0]])  # a and b, a and not b, not a and b, neither
    event = np.array([False, False, True, True])
    assert conditioned(law, event)[0].tolist() == [0, 0, 1, 0]
    moved = imaged(law, [2, 3, 2, 3])[0]
    assert moved.tolist() == [0, 0, Fraction(3, 10), Fraction(7, 10)]
    assert law[0, 3] == 0 < moved[3]
    sure = np.array([False, True, True, False])
    assert masses(law, sure)[0] == 1 > moved[sure].sum()
    for event in events(4, smallest=1):
        if masses(law, event)[0] > 0:
            given_it = conditioned(law, event)
            assert (given_it[0][law[0] == 0] == 0).all() and masses(given_it, sure)[0] == 1


# ---- privacy (Definition 2.4) and conditioning ----------------------------------------------------------------------


@pytest.mark.claim("CD-S7")
@FIXED
@given(SEEDS, st.integers(2, 5))
def test_conditioning_costs_at_most_one_and_gamma(seed, worlds):
    """Exactly: e^((1 + gamma) epsilon) is the mechanism's ratio times the largest ratio of masses, in rationals."""
    law = fractions(np.random.default_rng(seed), 3, worlds)
    for event in events(worlds, smallest=1):
        c = masses(law, event)
        largest = max(c) / min(c)
        assert loss_ratio(conditioned(law, event)) <= loss_ratio(law) * largest
        assert 1 <= largest <= loss_ratio(law)  # gamma in [0, 1]: pairs are taken in both orders


# ---- post-processing of conditioned mechanisms (Lemma 3.4) ----------------------------------------------------------


@pytest.mark.claim("CD-L3.4.2", "CD-TAB1")
@pytest.mark.parametrize("worlds", [2, 3, 4])
def test_conditioning_and_a_function_commute_where_the_event_is_the_preimage(worlds):
    """The corrected statement, for all maps h and all events C: h after M(.|h^-1(C)) = (h after M)(.|C)."""
    law = fractions(np.random.default_rng(20_261_501), 2, worlds)
    differs = 0
    for h, event in itertools.product(itertools.product(range(worlds), repeat=worlds), events(worlds, smallest=1)):
        before = event[list(h)]  # h^-1(C), as an event
        image = pushed(law, h, worlds)
        if not before.any():
            assert (masses(image, event) == 0).all()
            continue
        after = conditioned(image, event)
        assert (pushed(conditioned(law, before), h, worlds) == after).all()
        for factor in FACTORS:
            assert profile(after, factor) <= profile(conditioned(law, before), factor)
        differs += int((pushed(conditioned(law, event), h, worlds) != after).any())
    assert differs > 0  # with the same C on both sides the printed equality fails for some


@pytest.mark.claim("CD-L3.4.2")
def test_as_printed_a_function_before_the_condition_can_lose_what_was_hidden():
    data = entry("CD-L3.4.2").counterexample
    law, event, h = as_fractions(data["law"]), np.array(data["event"]), data["h"]
    assert loss_ratio(conditioned(law, event)) == 1  # M(.|C) keeps every epsilon
    after = conditioned(pushed(law, h, len(event)), event)
    assert loss_ratio(after) == Fraction(data["ratio"]) > 1
    assert (pushed(conditioned(law, event), h, len(event)) != after).any()


# ---- disjoint unions (Theorem 3.5) ----------------------------------------------------------------------------------


def disjoint(worlds):
    """All pairs of disjoint events with a world each."""
    for places in itertools.product(range(3), repeat=worlds):
        marks = np.array(places)
        if (marks == 1).any() and (marks == 2).any():
            yield marks == 1, marks == 2


@pytest.mark.claim("CD-T3.5.2", "CD-TAB1")
@settings(max_examples=50)
@given(SEEDS, st.sampled_from(FACTORS))
def test_a_union_costs_the_ratio_of_its_weights(seed, factor):
    """The corrected statement: (epsilon + eta, delta), e^eta the largest ratio of both weights over the two inputs."""
    law = fractions(np.random.default_rng(seed), 2, 4)
    for first, second in disjoint(4):
        weights = masses(law, first) / (masses(law, first) + masses(law, second))
        eta = max(largest_ratio([w, 1 - w], [v, 1 - v]) for w, v in itertools.permutations(weights, 2))
        delta = max(profile(conditioned(law, event), factor) for event in (first, second))
        assert profile(conditioned(law, first | second), factor * eta) <= delta


@pytest.mark.claim("CD-T3.5.2", "CD-TAB1")
def test_as_printed_two_events_given_which_nothing_is_left_have_a_union_that_tells():
    for name in ("CD-T3.5.2", "CD-TAB1"):
        data = entry(name).counterexample
        law, first, second = as_fractions(data["law"]), np.array(data["first"]), np.array(data["second"])
        assert not (first & second).any()
        assert loss_ratio(conditioned(law, first)) == 1 == loss_ratio(conditioned(law, second))
        assert loss_ratio(conditioned(law, first | second)) == Fraction(data["ratio"]) > 1
