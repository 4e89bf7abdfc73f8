"""Derived subjects as subjects: shapes, densities, independent randomness, replay, pickling, odd outputs, refusals."""

import math
import pickle

import numpy as np
import pytest
from scipy import stats
from support.refusals import refusals

import dpaudit
from dpaudit import laws
from dpaudit.errors import SubjectError, UsageError
from dpaudit.features.outcomes import read_outputs
from dpaudit.laws import LAWS, NASTY_FUNCTIONS
from dpaudit.laws.derived import draw, joined, merged
from dpaudit.privacy.claims import ApproxDP, GaussianDP, MetricDP, PureDP, ZeroConcentratedDP
from dpaudit.privacy.metrics import AbsoluteMetric, DiscreteMetric
from dpaudit.privacy.neighbours import NeighbourClaim
from dpaudit.privacy.trade_off import FDP
from dpaudit.subjects.call_outcomes import Failed
from dpaudit.subjects.callables import as_subject
from dpaudit_mechanisms.geometric import Geometric
from dpaudit_mechanisms.laplace import Laplace
from dpaudit_mechanisms.randomised_response import RandomisedResponse

BY_NAME = {law.name: law for law in LAWS}
LAW_IDS = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)


def stream(seed=7):
    return np.random.default_rng(seed)


def texts(data, size, rng):
    """Text, None and numbers, at random: the odd outputs of a user's mechanism."""
    return [["a", None, 3.5, 2][value] for value in rng.integers(0, 4, size=size)]


# ---- every law -------------------------------------------------------------------------------------------------------


@LAW_IDS
@pytest.mark.parametrize(
    "mechanism", [RandomisedResponse(1.0, 3), Laplace(1.0, (1.0, 1.0)), texts], ids=["rr", "l2", "text"]
)
def test_a_derived_subject_gives_as_many_outputs_as_asked_and_the_same_for_a_seed(law, mechanism):
    claim = getattr(mechanism, "claim", PureDP(1.0))
    pairs = None if hasattr(mechanism, "pairs") else [(0, 1), (1, 2)]
    subject, derived = law.derive(mechanism, claim, pairs)
    data = subject.pairs()[0].x
    first, again = (subject.sample(data, 20, stream()) for _ in range(2))
    assert len(first) == 20 and isinstance(derived, dpaudit.Claim)
    assert read_outputs(first, 20).as_objects().tokens.tolist() == read_outputs(again, 20).as_objects().tokens.tolist()
    assert len(subject.sample(data, 1, stream())) == 1 and len(subject.sample(data, 0, stream())) == 0
    assert as_subject(subject).name == subject.name and subject.replayable


@LAW_IDS
def test_a_derived_subject_can_be_pickled_and_has_a_steady_fingerprint(law):
    subject, _ = law.derive(RandomisedResponse(1.0, 3), PureDP(1.0))
    copy = pickle.loads(pickle.dumps(subject))
    data = subject.pairs()[0].x
    assert np.array_equal(subject.sample(data, 10, stream()), copy.sample(data, 10, stream()))
    other, _ = law.derive(RandomisedResponse(1.0, 3), PureDP(1.0))
    assert as_subject(subject).fingerprint == as_subject(other).fingerprint
    different, _ = law.derive(RandomisedResponse(1.5, 3), PureDP(1.0))
    assert as_subject(subject).fingerprint != as_subject(different).fingerprint


@LAW_IDS
def test_a_law_leaves_the_input_as_it_is(law):
    data = np.array([1.0, 2.0])
    subject, _ = law.derive(Laplace(1.0, (1.0, 1.0)), PureDP(1.0), [(data, data + 1.0), (data + 1.0, data + 2.0)])
    subject.sample(subject.pairs()[0].x, 5, stream())
    assert data.tolist() == [1.0, 2.0]


def test_the_laws_have_unique_names_and_say_what_they_do_not_apply_to():
    assert len({law.name for law in LAWS}) == len(LAWS) >= 20
    alone = RandomisedResponse(1.0, 2)  # one pair: no chain of two
    assert not BY_NAME["group privacy"].applies(alone, PureDP(1.0))
    assert not BY_NAME["group privacy"].applies(lambda data: data, PureDP(1.0))
    assert BY_NAME["conditioning"].applies(alone, ZeroConcentratedDP(1.0))
    profile = dpaudit.ProfileClaim(lambda epsilon: 0.1)
    assert not BY_NAME["sequential composition"].applies(alone, profile)
    with pytest.raises(UsageError, match="claim must be a claim, got 'eps=1'"):
        BY_NAME["mixture"].derive(alone, "eps=1")


def test_what_the_laws_of_the_list_promise_for_a_pure_claim():
    paid = {"sequential composition": 2.0, "adaptive composition": 2.0, "group privacy": 2.0}
    # The event of half of the mass at least: log of e^-1 + (1 - e^-1) / (1/2) is paid beside epsilon.
    paid["conditioning"] = 1.0 + math.log(2.0 - math.exp(-1.0))
    for law in LAWS:
        _, claim = law.derive(Laplace(1.0), PureDP(1.0), [(0.0, 1.0), (1.0, 2.0)])
        assert claim.value == pytest.approx(paid.get(law.name, 1.0), rel=1e-12), law.name
        assert type(claim) is PureDP


# ---- laws of samples -------------------------------------------------------------------------------------------------

# Kolmogorov-Smirnov tests below reject a right sampler with probability 1e-6 each (fixed seed); each stands beside a
# wrong law that the same test must reject.
LEVEL = 1e-6


def test_laplace_noise_on_a_line_and_a_plane_has_its_conditional_law():
    def zero(data):
        return np.zeros(2 if data == "line" else 3)

    line, _ = laws.linear_conditioning(zero, PureDP(1.0), [[1.0, 1.0]], [0.0])
    first = line.sample("line", 20_000, stream())[:, 0]
    assert stats.kstest(first, stats.laplace(scale=0.5).cdf).pvalue > LEVEL  # e^(-|t|-|t|)
    assert stats.kstest(first, stats.laplace(scale=0.6).cdf).pvalue < LEVEL
    plane, _ = laws.linear_conditioning(zero, PureDP(1.0), [[1.0, 1.0, 1.0]], [0.0])
    first = plane.sample("plane", 20_000, stream())[:, 0]

    def cdf(t):  # of the density (1 + |t|) e^(-2|t|) / 1.5 of CD-U2
        u = np.abs(t)
        upper = np.exp(-2.0 * u) * (0.5 * (1.0 + u) + 0.25) / 1.5
        return np.where(t > 0, 1.0 - upper, upper)

    assert stats.kstest(first, cdf).pvalue > LEVEL
    assert stats.kstest(1.2 * first, cdf).pvalue < LEVEL
    assert np.var(first) == pytest.approx(5.0 / 6.0, abs=0.08)  # 5 / 6 of CD-U3; 0.08 is 5 standard errors, 0.016 each


# ---- outputs of any kind ---------------------------------------------------------------------------------------------


def test_joined_runs_read_alike_as_an_array_and_as_objects():
    numbers, vectors = np.array([1, 2]), np.array([[0.5, 1.5], [2.5, 3.5]])
    array = joined([numbers, vectors], 2)
    objects = joined([[1, 2], [np.array([0.5, 1.5]), np.array([2.5, 3.5])]], 2)
    assert isinstance(array, np.ndarray) and isinstance(objects, list)
    assert read_outputs(array, 2).as_objects().tokens.tolist() == read_outputs(objects, 2).as_objects().tokens.tolist()
    mixed = joined([numbers, ["a", None]], 2)
    assert mixed == [(1.0, "a"), (2.0, None)]
    large = joined([np.array([2**60 + 1])], 1)  # no double is equal to it
    assert isinstance(large, list) and large == [(2**60 + 1,)]  # an array would be compared as doubles


def test_merged_runs_do_not_depend_on_what_else_is_in_the_batch():
    rows = merged(3, [(np.array([0, 2]), np.array([1.0, 3.0])), (np.array([1]), ["b"])])
    assert rows == [1.0, "b", 3.0]
    assert merged(2, [(np.array([1]), np.array([7])), (np.array([0]), np.array([8]))]).tolist() == [8.0, 7.0]
    assert merged(0, []) == []


class Failing:
    """Raises for input 1, one call a draw."""

    def __call__(self, data, rng):
        if data == 1 and rng.random() < 0.5:
            raise KeyError("missing")
        return float(rng.integers(0, 2))


@pytest.mark.parametrize("name", ["sequential composition", "post-processing by rounding", "mixture", "conditioning"])
def test_a_part_that_raises_is_an_outcome_that_the_audit_sees(name):
    subject, claim = BY_NAME[name].derive(Failing(), PureDP(0.1), [(0, 1)])
    outputs = subject.sample(1, 50, stream())
    assert any("raised KeyError" in token for token in read_outputs(outputs, 50).as_objects().tokens)
    # With probability 0.5 an outcome that the other input does not have: found for sure with 2,000 runs.
    result = dpaudit.audit(subject, claim=claim, samples=2_000, seed=1, confidence=1 - 1e-9)
    assert result.verdict == "violated"


def test_what_is_made_of_an_output_stands_at_the_place_of_its_run():
    def sometimes(data, rng):
        value = float(rng.integers(0, 6))
        if value == 0.0:
            raise KeyError("missing")
        return value

    doubled, _ = laws.post_processing(sometimes, PureDP(1.0), lambda outputs: [2.0 * output for output in outputs])
    plain, found = as_subject(sometimes).sample(0, 40, stream()), doubled.sample(0, 40, stream())
    assert [output if isinstance(output, Failed) else 2.0 * output for output in plain] == found
    assert any(isinstance(output, Failed) for output in found)


class FailingBatch:
    """A vectorised mechanism that raises for one input."""

    def sample(self, data, size, rng):
        if data == 1:
            raise ValueError("no such record")
        return np.zeros(size)


def test_what_a_vectorised_part_raises_comes_through_as_it_is():
    subject, claim = laws.sequential_composition([FailingBatch(), Laplace(1.0)], [PureDP(0.1), PureDP(1.0)])
    with pytest.raises(ValueError, match="no such record"):
        subject.sample(1, 5, stream())
    result = dpaudit.audit(subject, claim=claim, pairs=[(0, 1)], samples=2_000, seed=1, confidence=1 - 1e-9)
    assert result.verdict == "violated"


# ---- nasty functions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", NASTY_FUNCTIONS, ids=lambda function: function.name)
def test_a_nasty_function_treats_each_output_by_itself(function):
    outputs = np.concatenate([stream().normal(scale=3.0, size=(6, 3)), [[0.0, -0.0, np.nan], [np.inf, 1e300, -1e-300]]])
    if function.is_randomised:
        assert len(function(outputs, stream())) == 8
        with pytest.raises(UsageError, match="rng must be a generator for the randomised function"):
            function(outputs)
        return
    whole = read_outputs(function(outputs), 8).as_objects().tokens
    alone = [read_outputs(function(outputs[[k]]), 1).as_objects().tokens[0] for k in range(8)]
    listed = read_outputs(function([*outputs, "text", None])[:8], 8).as_objects().tokens
    assert whole.tolist() == alone == listed.tolist()
    assert len(function([Failed("KeyError", ""), "text", None, [1, "a"], {}])) == 5


# ---- refusals --------------------------------------------------------------------------------------------------------

RR = RandomisedResponse(1.0)
ONE = PureDP(1.0)


test_laws_refuse_what_they_have_no_rule_for = refusals(
    (lambda: laws.sequential_composition([RR], [ONE, ONE]), "claims must"),
    (lambda: laws.sequential_composition([], []), "mechanisms must"),
    (lambda: laws.sequential_composition([RR, RR], [ONE, GaussianDP(1.0)]), "families with one composition rule"),
    (lambda: laws.adaptive_composition(RR, ONE, [RR], [ONE], None), "choose must"),
    (lambda: laws.post_processing(RR, ONE, 3), "function must"),
    (lambda: laws.mixture([RR, RR], [ONE, ONE], [0.5, 0.6]), "weights must"),
    (lambda: laws.mixture([RR, RR], [ONE, ONE], lambda data: (1, 0)), "choice_claim must"),
    (lambda: laws.mixture([RR], [ONE], [1.0], choice_claim=ONE), "choice_claim must"),
    (lambda: laws.conditioning(RR, ApproxDP(1.0, 0.1), lambda y: y > 0), "needs no mass of the event"),
    (lambda: laws.conditioning(RR, ONE, 3), "event must"),
    (lambda: laws.group_privacy(RR, ONE, 0), "steps must"),
    (lambda: laws.group_privacy(RR, ONE, 10**400), "steps must be a whole number of at least 1, got a number above"),
    (lambda: laws.group_privacy(RR, ONE, 2), "two inputs that are 2 steps apart"),
    (lambda: laws.group_privacy(lambda data: 0, MetricDP(AbsoluteMetric()), 2), "pairs must"),
    (lambda: laws.parallel_composition([RR], [ONE], lambda d: (d,), changed_pieces=2), "at most the number of"),
    (lambda: laws.linear_conditioning(abs, ONE, [[1.0, 1.0]], [0.0], noise="cauchy"), "noise must"),
    (lambda: laws.linear_conditioning(abs, GaussianDP(1), [[1.0, 1.0]], [0.0]), "laplace noise keeps on linear"),
    (lambda: laws.linear_conditioning(abs, ONE, np.eye(2), [0.0, 0.0]), "leave from 1 to 6 free dimensions, got 0"),
    (lambda: laws.linear_conditioning(abs, ONE, [[1.0], [1.0]], [0.0, 1.0]), "values must"),
    (lambda: laws.linear_conditioning(abs, ONE, [[1.0, 1.0]], [1.0, 2.0]), "one number a row of matrix"),
    (lambda: laws.linear_conditioning(abs, ONE, "a", [1.0]), "matrix and values must"),
    (lambda: laws.BoxProjection(1.0, 0.0), "low must"),
    (lambda: laws.BoxProjection("a", "b"), "low must"),
    (lambda: laws.sequential_composition(RR, ONE), "mechanisms must"),
    (lambda: laws.sequential_composition([RR], ONE), "claims must"),
    (lambda: laws.mixture([RR, RR], [ONE, ONE], 0.5), "weights must"),
    (lambda: laws.convexity([RR], [ONE], lambda data: [1.0]), "weights must"),
    (lambda: laws.parallel_composition([RR], [ONE], 3), "split must"),
    (
        lambda: laws.parallel_composition([RR], [MetricDP(AbsoluteMetric())], lambda d: ())[1].for_pair(0, 1),
        "split must",
    ),
    (lambda: laws.linear_conditioning(3, ONE, [[1.0, 1.0]], [0.0]), "answer must"),
)


def test_a_metric_on_pieces_adds_up_and_equal_pieces_cost_nothing():
    metric = MetricDP(AbsoluteMetric(1.0))
    _, claim = laws.parallel_composition([Geometric(1.0), Geometric(1.0)], [metric, PureDP(0.5)], lambda data: data)
    assert claim.for_pair((0, 0), (3, 0)) == PureDP(3.0)
    assert claim.for_pair((0, 0), (3, 1)) == PureDP(3.5)


def test_inputs_made_of_two_are_asked_for_no_relation_of_their_own():
    # ([1], [1]) and ([1, 2], [1]) are no datasets of which one has one more record: the check of the law was an error
    line = [(0.0, 0.5), (0.5, 0.0), (1.0, 0.0)]
    for claim in (FDP(add=line, remove=line), NeighbourClaim(ONE, "replace_one")):
        with pytest.raises(UsageError, match="family that has one budget for all pairs, or a metric"):
            BY_NAME["parallel composition"].derive(Laplace(1.0), claim, [([1], [1, 2])])


def test_groups_are_the_ends_of_shortest_chains_of_so_many_steps():
    chain, apart = [(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)], [(7.0, 8.0)]  # apart: joined to nothing else

    def ends(claim, steps):
        far, derived = laws.group_privacy(Laplace(1.0), claim, steps, pairs=chain + apart)
        return [(pair.x, pair.x_prime) for pair in far.pairs()], derived

    assert ends(PureDP(1.0), 1)[0] == chain + apart
    assert ends(PureDP(1.0), 2)[0] == [(0.0, 2.0), (1.0, 3.0)]
    assert ends(PureDP(1.0), 3) == ([(0.0, 3.0)], PureDP(3.0))
    found, claim = ends(MetricDP(AbsoluteMetric(0.5)), 3)
    assert found == [(0.0, 2.0), (0.0, 3.0), (1.0, 3.0)]
    assert [claim.for_pair(*pair).value for pair in found] == [1.0, 1.5, 1.0]


def test_chains_and_pieces_go_through_what_no_mechanism_tells_apart():
    """Equal tables were different inputs, and 0.0 and -0.0 were one, though their signs may be told."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frames = [pandas.DataFrame({"a": values}) for values in ([1], [2], [2], [3])]
    far, _ = laws.group_privacy(Laplace(1.0), ONE, 2, pairs=[frames[:2], frames[2:]])
    assert [(pair.x, pair.x_prime) for pair in far.pairs()] == [(frames[0], frames[3])]
    _, claim = laws.parallel_composition([Laplace(1.0)] * 2, [ONE, MetricDP(DiscreteMetric())], lambda data: data)
    assert claim.for_pair((frames[1], 0), (frames[2], 1)) == ONE
    with pytest.raises(UsageError, match="two inputs that are 2 steps apart"):
        laws.group_privacy(Laplace(1.0), ONE, 2, pairs=[(1.0, 0.0), (-0.0, 2.0)])


class FailingSometimes:
    """Vectorised; a batch raises where one of its runs does, with probability 0.05 a run on either input."""

    def sample(self, data, size, rng):
        if np.any(rng.random(size) < 0.05):
            raise ValueError("no luck")
        return rng.integers(0, 2, size=size)


def test_a_condition_counts_exceptions_run_by_run():
    # Both inputs have one law, so nothing may be found; and a run under the condition raises as often as one run does:
    # 0.05 / (0.05 + 0.95 * 0.5) = 0.095, not 1 - 0.95^64 = 0.96. 4,000 runs: 5 standard deviations are 0.023.
    subject, claim = laws.conditioning(FailingSometimes(), PureDP(0.1), lambda y: np.asarray(y) == 1)
    one_by_one = as_subject(subject)
    raised = 0
    rng = stream()
    for _ in range(4_000):
        try:
            one_by_one.sample(0, 1, rng)
        except SubjectError:
            raised += 1
    assert raised / 4_000 == pytest.approx(0.095, abs=0.023)
    result = dpaudit.audit(subject, claim=claim, pairs=[(0, 1)], samples=500, seed=1, confidence=1 - 1e-9)
    assert result.verdict != "violated"


def test_an_event_is_not_asked_about_a_call_that_raised():
    subject, _ = laws.conditioning(Failing(), PureDP(1.0), lambda y: np.asarray(y) > 0.5)
    outputs = subject.sample(1, 200, stream())
    kinds = {type(output) for output in outputs}
    assert kinds == {Failed, float} and {output for output in outputs if isinstance(output, float)} == {1.0}


def test_budgets_of_pure_and_metric_claims_add_pair_by_pair():
    parts = [Laplace(1.0), RandomisedResponse(1.0)]
    _, claim = laws.sequential_composition(parts, [MetricDP(AbsoluteMetric(1.0)), PureDP(0.5)], pairs=[(0, 1)])
    assert claim.for_pair(0.0, 2.0) == PureDP(2.5)
    _, claim = laws.mixture(
        parts, [MetricDP(AbsoluteMetric(1.0))] * 2, lambda data: (0.5, 0.5), choice_claim=PureDP(0.1)
    )
    assert claim.for_pair(0.0, 2.0) == PureDP(2.1)


@pytest.mark.claim("CD-S9")
def test_projections_are_idempotent_and_never_move_points_apart():
    rng = stream()
    for _ in range(100):
        columns = int(rng.integers(1, 6))
        points = rng.normal(scale=5.0, size=(20, columns))
        nearest = laws.BoxProjection(-1.0, 2.0)
        images = nearest(points)
        np.testing.assert_array_equal(nearest(images), images)
        before, after = (np.linalg.norm(table[:10] - table[10:], axis=1) for table in (points, images))
        assert np.all(after <= before + 1e-12)


BUFFER = np.zeros(1_000)


def into_a_buffer(data, size, rng):
    BUFFER[:size] = data + rng.laplace(size=size)
    return BUFFER[:size]


def test_parts_that_share_a_buffer_keep_their_outputs():
    parts = [as_subject(into_a_buffer)] * 2
    first, second = (draw(part, 0.0, 100, np.random.default_rng(seed)) for seed, part in enumerate(parts))
    assert not np.array_equal(first, second)
