"""Kept noise and spent budgets: an audit that has learnt nothing says so, first, and gives no power."""

import json

import numpy as np
import pytest
from support.samplers import KeepsItsNoise

import dpaudit
from dpaudit import Search
from dpaudit.audits import memory_checks
from dpaudit.domains import NumberDomain
from dpaudit.features.outcomes import read_outputs
from dpaudit.reports.wording import notes
from dpaudit.running.store import Store
from dpaudit.subjects.copies import CallHistory

PLAIN = {"floating_point": False, "samples": 1_000, "seed": 5}


class Spent:
    """Answers `left` calls without noise, and then raises for good, on both inputs."""

    def __init__(self, left):
        self.left = left

    def __call__(self, data, rng):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("the budget is spent")
        return data


class CachedAnswer(KeepsItsNoise):
    """A randomised response of loss .85 to each input, which is kept: an integer, a text or an object."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def __call__(self, data, rng):
        if data not in self.known:
            self.known[data] = self.kind(int((rng.random() < 0.3) ^ bool(data)))
        return self.known[data]


def no_noise(data, rng):
    return float(data)


def leaks_after_setup(data, rng):
    return float(data + 0.0 * rng.random())


@pytest.mark.parametrize("mode", ["sequential", "fixed"])
@pytest.mark.parametrize("in_batches", [False, True])
def test_kept_noise_is_inconclusive_with_the_reason_first(in_batches, mode):
    subject = KeepsItsNoise() if in_batches else KeepsItsNoise().__call__
    result = dpaudit.audit(subject, "eps=1", [(0, 1)], mode=mode, **PLAIN)
    (finding,) = result.findings
    assert (result.verdict, finding.power, finding.witness, finding.parameter_lower) == (
        "inconclusive",
        None,
        None,
        0.0,
    )
    assert finding.notes[0] == memory_checks.KEPT_NOISE
    assert dpaudit.AuditResult.from_dict(json.loads(json.dumps(result.to_dict()))).findings == result.findings


@pytest.mark.parametrize("kind", [int, str, lambda bit: {"answer": bit}])
def test_a_kept_answer_that_is_no_real_number_is_inconclusive_too(kind):
    # Kept answers of the two inputs differ at the first seed, where every guess on them is right, and are equal then.
    results = [
        dpaudit.audit(CachedAnswer(kind).__call__, "eps=1", [(0, 1)], **PLAIN | {"seed": seed}) for seed in (1, 2)
    ]
    assert {(result.verdict, result.findings[0].notes[0]) for result in results} == {
        ("inconclusive", memory_checks.KEPT_NOISE)
    }


BEFORE = {
    "a plan": lambda subject: dpaudit.audit_within(60.0, subject, "eps=1", [(0.0, 1.0)], **PLAIN).verdict,
    "a search": lambda subject: (
        dpaudit.audit(subject, "eps=1", Search(NumberDomain(0.0, 1.0), budget=1_000), **PLAIN).verdict
    ),
    "a proof": lambda subject: dpaudit.judge(subject, "eps=1", pairs=[(0.0, 1.0)], seed=5).verdict,
}


@pytest.mark.parametrize("before", BEFORE)
def test_noise_that_was_drawn_before_the_audit_is_kept_noise_too(before):
    assert BEFORE[before](KeepsItsNoise().__call__) == "inconclusive"


class Once:
    """One draw of noise for all inputs, kept."""

    noise = None

    def __call__(self, data, rng):
        if self.noise is None:
            self.noise = rng.laplace()
        return float(data + self.noise)


class OnceBatch(Once):
    def sample(self, data, size, rng):
        return np.full(size, self(data, rng))


EARLIER = {
    "an audit": lambda subject: dpaudit.audit(subject, "eps=1", [(0.0, 1.0)], **PLAIN),
    "an audit of its method": lambda subject: dpaudit.audit(subject.__call__, "eps=1", [(0.0, 1.0)], **PLAIN),
    "a plan": lambda subject: dpaudit.plan(subject, "eps=1", [(0.0, 1.0)], samples=100),
}


@pytest.mark.parametrize("kind", [KeepsItsNoise, Once, OnceBatch])
@pytest.mark.parametrize("earlier", EARLIER)
def test_noise_that_an_earlier_call_left_in_the_object_is_kept_noise_too(earlier, kind):
    subject = kind()
    EARLIER[earlier](subject)
    result = dpaudit.audit(subject, "eps=1", [(0.0, 1.0)], **PLAIN | {"seed": 6})
    assert (result.verdict, result.findings[0].notes[0]) == ("inconclusive", memory_checks.KEPT_NOISE)


def test_one_noise_for_all_inputs_is_kept_noise_on_every_pair():
    for pairs in ([(0, 1), (2, 3)], [(2, 3), (1, 0), (4, 5)]):
        subject = Once()
        for _ in range(2):
            result = dpaudit.audit(subject, "eps=1", pairs, **PLAIN)
            assert [finding.verdict for finding in result.findings] == ["inconclusive"] * len(pairs)
        assert dpaudit.audit(subject, "eps=1", [(8, 9)], **PLAIN).verdict == "inconclusive"


def test_an_object_that_forgets_its_noise_is_asked_anew_and_one_without_noise_is_violated_again():
    subject = Once()
    assert dpaudit.audit(subject, "eps=1", [(0, 1)], **PLAIN).verdict == "inconclusive"
    Once.__call__, kept = (lambda self, data, rng: leaks_after_setup(data, rng)), Once.__call__
    try:
        assert dpaudit.audit(subject, "eps=1", [(0, 1)], **PLAIN).verdict == "violated"
    finally:
        Once.__call__ = kept
    for _ in range(2):
        assert dpaudit.audit(no_noise, "eps=1", [(0, 1)], **PLAIN).verdict == "violated"


def test_noise_that_was_switched_off_between_two_audits_is_not_called_kept_alone():
    """Before, the reason was kept noise for certain, though a caller may have switched it off."""

    def release(data, rng):
        return data + (rng.laplace() if is_noisy else 0.0)

    is_noisy = True
    assert dpaudit.audit(release, "eps=1", [(0, 1)], **PLAIN).findings[0].power is not None
    is_noisy = False
    (finding,) = dpaudit.audit(release, "eps=1", [(0, 1)], **PLAIN).findings
    assert finding.verdict == "inconclusive" and finding.notes[0].startswith(
        "Noise is kept, or was switched off: earlier"
    )
    assert finding.notes[0].endswith("Where noise was switched off, audit a new object.")


def test_advice_at_the_end_of_a_note_on_kept_noise_is_printed():
    """Before, a terminal and a page ended the note at "Where noise w…"."""
    result = dpaudit.audit(KeepsItsNoise().__call__, "eps=1", [(0, 1)], **PLAIN)
    assert notes(result) == [f"0|1: {memory_checks.KEPT_NOISE}"]


class Shown:
    """A mechanism that a store knows again: what it keeps is no part of its printed form."""

    def __repr__(self):
        return type(self).__name__


class ShownCached(Shown):
    def __init__(self):
        self.known = {}

    __call__ = KeepsItsNoise.__call__


class ShownSpent(Shown, Spent):
    pass


def test_a_store_lets_in_no_pair_of_kept_noise_and_says_nothing_of_a_spent_budget(tmp_path):
    options = PLAIN | {"store": tmp_path / "evidence.db", "samples": 200}
    with pytest.raises(dpaudit.UsageError, match="noise anew in each call for a store, got ShownCached"):
        dpaudit.audit(ShownCached(), "eps=1", [(0, 1)], **options)
    for _ in range(2):
        result = dpaudit.audit(ShownSpent(1), "eps=1", [(0, 1)], **options)
        assert result.verdict == "inconclusive" and result.findings[0].notes[0].startswith("Nothing was learnt")
    with Store.at(tmp_path / "evidence.db") as store:
        assert [len(subject["pairs"]) for subject in store.subjects()] == [0, 1]


def test_kept_noise_is_inconclusive_under_isolation_too():
    # Other processes have other noise, whatever the machine does beside: no clock is asked.
    result = dpaudit.audit(KeepsItsNoise().__call__, "eps=1", [(0, 1)], isolation="seconds=600", **PLAIN)
    (finding,) = result.findings
    assert (result.verdict, finding.notes[0]) == ("inconclusive", memory_checks.SHARED_NOISE)


@pytest.mark.parametrize("isolation", [None, "seconds=600"])
@pytest.mark.parametrize("subject", [no_noise, leaks_after_setup])
def test_a_mechanism_without_noise_is_still_violated(subject, isolation):
    # It takes nothing from its generator, or takes it in every call: miss rate 0, all guesses are right.
    assert dpaudit.audit(subject, "eps=1", [(0, 1)], isolation=isolation, **PLAIN).verdict == "violated"


def exact_from_ten_on(data, rng):
    return float(data) if data >= 10 or data == -2 else float(data + rng.laplace())


class Boxed:
    """An input that is equal to itself alone."""

    def __init__(self, value):
        self.value = value


def exact_in_some_boxes(data, rng):
    return exact_from_ten_on(data.value, rng)


def test_noise_on_another_input_is_not_kept_noise():
    # Hashes of -1 and -2 are one.
    assert dpaudit.audit(exact_from_ten_on, "eps=1", [(-1, 0)], **PLAIN).verdict != "violated"
    assert dpaudit.audit(exact_from_ten_on, "eps=1", [(-2, 10)], **PLAIN).verdict == "violated"


def test_what_was_noted_of_an_input_ends_with_it():
    history, box = CallHistory.of(exact_in_some_boxes), Boxed(0)
    history.note_moved(box)
    history.note_moved((1, np.arange(3)))
    assert history.has_moved(box) and history.has_moved((1, np.arange(3)))
    address = id(box)
    del box
    assert not any(id(other) == address and history.has_moved(other) for other in [Boxed(k) for k in range(1_000)])
    assert history.has_moved((1, np.arange(3)))


class CachedAtZero(KeepsItsNoise):
    """Keeps its noise on 0 and 1, and has too little of it elsewhere."""

    def __call__(self, data, rng):
        return super().__call__(data, rng) if data < 2 else float(data + rng.laplace(scale=0.25))


def test_a_pair_with_kept_noise_takes_nothing_from_another():
    # The other pair has a loss of 4: both audits find it (a sound one would be called violated with probability 5%).
    alone = dpaudit.audit(CachedAtZero().__call__, "eps=1", [(2, 3)], **PLAIN)
    both = dpaudit.audit(CachedAtZero().__call__, "eps=1", [(0, 1), (2, 3)], **PLAIN)
    assert [finding.verdict for finding in both.findings] == ["inconclusive", "violated"]
    assert alone.findings[0].severity is not None and both.findings[1].severity is not None
    assert both.findings[0].severity is None


def test_a_mechanism_that_is_rarely_another_is_not_called_spent():
    rng = np.random.default_rng(3)
    rare = [0.5 if draw < 0.005 else "no" for draw in rng.random(4_000)]  # first ones with probability below 1/4000
    assert not memory_checks.spent([read_outputs(rare, 4_000), read_outputs(rare[::-1], 4_000)])
    assert not memory_checks.spent([read_outputs(["no"] * 4_000, 4_000), read_outputs(["yes"] * 4_000, 4_000)])
    assert not memory_checks.spent([read_outputs([0.5, *["no"] * 50], 51)] * 2)  # too few to say anything
    assert memory_checks.spent([read_outputs([0.5, *["no"] * 500], 501), read_outputs(["no"] * 501, 501)])


def test_the_rate_of_a_false_spent_is_at_most_one_in_as_many_outcomes():
    # One other outcome among 100, in any place: the first with probability 1/100, as the docstring says.
    places = [[("other" if k == place else "no") for k in range(100)] for place in range(100)]
    plain = read_outputs(["no"] * 100, 100)
    assert sum(bool(memory_checks.spent([read_outputs(one, 100), plain])) for one in places) == 1


def test_a_fresh_object_a_call_has_no_memory():
    # The same mechanisms, sound or leaking once their memory is gone. False alarm 1e-3 (confidence), fixed seed.
    stated = PLAIN | {"confidence": 0.999}
    sound = dpaudit.audit(KeepsItsNoise, "eps=1", [(0, 1)], fresh=True, **{**stated, "samples": 4_000})
    assert sound.verdict == "not_refuted" and "fresh object" in sound.subject["interface"]
    leaky = dpaudit.audit_within(60.0, lambda: Spent(1).__call__, "eps=1", [(0.0, 1.0)], fresh=True, **stated)
    assert leaky.verdict == "violated"
    assert dpaudit.replay(leaky, lambda: Spent(1).__call__, dpaudit.PureDP(1.0), samples=200, seed=2).confirmed
    with pytest.raises(dpaudit.UsageError, match="must be a factory with fresh=True"):
        dpaudit.audit(no_noise, "eps=1", [(0, 1)], fresh=True)


@pytest.mark.parametrize("mode", ["sequential", "fixed"])
@pytest.mark.parametrize("answers", [1, 4, 9, 10, 11, 20, 40, 100])
def test_a_budget_that_is_spent_is_never_not_refuted_however_many_calls_it_answers(answers, mode):
    # On either side of each limit: 1% of the outcomes of an input, and where the order of outcomes shows the change.
    # What came before the change is bet on as it comes, so many exact answers are found out before they end.
    result = dpaudit.audit(Spent(answers).__call__, "eps=1", [(0, 1)], mode=mode, **PLAIN)
    (finding,) = result.findings
    assert result.verdict in ("inconclusive", "violated")
    assert result.verdict == "inconclusive" or finding.samples <= answers
    if answers < 9:
        assert (result.verdict, finding.power) == ("inconclusive", None)
        assert finding.notes[0].startswith("Nothing was learnt")
