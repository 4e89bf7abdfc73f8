"""Laws look at the same runs of a mechanism that is called once a draw, and leave out what the claim's audit says."""

import numpy as np
import pytest

from dpaudit import check
from dpaudit.conformance.case import Case
from dpaudit.conformance.recorded import Recorded
from dpaudit.subjects.callables import as_subject

PAIRS = [(0.0, 1.0)]
LAWS = ["law_mixture", "law_post_processing_by_hashing", "law_post_processing_by_sign"]


class Calls:
    """A noisy count, a call a draw; counts its calls."""

    def __init__(self):
        self.count = 0

    def __call__(self, data, rng):
        self.count += 1
        return data + float(rng.laplace(scale=2.0))


def _stream(data):
    return np.random.default_rng(int(data))


def _recorded(function=lambda data, rng: [data, float(rng.random())]):
    return Recorded(as_subject(function), _stream)


def test_every_replay_begins_with_the_first_run_and_gives_each_once():
    runs = _recorded()
    first, second = runs.replayed(), runs.replayed()
    given = [*first.sample(1.0, 3, np.random.default_rng(5)), *first.sample(1.0, 2, np.random.default_rng(5))]
    assert len({output[1] for output in given}) == 5
    assert second.sample(1.0, 5, np.random.default_rng(6)) == given
    assert second.sample(2.0, 2, np.random.default_rng(6)) != given[:2]


def test_runs_do_not_depend_on_how_many_are_asked_for_at_once():
    one, other = _recorded().replayed(), _recorded().replayed()
    several = [one.sample(3.0, size, np.random.default_rng(0)) for size in (1, 0, 4)]
    assert [output for batch in several for output in batch] == other.sample(3.0, 5, np.random.default_rng(1))


def test_outcomes_that_raised_and_what_else_a_mechanism_offers_are_passed_on():
    class Fails:
        claim = "eps=1"

        def __call__(self, data, rng):
            if rng.random() < 0.5:
                raise ValueError("no")
            return 1.0

    replayed = Recorded(as_subject(Fails()), _stream).replayed()
    outputs = replayed.sample(1.0, 40, np.random.default_rng(0))
    kinds = {getattr(output, "kind", "number") for output in outputs}
    assert kinds == {"ValueError", "number"} and str(replayed.claim) == "eps=1" and not replayed.replayable


def test_laws_see_the_runs_of_the_claims_audit_first():
    runs = []

    def noisy(data, rng):
        runs.append((data, data + float(rng.laplace(scale=2.0))))
        return runs[-1][1]

    case = Case(noisy, "eps=0.5", PAIRS, 3, 1_000, 0.001)
    assert case.audit.verdict != "violated" and len(runs) >= 2_000
    of_audit = [output for data, output in runs if data == 1.0]
    assert case.replayed.sample(1.0, len(of_audit), np.random.default_rng(0)) == of_audit
    assert case.replayed.sample(1.0, len(of_audit) + 1, np.random.default_rng(0))[-1] == runs[-1][1]


def test_runs_are_kept_until_they_take_too_much_and_not_by_their_own_size():
    recorded = _recorded(lambda data, rng: "long" * 100 if rng.random() < 0.5 else "s")
    recorded._left = 1
    first, second = recorded.replayed(), recorded.replayed()
    for size in (1, 1, 1, 1):
        first.sample(1.0, size, np.random.default_rng(0))
    assert [len(runs) for runs in recorded._runs.values()] == [1]  # the first, whatever it took
    second.sample(1.0, 1, np.random.default_rng(0))


def test_laws_share_runs():
    counts = []
    for only in (LAWS[:1], LAWS):
        calls = Calls()
        result = check(calls, "eps=0.5", PAIRS, only=only, samples=1_000, seed=3)
        assert {record.status for record in result.records} <= {"not_refuted", "inconclusive"}
        counts.append(calls.count)
    alone, together = counts
    assert together < 1.25 * alone  # a law looks at about 500 runs of each input, and two at the same


def test_what_a_law_says_does_not_depend_on_the_others():
    alone = check(Calls(), "eps=0.5", PAIRS, only=LAWS[:1], samples=1_000, seed=3).records[0]
    among = check(Calls(), "eps=0.5", PAIRS, only=LAWS, samples=1_000, seed=3).records
    assert next(one for one in among if one.name == alone.name).message == alone.message


@pytest.mark.parametrize(("scale", "status"), [(2.0, "inconclusive"), (0.2, "violated")])
def test_where_a_function_gives_outputs_back_the_claims_own_audit_speaks_for_its_law(scale, status):
    """A mechanism of loss 0.5, and one of loss 5, against 0.5. (The first may be "violated" with probability 0.001.)"""

    def by_name(data, rng):
        return {"a": data + float(rng.laplace(scale=scale))}

    names = ["law_post_processing_by_rounding", "law_projection"]
    records = check(by_name, "eps=0.5", PAIRS, only=names, samples=1_000, seed=3).records
    assert [record.status for record in records] == [status, status]
    if status == "inconclusive":
        hashed = check(by_name, "eps=0.5", PAIRS, only=["law_post_processing_by_hashing"], samples=1_000, seed=3)
        assert "claim_audit" not in hashed.records[0].message


@pytest.mark.parametrize("pair", [(lambda: 0.0, lambda: 1.0), (1, True), (0.0, 1.0)])
def test_no_two_inputs_share_a_stream(pair):
    noise = {}

    def keeps(data, rng):
        number = data() if callable(data) else float(data)
        noise.setdefault(id(data), []).append(rng.random())
        return number

    case = Case(keeps, "eps=1", [pair], 3, 1_000, 0.001)
    for data in (case.pairs[0].x, case.pairs[0].x_prime):
        case.replayed.sample(data, 2_000, np.random.default_rng(0))
    first, second = noise.values()
    assert min(len(first), len(second)) >= 2_000 and not set(first) & set(second)


def test_an_input_that_holds_itself_has_runs():
    class Node:
        def __init__(self, parent=None):
            self.parent, self.children = parent, []

    root = Node()
    root.children = [Node(root) for _ in range(30)]
    case = Case(lambda data, rng: rng.random(), "eps=1", [(root, Node())], 3, 1_000, 0.001)
    assert len(case.replayed.sample(case.pairs[0].x, 5, np.random.default_rng(0))) == 5
