"""The main job from outside: options, pairs, inputs, exceptions, and every claim on a leak and on none.

Statistical assertions. "Not violated" is asserted at confidence 1 - 1e-10 of mechanisms that keep their claim: each
such audit fails with probability at most 1e-10 by the auditor's own guarantee, which `tests/meta` measures; there are
fewer than 200 of them, together below 2e-8. "Violated" is asserted of mechanisms that release their input: a pilot
holds both sides, every guess is right, and the evidence is the same for all coins. Where something else is asserted of
draws, its miss rate stands beside it. Equalities for one seed are not statistical.
"""

import math

import numpy as np
import pytest
from support.evidence import evidence
from support.samplers import laplace, released

import dpaudit
from dpaudit import ApproxDP, GaussianDP, MetricDP, Pair, ProfileClaim, PureDP, RenyiDP, UsageError, ZeroConcentratedDP
from dpaudit.privacy.pairs import short_form

SURE = 1.0 - 1e-10
PAIR = [(0.0, 1.0)]
MODES = pytest.mark.parametrize("mode", ["sequential", "fixed"])


def hidden(data, size, rng):
    """The same law on every input."""
    return rng.normal(size=size)


def audit(mechanism, claim="eps=1", pairs=PAIR, **options):
    options = {"samples": 500, "seed": 1, "confidence": SURE, **options}
    return dpaudit.audit(mechanism, claim, pairs, **options)


# --- every claim, on a leak and on none ---


CLAIMS = {
    "pure": PureDP(1.0),
    "pure zero": PureDP(0.0),
    "approximate zero": ApproxDP(0.0, 0.05),
    "gaussian zero": GaussianDP(0.0),
    "renyi zero": RenyiDP(2.0, 0.0),
    "profile": ProfileClaim(PureDP(1.0).profile, name="randomised response"),
    "metric": MetricDP(lambda x, y: abs(x - y)),
}


@MODES
@pytest.mark.parametrize("name", CLAIMS)
def test_a_mechanism_that_releases_its_input_violates_every_claim(name, mode):
    claim = CLAIMS[name]
    result = audit(released, claim, mode=mode, samples=2_000, confidence=0.95)
    (finding,) = result.findings
    assert result.verdict == finding.verdict == "violated"
    assert finding.parameter_lower > finding.parameter_budget
    assert finding.ratio_lower > 1.0 and result.exit_status == 1
    assert finding.witness.wrong == 0 and finding.witness.correct > 0
    assert finding.epsilon_lower > 0.0
    if claim.report_delta == claim.delta:  # the parameter is epsilon itself
        assert finding.epsilon_lower == finding.parameter_lower


@MODES
@pytest.mark.parametrize("name", CLAIMS)
def test_a_mechanism_that_hides_its_input_violates_no_claim(name, mode):
    result = audit(hidden, CLAIMS[name], mode=mode)
    (finding,) = result.findings
    assert finding.verdict in ("not_refuted", "inconclusive")
    assert finding.parameter_lower <= finding.parameter_budget
    assert finding.message == "" and result.ratio_lower <= 1.0


# --- what a finding says ---


def test_an_audit_that_could_find_nothing_is_inconclusive():
    assert audit(hidden, "eps=1", samples=10).verdict == "inconclusive"
    assert audit(hidden, "eps=200").verdict == "inconclusive"  # e^200 draws would be needed
    for mode in ("sequential", "fixed"):
        result = audit(hidden, PureDP(1_000.0), mode=mode)
        assert result.verdict == "inconclusive" and result.findings[0].power.detectable == math.inf


def test_the_factor_moves_the_line_between_inconclusive_and_not_refuted():
    factor = audit(hidden, "eps=1", samples=8_000).findings[0].power.excess(1.0)
    assert audit(hidden, "eps=1", samples=8_000, inconclusive_factor=factor * 1.01).verdict == "not_refuted"
    assert audit(hidden, "eps=1", samples=8_000, inconclusive_factor=max(1.0, factor * 0.99)).verdict == "inconclusive"


# --- seeds ---


@MODES
@pytest.mark.parametrize("mechanism", [laplace, lambda data, rng: data + rng.laplace(), lambda data, seed: seed % 7])
def test_the_same_seed_gives_the_same_bits(mechanism, mode):
    first, second = (audit(mechanism, pairs=[(0.0, 1.0), (1.0, 2.0)], mode=mode, seed=5) for _ in range(2))
    assert first.replayable and evidence(first) == evidence(second)


def test_another_seed_gives_other_draws_and_no_seed_a_new_one():
    first, second = audit(laplace, seed=5), audit(laplace, seed=6)
    assert first.findings[0].log_wealth != second.findings[0].log_wealth
    drawn = {audit(hidden, samples=10, seed=None).seed for _ in range(3)}
    assert len(drawn) == 3  # two of 3 agree with probability 3 / 2^32 = 7e-10
    again = audit(laplace, seed=None)
    assert evidence(audit(laplace, seed=again.seed)) == evidence(again)


# --- pairs and inputs ---


class Counting:
    """Counts the outputs drawn on each input."""

    def __init__(self, mechanism=hidden):
        self.mechanism, self.drawn = mechanism, {}

    def sample(self, data, size, rng):
        self.drawn[repr(data)] = self.drawn.get(repr(data), 0) + size
        return self.mechanism(data, size, rng)


@MODES
def test_a_pair_of_an_input_with_itself_has_two_independent_streams(mode):
    seen = []

    def watched(data, size, rng):
        outputs = rng.normal(size=size)
        seen.extend(outputs.tolist())
        return outputs

    result = audit(watched, "eps=0.001", [(0.0, 0.0)], mode=mode)
    assert result.verdict != "violated"
    assert len(set(seen)) == len(seen) == result.samples > 0  # no draw was used for both sides


def test_shared_inputs_are_drawn_once():
    subject = Counting()
    result = audit(subject, "eps=1", [(0, 1), (1, 2), (0, 2), (1, 0), (0, 1)])
    assert set(subject.drawn) == {"0", "1", "2"}
    assert result.samples == sum(subject.drawn.values()) < 5 * 1_000
    assert [f.id for f in result.findings] == ["0|1", "1|2", "0|2", "1|0", "0|1#2"]


def test_pairs_of_which_nothing_is_asked_are_listed_and_not_drawn():
    subject = Counting()
    claim = MetricDP(lambda x, y: math.inf if "far" in (x, y) else 1.0)
    result = audit(subject, claim, [("a", "b"), ("a", "far")])
    assert result.not_asked == ("a|far",) or result.not_asked == ("'a'|'far'",)
    assert len(result.findings) == 1 and "'far'" not in subject.drawn


@pytest.mark.parametrize(
    "claim", [PureDP(math.inf), ApproxDP(1.0, 1.0), GaussianDP(math.inf), ZeroConcentratedDP(math.inf)]
)
def test_a_claim_that_asks_nothing_is_inconclusive_without_a_run(claim):
    subject = Counting()
    result = audit(subject, claim)
    assert (result.verdict, result.samples, result.findings, subject.drawn) == ("inconclusive", 0, (), {})
    assert result.not_asked == ("0.0|1.0",)
    assert result.to_dict()["verdict"] == "inconclusive"


def test_each_pair_of_a_metric_has_its_own_budget():
    # Laplace noise of scale 1 loses 1 nat a unit. The last pair loses 3 where 0.3 are allowed: its best threshold is
    # right on 89% of 3,000 draws, where 57% are allowed; its miss rate is below 1e-100.
    claim = MetricDP(lambda x, y: 3.0 * abs(x - y) if x < 10.0 else 0.1 * abs(x - y))
    result = audit(laplace, claim, [(0.0, 1.0), (0.0, 2.0), (10.0, 13.0)], samples=2_000)
    assert [f.budget.epsilon for f in result.findings] == pytest.approx([3.0, 6.0, 0.3])
    assert [f.verdict == "violated" for f in result.findings] == [False, False, True]
    assert result.worst.id == "10.0|13.0"


# --- exceptions and wrong outputs ---


@MODES
def test_what_an_exception_says_is_part_of_the_outcome(mode):
    def raising(data, rng):
        if rng.random() < 0.3:
            raise ValueError(f"at {data}")
        return rng.normal(size=(2, 2))

    assert audit(raising, "eps=0.1", mode=mode, confidence=0.95).verdict == "violated"


def test_a_batch_that_raises_by_its_size_is_no_leak_one_call_a_draw():
    def small_batches_only(data, size, rng):
        if size > 5:
            raise ValueError("too many")
        return rng.normal(size=size)

    result = audit(small_batches_only, "eps=0.1")
    assert result.subject["interface"].endswith("one call a draw")
    assert result.verdict in ("not_refuted", "inconclusive")


def test_a_vectorised_call_that_raises_later_is_an_error_that_says_what_to_do():
    calls = []

    def tired(data, size, rng):
        calls.append(size)
        if len(calls) > 8:
            raise ValueError("tired")
        return rng.normal(size=size)

    result = audit(tired, samples=2_000)
    assert result.verdict == "error"
    assert "tired" in result.findings[0].message and "f(data, rng)" in result.findings[0].message


OUTPUTS = [None, "text", math.nan, math.inf, (1, "a", None), {"a": 1}, frozenset([1, 2]), [], np.zeros((2, 2)),
           np.array(1.0), 2**60, 1j, object()]  # fmt: skip


@pytest.mark.parametrize("output", OUTPUTS, ids=short_form)
@MODES
def test_any_output_can_be_audited(output, mode):
    alone = audit(lambda data, rng: output, mode=mode)
    assert alone.verdict in ("not_refuted", "inconclusive")
    mixed = audit(lambda data, rng: [output, 1.0, (1.0, 2.0)][int(rng.integers(3))], "eps=0.1", mode=mode)
    assert mixed.verdict in ("not_refuted", "inconclusive")
    leak = audit(lambda data, rng: output if data else "never this", mode=mode, confidence=0.95)
    assert leak.verdict == "violated"


def test_a_later_output_of_another_form_does_not_stop_the_audit():
    calls = []

    def pairs_of_bits(data, rng):  # a table of outcomes is the best witness; then something else comes
        calls.append(data)
        first = int(rng.random() < 0.5)
        return None if len(calls) % 97 == 0 else (first, first ^ int(rng.random() < (0.9 if data else 0.1)))

    assert audit(pairs_of_bits, "eps=1", samples=600).verdict in ("violated", "not_refuted", "inconclusive")


# --- options ---


@pytest.mark.parametrize(
    ("claim", "pairs", "message"),
    [
        (None, PAIR, "claim must be given: hidden states none"),
        (1.0, PAIR, "claim must be a Claim or a string such as 'eps=1', got 1.0"),
        ("eps=-1", PAIR, "epsilon"),
        ("eps=1", None, "pairs must be given: hidden has none"),
        ("eps=1", [], "pairs must name at least one pair of inputs, got none"),
        ("eps=1", [(0, 1, 2)], r"pairs must be a list of \(x, x_prime\), got \(0, 1, 2\) at position 0"),
        ("eps=1", [Pair(0, 1, id="a"), Pair(1, 2, id="a")], "pairs must have unique ids, got 'a' at positions 0 and 1"),
    ],
)
def test_a_bad_claim_or_pair_is_named_with_what_was_given(claim, pairs, message):
    with pytest.raises(UsageError, match=message) as error:
        audit(hidden, claim, pairs)
    assert error.value.exit_status == 2


class Stating:
    """States a claim of whatever type."""

    def __init__(self, claim):
        self.claim = claim

    def sample(self, data, size, rng):
        return data + rng.laplace(size=size)


def test_a_mechanism_may_state_its_claim_as_a_text():
    found = audit(Stating("eps=1,delta=0.5"), None, PAIR, samples=100, seed=1)
    assert found.claim == "eps=1,delta=0.5"
    assert audit(Stating("nonsense"), "eps=2", PAIR, samples=100, seed=1).claim == "eps=2"  # what is given comes first


def test_an_object_of_another_library_is_told_what_wraps_it():
    class Model:
        def fit(self, data):
            return self

    with pytest.raises(UsageError, match=r"got Model\. For an object with fit: dpaudit\.libraries\.estimators\.sub"):
        audit(Model(), "eps=1", PAIR)


def test_options_of_numpy_are_taken():
    result = audit(hidden, samples=np.int64(20), confidence=np.float64(0.9), seed=np.uint32(3))
    assert (result.seed, result.confidence) == (3, 0.9)
    assert result.to_dict()["options"]["samples"] == 20


def test_progress_is_told_after_every_round():
    seen = []
    result = audit(hidden, on_progress=seen.append)
    assert seen[-1].runs == result.samples and seen[-1].draws == result.findings[0].samples == seen[-1].planned
    assert len(seen) >= len(result.findings[0].looks)


@pytest.mark.parametrize("seed", range(5))
def test_a_fixed_test_sees_an_output_that_only_one_input_has(seed):
    """The pilot has no wrong guess there: a deviation of its log-odds would hide the leak behind weak evidence."""

    def leaks(data, size, rng):
        uniform = rng.random(size)
        return np.where((uniform < 0.1) & (data == 0.0), 7.0, np.floor(3.0 * uniform))

    found = dpaudit.audit(leaks, "eps=1", [(1.0, 0.0)], samples=4_000, mode="fixed", seed=seed).findings[0]
    assert found.verdict == "violated" and found.epsilon_lower > 3.0


class Sealed:
    """An input whose content is nowhere to be seen."""


def sealed(data, rng):
    return (data if rng.random() < 0.3 else 1 - data), Sealed()


@pytest.mark.parametrize("mode", ["sequential", "fixed"])
def test_what_cannot_be_looked_at_is_no_clean_bill(mode):
    # Randomised response with a loss of log(7/3) = 0.85; at 5% no more than its claim is said to be refuted.
    within = dpaudit.audit(sealed, claim="eps=0.86", pairs=[(0, 1)], samples=2_000, mode=mode, seed=3)
    assert within.verdict == "error" and within.findings[0].epsilon_lower > 0.5
    assert "got Sealed, whose printed form is an address. Return what it holds" in within.findings[0].message
    beyond = dpaudit.audit(sealed, claim="eps=0.3", pairs=[(0, 1)], samples=2_000, mode=mode, seed=3)
    assert beyond.verdict == "violated"  # what is seen is enough


def test_a_witness_says_that_the_first_outputs_are_all_the_same():
    told = "The first outputs on each input are all the same"

    def seeded(data, rng):
        return data + np.random.default_rng(3).laplace()

    same = dpaudit.audit(seeded, claim="eps=1", pairs=[(0.0, 1.0)], samples=1_000, seed=3)
    assert same.verdict == "violated" and told in same.worst.witness.description
    fresh = dpaudit.audit(lambda data, rng: 3 * data + rng.laplace(), "eps=1", [(0.0, 1.0)], samples=1_000, seed=3)
    counts = dpaudit.audit(lambda data, rng: data, "eps=1", [(0, 1)], samples=1_000, seed=3)  # no noise
    assert all(told not in sound.worst.witness.description for sound in (fresh, counts))


SPREAD = np.argsort(np.random.default_rng(9).random(40))  # where each answer of a twentieth stands


@pytest.mark.parametrize("are_categories", [False, True])
def test_a_leak_of_the_few_who_answer_is_found_in_whatever_order_their_answers_stand(are_categories):
    def report(data, size, rng):
        bit = np.where(rng.random(size) < 0.8, data, 1 - data)  # a loss of log 4
        answer = 2 * rng.integers(0, 20, size) + bit
        answer = SPREAD[answer] if are_categories else answer + rng.random(size)
        return np.where(rng.random(size) < 0.1, answer, -20 if are_categories else rng.normal(size=size) - 20.0)

    for seed in range(3):  # 2 of 20 were, before; the seeds are fixed
        assert dpaudit.audit(report, "eps=1", [(0, 1)], samples=100_000, seed=seed).verdict == "violated"


@pytest.mark.parametrize("leak", [-999.0, math.nan, math.inf])
def test_an_outcome_that_one_input_alone_has_is_found_in_fixed_mode_however_rare(leak):
    def mechanism(data, size, rng):
        return np.where((data == 1) & (rng.random(size) < 0.005), leak, data + rng.laplace(size=size))

    for seed in range(2):
        found = dpaudit.audit(mechanism, "eps=1", [(0, 1)], samples=60_000, mode="fixed", seed=seed)
        assert found.verdict == "violated" and found.epsilon_lower > 3.0  # 250 right guesses and no wrong one: 4.4


def talkative(data, rng):
    return f"DEBUG: raw={data!r}" if rng.random() < 0.003 else data + rng.laplace()


def failing(data, rng):
    if data == 1 and rng.random() < 0.004:
        raise ValueError("cohort empty")
    return data + rng.laplace()


@pytest.mark.parametrize(
    ("mechanism", "named"),
    [
        (talkative, ["'DEBUG: raw=0'", "'DEBUG: raw=1'"]),
        (failing, ["raised ValueError", "'Failed'", "kind of the output: guess 1 where it is 'failed'"]),
    ],
)
def test_the_witness_is_what_broke_the_claim_and_a_replay_confirms_it(mechanism, named):
    for seed in range(2):
        result = dpaudit.audit(mechanism, "eps=1", [(0, 1)], samples=60_000, seed=seed, floating_point=False)
        witness = result.worst.witness
        assert result.verdict == "violated" and any(name in witness.description for name in named)
        assert witness.correct >= 3 and witness.wrong <= 0.2 * witness.correct  # 73% right are allowed
        # The event has about 0.3% of 60,000 draws of an input: 180 right guesses and no wrong one.
        assert dpaudit.replay(result, mechanism, PureDP(1.0), seed=seed + 9, samples=60_000).confirmed


def leaks_at_two(data, size, rng):
    return {0: 0.0, 1: 1.0, 2: 1.9}[data] + rng.laplace(size=size)


@pytest.mark.parametrize("mode", ["sequential", "adaptive"])
@pytest.mark.parametrize("seed", [0, 3])
def test_a_witness_counts_as_many_outputs_of_both_inputs(mode, seed):
    """Input 0 goes on being drawn for the pair 0|1 when 0|2 is decided: 20,000 of it stood against 200 of input 2."""
    result = dpaudit.audit(
        leaks_at_two, "eps=1", [(0, 1), (0, 2)], samples=60_000, seed=seed, mode=mode, floating_point=False
    )
    finding = result.findings[1]
    assert finding.verdict == "violated" and finding.witness is not None
    witness = finding.witness
    counted = witness.correct + witness.wrong + witness.abstained
    assert counted <= 2 * finding.samples
    guesses = witness.correct + witness.wrong
    most = math.exp(1.9) / (1.0 + math.exp(1.9))  # right at a loss of 1.9, at most; four standard deviations above it
    assert witness.correct <= guesses * most + 4.0 * math.sqrt(guesses * most * (1.0 - most))
