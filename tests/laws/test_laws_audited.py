"""The laws in black-box form: what they derive is audited as any subject is, and so is a planted fault of each.

Error rates. Every audit here has confidence 1 - 1e-9, for all its pairs and bounds together. Sound subjects: a false
alarm has probability at most 1e-9 an audit; with some 50 audits that is 5e-8 for the file. Faults: the comments give
their exact losses. The closest call is convexity with the epsilons averaged: of some 1,000 guesses 0.88 are right, 0.73
are allowed, and 1e-9 needs 0.82: 6 standard deviations, so a fixed test that knows the event misses it with probability
below 1e-8. The seeds are fixed.
"""

import math

import numpy as np
import pytest

import dpaudit
from dpaudit import laws
from dpaudit.errors import UsageError
from dpaudit.exact import FiniteMechanism
from dpaudit.laws import LAWS
from dpaudit.privacy.claims import MetricDP, PureDP
from dpaudit.privacy.metrics import AbsoluteMetric
from dpaudit_mechanisms.laplace import Laplace

CONFIDENCE = 1.0 - 1e-9
NO_DOUBLES = {"floating_point": False, "confidence": CONFIDENCE}


def audited(subject, claim, samples=4_000, seed=20_261_121, **options):
    return dpaudit.audit(subject, claim=claim, samples=samples, seed=seed, **NO_DOUBLES, **options)


# ---- every law on subjects of its own -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_what_a_law_derives_keeps_its_claim(law):
    """Of outputs that cannot be listed; where they can, `test_derived_densities.py` has both sides exactly."""
    subject, claim = law.derive(Laplace(1.0), PureDP(1.0))
    result = audited(subject, claim, samples=1_000)
    assert result.verdict != "violated" and result.findings


# ---- a fault of each law, planted ------------------------------------------------------------------------------------


class SharedNoise:
    """x + U and 2 x + U with one U: each is fine alone; the difference of the two is x."""

    def sample(self, data, size, rng):
        noise = rng.laplace(size=size)
        return np.stack([data + noise, data + 0.5 * noise], axis=1)


def test_composition_that_shares_its_noise_is_violated():
    # y1 - 2 y2 = -x: an infinite loss. Independent noise keeps the claim.
    claim = laws.sequential_composition([Laplace(1.0), Laplace(2.0)], [PureDP(1.0), PureDP(2.0)])[1]
    assert claim == PureDP(3.0)

    def difference(outputs):
        return np.round(outputs[:, 0] - 2.0 * outputs[:, 1], 6)

    shared, claim = laws.post_processing(SharedNoise(), claim, difference)
    assert audited(shared, claim, pairs=[(0.0, 1.0)]).verdict == "violated"
    sound, claim = laws.sequential_composition([Laplace(1.0), Laplace(2.0)], [PureDP(1.0), PureDP(2.0)])
    sound, claim = laws.post_processing(sound, claim, difference)
    assert audited(sound, claim, pairs=[(0.0, 1.0)]).verdict != "violated"


class PeekingPostProcessing:
    """Rounds towards a grid that the input shifts."""

    def sample(self, data, size, rng):
        return np.round(data + rng.laplace(size=size) - 0.25 * data) + 0.25 * data


def test_post_processing_that_peeks_is_violated():
    sound, claim = laws.post_processing(Laplace(1.0), PureDP(1.0), np.round)
    assert audited(sound, claim).verdict != "violated"
    assert audited(PeekingPostProcessing(), claim, pairs=[(0.0, 1.0)]).verdict == "violated"  # infinite loss


def test_group_privacy_under_a_metric_adds_up_along_the_chain():
    metric = MetricDP(AbsoluteMetric(1.0))
    subject, claim = laws.group_privacy(Laplace(1.0), metric, 2, pairs=[(0.0, 1.0), (1.0, 3.0), (0.0, 0.5)])
    ends = {(pair.x, pair.x_prime): claim.for_pair(pair.x, pair.x_prime).value for pair in subject.pairs()}
    assert ends == {(0.0, 3.0): 3.0, (1.0, 0.5): 1.5}  # 1 to 0.5 goes through 0: 1 + 0.5
    assert audited(subject, claim).verdict != "violated"


def weights_of(data):
    return (0.9, 0.1) if data == 0 else (0.1, 0.9)


ALIKE = [FiniteMechanism([[1.0, 0.0], [1.0, 0.0]]), FiniteMechanism([[0.0, 1.0], [0.0, 1.0]])]


def test_a_mixture_whose_weights_depend_on_the_input_is_violated_unless_it_pays():
    # Two constants, chosen by the input: log 9 = 2.2 nats for a claim of 0.5 each.
    claims = [PureDP(0.5)] * 2
    free, kept = laws.mixture(ALIKE, claims, [0.5, 0.5], pairs=[(0, 1)])
    assert kept == PureDP(0.5) and audited(free, kept).verdict != "violated"
    paid, sum_of_both = laws.mixture(ALIKE, claims, weights_of, choice_claim=PureDP(math.log(9.0)), pairs=[(0, 1)])
    assert sum_of_both == PureDP(0.5 + math.log(9.0)) and audited(paid, sum_of_both).verdict != "violated"
    assert audited(paid, kept).verdict == "violated"


@pytest.mark.claim("CD-S7")
def test_conditioning_with_the_budget_not_enlarged_is_violated():
    # On 1 nat without a condition; given C = {0, 1} the loss of outcome 0 is log(0.1978 / 0.0323) = 1.81.
    q = np.array([0.02, 0.6, 0.38])
    p = np.array([0.02 * math.e, 0.6 / math.e, 1.0 - 0.02 * math.e - 0.6 / math.e])
    mechanism = FiniteMechanism([p, q])
    assert mechanism.privacy_loss(0, 1) == pytest.approx(1.0)
    subject, claim = laws.conditioning(mechanism, PureDP(1.0), lambda y: y < 2)
    assert claim == PureDP(2.0)
    assert audited(subject, claim, samples=20_000).verdict != "violated"
    assert audited(subject, PureDP(1.0), samples=20_000).verdict == "violated"


def by_value(data):
    return [record for record in data if record < 10], [record for record in data if record >= 10]


def noisy_count(data, size, rng):
    return len(data) + rng.laplace(size=size)


def test_parallel_composition_by_value_pays_twice_where_a_record_is_replaced():
    replaced, removed = [([1, 2], [11, 2])], [([1, 2], [2])]
    two, claim = laws.parallel_composition(
        [noisy_count] * 2, [PureDP(1.0)] * 2, by_value, changed_pieces=2, pairs=replaced
    )
    assert claim == PureDP(2.0) and audited(two, claim).verdict != "violated"
    assert audited(two, PureDP(1.0), samples=20_000).verdict == "violated"  # the record leaves one and enters the other
    one, claim = laws.parallel_composition([noisy_count] * 2, [PureDP(1.0)] * 2, by_value, pairs=removed)
    assert claim == PureDP(1.0) and audited(one, claim).verdict != "violated"


# ---- what rounding leaves of equalities ------------------------------------------------------------------------------


@pytest.mark.parametrize(("x", "x_prime"), [(0.479051298140834, 0.15973891463707857), (0.1, 0.7)])
def test_noise_on_equalities_tells_nothing_by_its_residual(x, x_prime):
    """Of answer + noise along the solutions, z_1 + z_2 - 1 is rounding of the answer, which refuted the claim."""
    move = lambda share: np.array([share, 1.0 - share])  # noqa: E731
    claim = PureDP(2.0 * abs(x - x_prime))
    subject, kept = laws.linear_conditioning(move, claim, [[1.0, 1.0]], [1.0], pairs=[(x, x_prime)])
    assert kept == claim and audited(subject, claim).verdict != "violated"


def test_outputs_on_equalities_follow_from_their_free_coordinates():
    """Three rows of which one follows from the others, so that three of five coordinates are free."""
    rows, values = [[1.0, 1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0, 3.0], [1.0, 1.0, 2.0, -1.0, 3.0]], [7.0, 0.5, 7.5]
    answer = lambda share: np.array([share, 3.0 * share, 7.0 - 4.0 * share, 6.5 - 4.0 * share, 0.0])  # noqa: E731
    subject, _ = laws.linear_conditioning(answer, PureDP(1.0), rows, values)
    outputs = subject.sample(0.3, 500, np.random.default_rng(1))
    assert outputs @ np.array(rows).T == pytest.approx(np.tile(values, (500, 1)), abs=1e-9)
    assert np.array_equal(subject._completed(outputs.copy()), outputs)  # a function of three of them, whatever x is


@pytest.mark.parametrize(("coefficient", "scale"), [(1e-12, 1.0), (1e-310, 1.0), (1.0, 1e-12)])
def test_answers_off_the_equalities_are_seen_in_any_unit(coefficient, scale):
    """Answers five scales apart, one of them off the equality: their loss is 10 for a claim of 5."""
    answer = lambda share: np.array([5.0 * share * scale, 0.0])  # noqa: E731
    subject, _ = laws.linear_conditioning(answer, PureDP(5.0), [[coefficient] * 2], [0.0], scale=scale)
    assert subject.centre(0.0).tolist() == [0.0, 0.0]
    with pytest.raises(UsageError, match="answer must satisfy the equalities"):
        subject.centre(1.0)


def test_rows_of_any_unit_leave_the_law_as_it_is():
    """Of the rows as they were, 12 digits apart, the solutions were known to two digits, and so the law."""
    rows = [[1e-12, 2e-12, 3e-12, 4e-12], [1e9, -1e9, 5e8, 2e9], [3.0, 1.0, 4.0, 1.0]]
    answer = lambda share: np.array([1.0, -2.0, 0.5, 3.0])  # noqa: E731
    found, plain = (
        laws.linear_conditioning(answer, PureDP(1.0), a, a @ answer(0.0))[0].sample(0.0, 9, np.random.default_rng(1))
        for a in (np.array(rows), np.array(rows) / np.abs(rows).max(axis=1)[:, None])
    )
    assert found == pytest.approx(plain, rel=1e-9) or found == pytest.approx(2.0 * answer(0.0) - plain, rel=1e-9)


def test_equalities_that_nearly_depend_on_each_other_are_refused():
    """Their difference allows answers 10,000 scales apart within rounding."""
    with pytest.raises(UsageError, match="matrix must have rows that are clearly independent"):
        laws.linear_conditioning(abs, PureDP(1.0), [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0 + 1e-10]], [0.0, 0.0])
