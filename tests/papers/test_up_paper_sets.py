"""The set sequences of the paper on finite spaces: which are partitions, and which make 2 epsilon-DP mechanisms.

`up_literal_sets` has the printed sets in rationals, the mechanisms their level functions; both are compared here.
Counterexamples come from the ledger.
"""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from up_literal_sets import (
    is_partition,
    ladder_sets,
    levels,
    local_sensitivity,
    loss,
    privacy_first_sets,
    random_space,
    space_of,
    staircase_sets,
    widened_sets,
    widened_staircase_sets,
    zero_sets,
)

from dpaudit_mechanisms.ledger import entry
from dpaudit_mechanisms.two_metrics import (
    FiniteSpaces,
    GlobalSensitivity,
    Ladder,
    PrivacyFirst,
    Staircase,
    WidenedPrivacyFirst,
    WidenedStaircase,
)

SEEDS = st.integers(0, 2**32)
EPSILONS = st.sampled_from([0.1, 1.0, 5.0])
ROUNDING = 1e-9


def random_widths(seed, count, most=3):
    """Halves from 0 to `most`; a third of them 0."""
    rng = np.random.default_rng([seed, 1])
    return [Fraction(int(v), 2) for v in rng.integers(0, 2 * most + 1, size=count) * (rng.random(count) < 0.67)]


def floats(values):
    return [float(v) for v in values]


def disjoint_two_apart(space, sets_of):
    """Whether sets whose indices differ by 2 or more are disjoint for every two neighbours."""
    sets = [sets_of(x) for x in space.datasets]
    return not any(
        sets[x][s] & sets[y][t]
        for x, y in space.neighbours
        for s, t in itertools.product(range(len(sets[x])), range(len(sets[y])))
        if abs(s - t) >= 2
    )


def has_the_levels(space, sets_of, mechanism, epsilon):
    """Whether sets are partitions that neighbours shift by one level, whose levels the mechanism has at 2 epsilon."""
    assert disjoint_two_apart(space, sets_of)
    found = levels(space, lambda _, x: sets_of(x))
    assert mechanism.levels.tolist() == found
    assert mechanism.epsilon_exact == pytest.approx(loss(space, found, epsilon), abs=ROUNDING)
    return mechanism.epsilon_exact <= 2.0 * epsilon + ROUNDING


# ---- utility first: staircase and ladder ----------------------------------------------------------------------------


@pytest.mark.claim("UP-S8", "UP-F1", "UP-T1")
@given(SEEDS, EPSILONS, st.sampled_from([Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)]))
def test_staircase_levels_of_neighbours_overlap_in_adjacent_ones_only(seed, epsilon, share):
    space = random_space(seed)
    if space.sensitivity == 0:
        return
    gamma = share * space.sensitivity
    mechanism = Staircase(space.spaces(), epsilon, offset=float(gamma))
    assert has_the_levels(space, lambda x: staircase_sets(space, x, gamma), mechanism, epsilon)


@pytest.mark.claim("UP-T1", "UP-T2")
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_no_smaller_multiple_than_2_epsilon_holds_in_general(epsilon):
    """Two neighbours, one of which has a heavy value at level 0 and the other one at level 1.

    The totals differ by nearly e^epsilon, and so do the weights of the light value, the other way round.
    """
    heavy = FiniteSpaces([[0, 1], [1, 0]], [0, 1], [[0, 1], [1, 0]], measure=[1e6, 1.0])
    for kind in (Staircase, PrivacyFirst, GlobalSensitivity, Ladder):
        assert 1.99 * epsilon < kind(heavy, epsilon).epsilon_exact <= 2.0 * epsilon


@pytest.mark.claim("UP-X8")
@given(SEEDS)
def test_the_staircase_rounds_the_levels_of_the_global_sensitivity_mechanism_up(seed):
    space = random_space(seed)
    if space.sensitivity == 0:
        return
    plain, rounded = GlobalSensitivity(space.spaces(), 1.0), Staircase(space.spaces(), 1.0)
    exact = [[space.kept[space.f[x]][r] / space.sensitivity for r in space.outcomes] for x in space.datasets]
    assert rounded.levels.tolist() == [[math.ceil(b) for b in row] for row in exact]  # "if q then p"
    assert plain.levels == pytest.approx(np.array(exact, dtype=float), rel=1e-12)
    assert plain.epsilon_exact <= 2.0 + ROUNDING
    # and the converse that holds: level k means k - 1 < b <= k
    assert ((rounded.levels - 1.0 < plain.levels + 1e-9) & (plain.levels <= rounded.levels + 1e-9)).all()


@pytest.mark.claim("UP-X10", "UP-F4")
@given(SEEDS, EPSILONS)
def test_the_ladder_with_the_true_value_on_level_0_keeps_2_epsilon(seed, epsilon):
    space = random_space(seed)
    spaces = space.spaces()
    mechanism = Ladder(spaces, epsilon)
    for x, y in space.neighbours:
        for i in range(space.last()):  # (a)
            assert local_sensitivity(space, y, i) <= local_sensitivity(space, x, i + 1)
        assert space.kept[space.f[x]][space.f[y]] <= local_sensitivity(space, x, 0)  # (b)
    if space.sensitivity:
        assert disjoint_two_apart(space, lambda x: ladder_sets(space, x))  # (c), of what the printed sets contain
        with_zero = levels(space, lambda s, x: [{s.f[x]}, *ladder_sets(s, x)])
        assert mechanism.levels.tolist() == with_zero
        assert mechanism.epsilon_exact == pytest.approx(loss(space, with_zero, epsilon), abs=ROUNDING)
        # putting the true value on the first printed level works as well
        joined = [[max(level - 1, 0) for level in row] for row in with_zero]
        assert loss(space, joined, epsilon) <= 2.0 * epsilon + ROUNDING
        for x in space.datasets:
            assert not is_partition(ladder_sets(space, x), space.outcomes)  # as printed f(x) is in no set
    assert mechanism.epsilon_exact <= 2.0 * epsilon + ROUNDING


@pytest.mark.claim("UP-X10")
def test_the_printed_ladder_sets_give_the_input_away():
    space = space_of(entry("UP-X10").counterexample)
    sets = [ladder_sets(space, x) for x in space.datasets]
    assert sets == [[{1}], [{0}]]  # each dataset answers the other one's value with certainty
    assert math.isfinite(Ladder(space.spaces(), 1.0).epsilon_exact)


# ---- privacy first --------------------------------------------------------------------------------------------------


@pytest.mark.claim("UP-T2", "UP-L1")
@given(SEEDS, EPSILONS)
def test_the_privacy_first_sets_are_a_partition_and_keep_2_epsilon(seed, epsilon):
    space = random_space(seed)
    for x in space.datasets:
        sets = privacy_first_sets(space, x)
        for t in range(len(sets)):
            assert set().union(*sets[: t + 1]) == {space.f[y] for y in space.ball(x, t)}
    mechanism = PrivacyFirst(space.spaces(), epsilon)
    assert has_the_levels(space, lambda x: privacy_first_sets(space, x), mechanism, epsilon)


@pytest.mark.claim("UP-S9")
@given(SEEDS)
def test_level_0_has_the_highest_density_and_the_privacy_first_sets_ignore_the_utility_metric(seed):
    space, other = random_space(seed), random_space(seed + 1)
    for kind in (Staircase, PrivacyFirst):
        mechanism = kind(space.spaces(), 1.0)
        density = np.exp(mechanism.log_laws) / mechanism.spaces.measure
        at_truth = density[np.arange(len(space.f)), space.f]
        assert (density <= at_truth[:, None] * (1.0 + 1e-12)).all()
    moved = dataclasses.replace(space, kept=tuple(tuple(7 * v for v in row) for row in space.kept))
    assert np.array_equal(PrivacyFirst(moved.spaces(), 1.0).levels, PrivacyFirst(space.spaces(), 1.0).levels)
    if len(other.hidden) == len(space.hidden) and space.sensitivity:
        changed = dataclasses.replace(space, hidden=other.hidden)
        if changed.sensitivity == space.sensitivity:  # the staircase sees dbar through Delta f alone
            assert np.array_equal(Staircase(changed.spaces(), 1.0).levels, Staircase(space.spaces(), 1.0).levels)


@pytest.mark.claim("UP-S9")
def test_the_staircase_sets_depend_on_the_dataset_metric_through_the_sensitivity():
    data = entry("UP-S9").counterexample
    found = [Staircase(space_of({**data, "dbar": data[name]}).spaces(), 1.0).levels[0].tolist()
             for name in ("dbar", "other_dbar")]  # fmt: skip
    assert found == data["levels"] and found[0] != found[1]


@pytest.mark.claim("UP-S12")
@given(SEEDS)
def test_for_whole_distances_the_level_is_the_distance_to_the_preimage(seed):
    space = random_space(seed, kind="integer")
    nearest = [[min(space.hidden[x][y] for y in space.datasets if space.f[y] == r) for r in space.outcomes]
               for x in space.datasets]  # fmt: skip
    mechanism = PrivacyFirst(space.spaces(), 1.0)
    assert mechanism.levels.tolist() == nearest
    # The exponential mechanism at 2 epsilon: weights exp(2 epsilon q / (2 Delta q)), with Delta q = 1.
    gaps = [abs(nearest[x][r] - nearest[y][r]) for x, y in space.neighbours for r in space.outcomes]
    assert max(gaps) == 1
    weights = np.exp(2.0 * -np.array(nearest, dtype=float) / (2.0 * 1.0)) * floats(space.measure)
    assert np.exp(mechanism.log_laws) == pytest.approx(weights / weights.sum(axis=1, keepdims=True), rel=1e-12)


@pytest.mark.claim("UP-S12")
def test_for_other_distances_the_level_is_rounded_up():
    data = entry("UP-S12").counterexample
    space = space_of({**data, "dbar": [[Fraction(v) for v in row] for row in data["dbar"]]})
    assert PrivacyFirst(space.spaces(), 1.0).levels.tolist() == data["levels"]
    score_law = np.exp(-space.spaces().privacy_metric)
    score_law /= score_law.sum(axis=1, keepdims=True)
    assert np.abs(score_law - np.exp(PrivacyFirst(space.spaces(), 1.0).log_laws)).max() > 0.1


# ---- the compositional mechanisms -----------------------------------------------------------------------------------


@pytest.mark.claim("UP-D-R", "UP-L2", "UP-T3")
@given(SEEDS, EPSILONS)
def test_with_all_nearer_sets_subtracted_the_widened_sets_keep_2_epsilon(seed, epsilon):
    space = random_space(seed)
    widths = random_widths(seed, len(space.f))
    zero = [{r for r in space.outcomes if space.kept[space.f[y]][r] <= widths[y]} for y in space.datasets]

    def sets_of(x):
        return widened_sets(space, x, widths, "ball")

    for x in space.datasets:
        sets = sets_of(x)
        within = [set().union(*(zero[y] for y in space.ball(x, t))) for t in range(len(sets))]
        for t in range(len(sets)):
            assert set().union(*sets[: t + 1]) == within[t]  # (i), with the ball
            assert t == 0 or within[t - 1] <= within[t]  # (ii)
            for r in sets[t]:  # (iii): some dataset of the shell covers r, and none that is nearer
                assert any(r in zero[y] for y in space.shell(x, t))
                assert not any(r in zero[y] for y in space.ball(x, t - 1)) or t == 0
    mechanism = WidenedPrivacyFirst(space.spaces(), epsilon, floats(widths))
    assert has_the_levels(space, sets_of, mechanism, epsilon)


@pytest.mark.claim("UP-D-R", "UP-L2", "UP-T3", "UP-T6", "UP-S11")
@pytest.mark.parametrize("claim_id", ["UP-D-R", "UP-T3", "UP-T6", "UP-L2", "UP-S11"])
def test_the_printed_widened_sets_are_no_partition(claim_id):
    data = entry(claim_id).counterexample
    space = space_of(data)
    sets = widened_sets(space, data["x"], [Fraction(v) for v in data["delta"]])
    assert [i for i, one in enumerate(sets) if data["value"] in one] == data["in_sets"] and len(data["in_sets"]) > 1
    # nor do they delete what R_i has in common with all earlier sets, as the text says of B (UP-D-R)
    assert set.intersection(*sets[:1]) & sets[data["in_sets"][-1]]


@pytest.mark.claim("UP-D-T", "UP-T4")
@given(SEEDS, EPSILONS)
def test_the_widened_staircase_sets_are_a_partition_and_keep_2_epsilon(seed, epsilon):
    space = random_space(seed)
    if space.sensitivity == 0:
        return
    widths = random_widths(seed, len(space.kept))
    zero = zero_sets(space, widths)
    for x, y in itertools.combinations(space.datasets, 2):
        if space.f[x] == space.f[y]:
            assert zero[x] == zero[y]  # eq. (16)
    mechanism = WidenedStaircase(space.spaces(), epsilon, floats(widths))
    assert has_the_levels(space, lambda x: widened_staircase_sets(space, x, widths), mechanism, epsilon)
    plain = levels(space, lambda s, x: widened_staircase_sets(s, x, [0] * len(s.kept)))
    assert plain == levels(space, staircase_sets)  # widths 0 give the staircase


@pytest.mark.claim("UP-T5", "UP-T6", "UP-S10")
@given(SEEDS, EPSILONS, st.sampled_from([0.0, 0.5, 3.0]))
def test_a_penalty_on_unimportant_values_keeps_2_epsilon(seed, epsilon, penalty):
    space = random_space(seed)
    spaces = space.spaces()
    important = np.random.default_rng(seed).random(len(space.kept)) < 0.5
    for kind, count in ((WidenedStaircase, len(space.kept)), (WidenedPrivacyFirst, len(space.f))):
        widths = floats(random_widths(seed, count))
        plain, mechanism = kind(spaces, epsilon, widths), kind(spaces, epsilon, widths, important, penalty)
        assert mechanism.epsilon_exact <= 2.0 * epsilon + ROUNDING
        weights = np.exp(-epsilon * (plain.levels + penalty * ~important)) * spaces.measure  # the printed density
        assert np.exp(mechanism.log_laws) == pytest.approx(weights / weights.sum(axis=1, keepdims=True), rel=1e-9)
        for marks in (np.ones(len(space.kept), dtype=bool), np.zeros(len(space.kept), dtype=bool)):
            same = kind(spaces, epsilon, widths, marks, penalty)  # E = R (UP-S10), and E empty alike
            assert np.exp(same.log_laws) == pytest.approx(np.exp(plain.log_laws), rel=1e-9)
