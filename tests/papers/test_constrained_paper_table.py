"""The paper on constrained privacy, on finite worlds and in rationals: composition, imaging, mixtures, table 1.

As in `test_constrained_paper_worlds.py`.
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
    loss_ratio,
    mixed,
    nearest_worlds,
    product,
    profile,
    transition_matrix,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit_mechanisms.constrained.finite import conditioned, imaged, masses
from dpaudit_mechanisms.ledger import entry

FIXED = settings(max_examples=200)
SEEDS = st.integers(0, 2**32)
FACTORS = (Fraction(1), Fraction(3, 2), Fraction(3))  # e^epsilon


# ---- composition (Lemmas 3.6 and 3.10) ------------------------------------------------------------------------------


@pytest.mark.claim("CD-L3.6", "CD-TAB1")
@FIXED
@given(SEEDS)
def test_losses_of_independent_conditioned_mechanisms_add_up(seed):
    rng = np.random.default_rng(seed)
    laws = [fractions(rng, 2, 3) for _ in range(2)]
    chosen = [events(3, smallest=1)[i] for i in rng.integers(7, size=2)]
    both = np.array([a and b for a in chosen[0] for b in chosen[1]])
    joint = conditioned(product(*laws), both)
    assert (joint == product(*(conditioned(law, event) for law, event in zip(laws, chosen, strict=True)))).all()
    assert loss_ratio(joint) <= math.prod(loss_ratio(conditioned(law, e)) for law, e in zip(laws, chosen, strict=True))


@pytest.mark.claim("CD-L3.10", "CD-TAB1")
@FIXED
@given(SEEDS)
def test_losses_of_independent_imaged_mechanisms_add_up(seed):
    rng = np.random.default_rng(seed)
    laws, points = [fractions(rng, 2, 3) for _ in range(2)], [rng.normal(size=(3, 1)) for _ in range(2)]
    chosen = [events(3, smallest=1)[i] for i in rng.integers(7, size=2)]
    maps = [nearest_worlds(p, e) for p, e in zip(points, chosen, strict=True)]
    both = np.array([a and b for a in chosen[0] for b in chosen[1]])
    pairs = np.array([[a, b] for a in points[0][:, 0] for b in points[1][:, 0]])
    joint = imaged(product(*laws), nearest_worlds(pairs, both))  # the nearest pair is the pair of the nearest
    assert (joint == product(*(imaged(law, m) for law, m in zip(laws, maps, strict=True)))).all()
    assert loss_ratio(joint) <= math.prod(loss_ratio(law) for law in laws)


# ---- imaging (Section 3) --------------------------------------------------------------------------------------------


@pytest.mark.claim("CD-L3.7", "CD-L3.8", "CD-S11", "CD-TAB1")
@FIXED
@given(SEEDS, st.sampled_from(FACTORS))
def test_imaging_loses_no_more_for_any_closest_world_map(seed, factor):
    """For any map, a function of an imaged output among them: the corrected statement of CD-L3.8."""
    rng = np.random.default_rng(seed)
    law, nearest = fractions(rng, 2, 5), rng.integers(0, 5, size=5)
    assert profile(imaged(law, nearest), factor) <= profile(law, factor)
    for event in events(5):  # the printed identity: P[M_C in B] = P[M in f^-1(B)]
        assert (masses(imaged(law, nearest), event) == masses(law, event[nearest])).all()


@pytest.mark.claim("CD-L3.8", "CD-TAB1")
def test_as_printed_a_function_before_imaging_can_lose_what_imaging_hid():
    """On the line: outputs 1 and 2 both move to the end of C = (-inf, 0]; their negatives lie inside."""
    data = entry("CD-L3.8").counterexample
    outputs, end = data["outputs"], data["end"]

    def image(y):
        return min(y, end)

    assert len({image(y) for y in outputs}) == 1  # M_C is one and the same for both inputs
    assert {image(data["factor"] * y) for y in outputs} == {-1, -2}  # (h after M)_C tells them apart
    assert len({data["factor"] * image(y) for y in outputs}) == 1  # h after M_C does not: the corrected statement


@pytest.mark.claim("CD-T3.9.1", "CD-T3.9.2", "CD-S12", "CD-TAB1")
@FIXED
@given(SEEDS, st.sampled_from(FACTORS), st.integers(2, 3))
def test_imaging_commutes_with_mixtures_which_keep_what_all_parts_keep(seed, factor, count):
    """Axiom of choice of Kifer and Lin: a coin that knows nothing of the data may choose the mechanism (count = 2)."""
    rng = np.random.default_rng(seed)
    laws, weights = [fractions(rng, 2, 4) for _ in range(count)], fractions(rng, 1, count)[0]
    nearest = rng.integers(0, 4, size=4)
    moved = [imaged(law, nearest) for law in laws]
    assert (imaged(mixed(laws, weights), nearest) == mixed(moved, weights)).all()
    assert profile(mixed(moved, weights), factor) <= max(profile(law, factor) for law in moved)


@pytest.mark.claim("CD-TAB1.mix", "CD-TAB1")
def test_conditioning_does_not_commute_with_mixtures():
    """Two worlds in the event and one outside; a mixture that keeps no loss has conditioned parts that keep none."""
    p, q = as_fractions([["0.1", "0.1", "0.8"]]), as_fractions([["0.8", 0, "0.2"]])
    event, half = np.array([True, True, False]), Fraction(1, 2)
    mixture = conditioned(mixed([p, q], [half, half]), event)
    assert mixture[0, 1] == Fraction(1, 10)
    assert mixed([conditioned(p, event), conditioned(q, event)], [half, half])[0, 1] == Fraction(1, 4)


@pytest.mark.claim("CD-TAB1.mix")
def test_and_its_privacy_is_not_that_of_the_parts():
    """Both conditioned parts say nothing, the conditioned mixture does: its weights come to depend on the data."""
    first = as_fractions([["0.4", 0, "0.6"], ["0.1", 0, "0.9"]])
    second = as_fractions([[0, "0.1", "0.9"], [0, "0.4", "0.6"]])
    event = np.array([True, True, False])
    assert loss_ratio(conditioned(first, event)) == 1 == loss_ratio(conditioned(second, event))
    half = Fraction(1, 2)
    assert loss_ratio(conditioned(mixed([first, second], [half, half]), event)) == 4


@pytest.mark.claim("CD-TAB1.uni", "CD-TAB1")
def test_imaging_onto_a_union_is_no_mixture_of_both_images():
    """Three points on a line, C the first two, C' the third: no weight works."""
    law, points = as_fractions([["0.5", "0.2", "0.3"]]), np.array([[0.0], [1.0], [2.0]])
    first, second = np.array([True, True, False]), np.array([False, False, True])
    union, one, other = (imaged(law, nearest_worlds(points, event))[0] for event in (first | second, first, second))
    assert union.tolist() == law[0].tolist()
    # On C both have to have one ratio: 5 to 2 in the union, 5 to 5 in the image onto C; C' has neither world.
    assert union[0] / union[1] != one[0] / one[1] and other[0] == other[1] == 0


# ---- Metropolis-Hastings on a grid (Appendix B) ---------------------------------------------------------------------


@pytest.mark.claim("CD-S16", "CD-A1")
@FIXED
@given(SEEDS, st.integers(2, 5))
def test_metropolis_hastings_is_in_detailed_balance_with_its_target(seed, states):
    """In rationals, for proposals that are not symmetric and leave moves out, and with infeasible states."""
    rng = np.random.default_rng(seed)
    proposal = fractions(rng, states, states, zeros=True)
    kept = [Fraction(1), *map(Fraction, rng.integers(0, 2, size=states - 1).tolist())]
    target = fractions(rng, 1, states)[0] * np.array(kept, dtype=object)
    moves = transition_matrix(target, proposal)
    assert (moves.sum(axis=1) == 1).all() and (moves >= 0).all()
    feasible = np.flatnonzero(target > 0)
    for i, j in itertools.product(feasible, repeat=2):
        assert target[i] * moves[i, j] == target[j] * moves[j, i]
    assert (target @ moves == target).all()  # so that the target is invariant
    for i in feasible:
        assert (moves[i][target == 0] == 0).all()  # and an infeasible state is never entered


@pytest.mark.claim("CD-S18")
def test_an_invariant_is_an_output_of_the_mechanism_that_tells_whether_it_holds():
    """The part that can be checked: with M'(D) = [M(D) in C] the law given C is the law given that M' says yes."""
    law = fractions(np.random.default_rng(20_261_502), 2, 4)
    for event in events(4, smallest=1):
        for row, given_it in zip(law, conditioned(law, event), strict=True):
            joint = {(w, bool(event[w])): row[w] for w in range(4)}
            says_yes = sum(p for (_, told), p in joint.items() if told)
            assert [joint.get((w, True), 0) / says_yes for w in range(4)] == given_it.tolist()
