"""`dpaudit.judge`: one verdict, what it rests on, and no more than that."""

import dataclasses
import json
import math
import subprocess
import sys
import time
from importlib import resources

import jsonschema
import numpy as np
import pytest
from sensitive_functions import CLAIMS, FUNCTIONS, TRACKS, domain, mechanism

import dpaudit
from dpaudit import MetricDP, Pair, UsageError, judge
from dpaudit.domains import DatasetDomain, NumberDomain
from dpaudit.errors import OutOfTimeError
from dpaudit.judgements import Judgement, judging, load_judgement
from dpaudit.judgements.judgement import advice
from dpaudit.judgements.judging import ERROR_RATE, _Judging
from dpaudit.privacy.metrics import AbsoluteMetric
from dpaudit.subjects import programs

SEED = 20_261_128
BOX = {"kind": "vector", "length": 4, "low": 0, "high": 1, "adjacency": "one"}
QUICK = {"seed": SEED, "seconds": 20.0}


def spread(x, rng):
    return sum(abs(v - 0.5) for v in x) + rng.laplace(scale=0.25)


def enough(x, rng):
    return sum(abs(v - 0.5) for v in x) + rng.laplace(scale=0.5)


def response(bit, rng):
    return bit if rng.random() < 0.75 else 1 - bit


def rounded(x, rng):  # no record follows a sum behind the rounding
    return round(sum(x) + rng.laplace(scale=0.4), 1) + 1.0


def test_what_no_climbing_of_noise_finds_is_refuted_on_five_seeds():
    for seed in range(1, 6):
        found = judge(spread, "eps=1", domain=BOX, seed=seed, seconds=20.0)
        assert (found.verdict, found.by, found.error_rate) == ("refuted", "recorded noise", 0.0)
        assert found.loss == pytest.approx(2.0) and found.places and found.exit_status == 1


def test_a_witness_is_small():
    pair = judge(spread, "eps=1", domain=BOX, **QUICK).pair
    assert pair is not None and sum(a != b for a, b in zip(pair.x, pair.x_prime, strict=True)) == 1
    assert sum(v == 0.0 for v in (*pair.x, *pair.x_prime)) >= 6


def test_a_domain_that_was_not_tried_whole_is_never_proved():
    found = judge(enough, "eps=1", domain=BOX, **QUICK)
    assert (found.verdict, found.by, found.exit_status) == ("not_refuted", "recorded noise", 0)
    assert "found is 1 scale of its noise" in found.statement and "of other pairs nothing is proved" in found.statement
    assert "never tried" in found.scope


def test_a_record_of_pairs_that_were_given_proves_nothing():
    found = judge(enough, "eps=1", pairs=[([0.0] * 4, [0.0, 0.5, 0.0, 0.0])], **QUICK)
    assert (found.verdict, found.by) == ("not_refuted", "recorded noise")
    assert "to one part in a million" in found.statement
    assert "1 pair that was given" in found.scope and "no others" in found.scope


def test_a_finite_domain_is_proved_pair_by_pair():
    found = judge(response, "eps=1.0987", domain={"kind": "inputs", "inputs": [0, 1]}, **QUICK)
    assert (found.verdict, found.by) == ("proved", "certificate") and "all pairs of its domain" in found.statement
    broken = judge(response, "eps=1", domain={"kind": "inputs", "inputs": [0, 1]}, **QUICK)
    assert (broken.verdict, broken.error_rate) == ("refuted", 0.0) and broken.by != "statistics"
    assert "probability" in broken.statement


def test_of_a_finite_domain_that_was_not_finished_it_is_not_said_that_all_was_tried():
    def leaks(x, rng):
        return 9 if x > 60 else int(rng.random() < 0.5) + int(rng.integers(2**30)) % 3

    found = judge(leaks, "eps=1", domain=NumberDomain(0, 63, integer=True), seed=SEED, seconds=0.5)
    assert found.verdict == "inconclusive" and "tried" not in found.scope


def test_what_is_behind_a_random_order_is_refuted_by_proof():
    def permute(score, rng):  # permute-and-flip with half of the noise that eps = 1 needs
        for answer in rng.permutation(2):
            if rng.random() <= math.exp(min(0.0, score if answer else -score)):
                return int(answer)
        raise AssertionError

    found = judge(permute, "eps=1", domain=NumberDomain(0.0, 4.0, 2.0), **QUICK)
    assert (found.verdict, found.error_rate) == ("refuted", 0.0) and found.by != "statistics"


def test_one_wrong_pair_of_a_finite_domain_is_found():
    def release(k, rng):  # one step in nine is two
        return float(k + (k > 6)) + rng.laplace()

    found = judge(release, "eps=1", domain=NumberDomain(0, 9, integer=True), **QUICK)
    assert found.verdict == "refuted" and {found.pair.x, found.pair.x_prime} == {6, 7}


def test_what_cannot_be_proved_is_audited_with_a_rate():
    found = judge(rounded, "eps=1", domain=DatasetDomain.between(0.0, 1.0, 3), seed=SEED, seconds=30.0)
    assert (found.verdict, found.by, found.error_rate) == ("refuted", "statistics", ERROR_RATE)
    # The pair that was made small has a tenth of the error rate, and the audit the rest.
    assert found.loss > 1.0 and found.details["audit"]["confidence"] == pytest.approx(1.0 - 0.9 * ERROR_RATE)


def test_a_noise_that_decides_is_not_judged_by_the_farthest_pair_alone():
    """Counts behind a threshold: the worst pair has a count of 0, and its noise-free difference is no larger."""

    def release(data, rng):
        noisy = len(data) + rng.normal(scale=3.0)
        return noisy if noisy > 5.6 and len(data) > 0 else -1.0

    found = judge(release, "eps=1,delta=0.02", domain=DatasetDomain((0, 1), 6), **QUICK)
    assert (found.verdict, found.by) == ("refuted", "recorded noise")
    assert found.pair is not None and [] in (found.pair.x, found.pair.x_prime)


@pytest.mark.parametrize("track", TRACKS)
def test_half_of_the_noise_is_refuted_and_all_of_it_is_not(track):
    """Of one function in each track. What is refuted by draws has an error rate of .01 a judgement: .06 in all here."""
    function, n = FUNCTIONS[7], 3
    wrong = judge(mechanism(function, track, n, 0.5), CLAIMS[track], domain=domain(n), **QUICK)
    assert wrong.verdict == "refuted"
    right = judge(mechanism(function, track, n), CLAIMS[track], domain=domain(n), seed=SEED, seconds=6.0)
    assert right.verdict in ("not_refuted", "inconclusive")


@pytest.mark.slow
def test_an_audit_that_decides_nothing_leaves_what_is_proved_of_the_worst_pairs(monkeypatch):
    def too_slow(self, pairs):
        raise OutOfTimeError

    monkeypatch.setattr(_Judging, "_audited", too_slow)
    found = judge(mechanism(FUNCTIONS[0], "exponential", 1), CLAIMS["exponential"], domain=domain(1), seed=1)
    assert (found.verdict, found.by) == ("not_refuted", "certificate"), found.text()
    assert "of other pairs nothing is proved" in found.statement and "--seconds" in found.next_step


def test_pairs_are_chosen_on_streams_that_the_audit_does_not_draw():
    """The audit of the pairs that a judgement chose draws what the same audit draws when the pairs are given."""
    found = judge(rounded, "eps=1", domain=DatasetDomain.between(0.0, 1.0, 3), seed=SEED, seconds=30.0)
    record = found.details["audit"]
    pairs = [Pair(one["x"], one["x_prime"], one["id"]) for one in record["pairs"]]
    again = dpaudit.audit(
        rounded, "eps=1", pairs, samples=record["options"]["samples"], confidence=record["confidence"],
        seed=SEED, floating_point=False,
    )  # fmt: skip
    assert [one.parameter_lower for one in again.findings] == [one["parameter_lower"] for one in record["pairs"]]


def test_a_mechanism_that_keeps_its_claim_exactly_is_refuted_as_often_as_is_said():
    """Ten judgements by draws of a mechanism that sits on its claim; more than two refuted have probability 1.1e-4."""

    def on_its_claim(x, rng):
        return 0.1 * round(10.0 * (x + rng.laplace()))

    verdicts = [judge(on_its_claim, "eps=1", pairs=[(0.0, 1.0)], seed=seed, seconds=2.0).verdict for seed in range(10)]
    assert verdicts.count("refuted") <= 2 and "proved" not in verdicts


def test_where_a_search_takes_too_long_the_pairs_that_are_known_are_audited(monkeypatch):
    def folded(x, rng):  # no proof: a sine of noise is a look at it
        return float(np.sin(sum(x) + rng.laplace()))

    slow = dataclasses.replace(judging.SHARES, smallest_search=10**9)  # as where a call takes a hundredth of a second
    monkeypatch.setattr(judging, "SHARES", slow)
    box = {"kind": "vector", "length": 3, "low": 0, "high": 1, "adjacency": "one"}
    found = judge(folded, "eps=2", domain=box, seconds=4.0, seed=1)
    assert "audit" in found.details and found.by == "statistics"


def test_a_quick_function_without_time_is_not_called_slow():
    found = dpaudit.judge(lambda x, rng: str(x + rng.laplace()), "eps=1", pairs=[(0.0, 1.0)], seconds=1e-6, seed=1)
    assert (
        found.verdict == "inconclusive"
        and "s that are left allow no audit. Nothing of it is proved: " in found.statement
    )


@pytest.mark.parametrize("is_faulty", [True, False])
def test_a_slow_function_is_refuted_where_runs_with_equal_noise_end_in_different_ways(is_faulty):
    def slow(x, rng):
        time.sleep(0.01)
        noise = rng.normal()
        if is_faulty and math.isnan(x):
            raise ValueError("not a number")
        return math.fsum([float(f"{noise:.3f}"), 0.0])  # a text: what the output loses is not known

    found = dpaudit.judge(slow, "eps=1", pairs=[(0.0, math.nan)], seconds=8.0, seed=1)
    assert found.verdict == ("refuted" if is_faulty else "inconclusive")
    if is_faulty:
        assert found.by == "statistics" and "Recorded: nothing is raised on x and ValueError on" in found.statement
        assert found.error_rate == 0.01


def test_own_pairs_come_before_a_guess():
    @dataclasses.dataclass
    class Release:
        claim = dpaudit.PureDP(1.0)

        def pairs(self):
            return [(0.0, 1.0)]

        def sample(self, data, size, rng):
            return data + rng.laplace(size=size)

    found = judge(Release(), **QUICK)
    assert (found.verdict, found.guessed) == ("not_refuted", "")


def test_what_was_guessed_is_said():
    def count(ages: list[int], rng):
        return len(ages) + rng.laplace()

    found = judge(count, "eps=1", **QUICK)
    assert found.verdict == "not_refuted" and "list[int]" in found.guessed and "--domain" in found.next_step


def test_a_table_is_an_example():
    rows = [{"age": 30, "pay": 1.0}, {"age": 40, "pay": 2.0}]
    found = judge(lambda rows, rng: sum(row["age"] for row in rows) + rng.laplace(scale=40.0), "eps=1",
                  examples=[rows], **QUICK)  # fmt: skip
    assert found.verdict == "refuted" and "the example" in found.guessed


def test_a_function_that_always_raises_is_an_error():
    def release(data, rng):
        raise KeyError("age")

    found = judge(release, "eps=1", pairs=[([0.0], [1.0])], **QUICK)
    assert (found.verdict, found.exit_status, found.by) == ("error", 3, "") and "age" in found.statement


def test_a_claim_that_asks_nothing_is_said_to_ask_nothing():
    found = judge(lambda x, rng: repr(rng.laplace())[-3:], "eps=2,delta=1", pairs=[(0.0, 1.0)], **QUICK)
    assert (found.verdict, found.by) == ("inconclusive", "") and "asks nothing of these pairs" in found.statement
    assert "a claim that sets a limit" in found.next_step


def test_a_function_without_its_return_is_proved_with_a_note():
    def forgets(bit, rng):
        bit ^ (rng.random() < 0.25)

    found = judge(forgets, "eps=1", pairs=[(0, 1)], **QUICK)
    assert found.verdict == "proved" and "does the mechanism return its answer?" in found.statement
    assert repr(found).startswith("<Judgement Proved (certificate): eps=1. ")


def test_a_copy_of_the_process_ends_in_the_call_that_made_it(tmp_path):
    (tmp_path / "program.py").write_text(
        "import os, dpaudit\n"
        "def forks(x, rng):\n"
        "    child = os.fork()\n"
        "    if child:\n"
        "        os.waitpid(child, 0)\n"
        "    return x + rng.laplace(scale=0.5)\n"
        f"dpaudit.judge(forks, 'eps=1', pairs=[(0.0, 1.0)], seed={SEED}, seconds=0.5)\n"
        "print('goes on')\n"
    )
    ended = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert ended.stdout == "goes on\n", ended.stdout + ended.stderr


PROGRAM = """
import json, random, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["type"] == "hello":
        reply = {"type": "hello", "protocol": 1}
    else:
        noise = random.Random()
        draws = [2.0 * request["input"] + noise.expovariate(1) - noise.expovariate(1) for _ in range(request["size"])]
        reply = {"id": request["id"], "outputs": draws}
    print(json.dumps(reply), flush=True)
"""


def test_a_program_is_judged_by_its_draws(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    subject = dpaudit.exec_subject(f"{sys.executable} -S {tmp_path / 'program.py'}")
    found = judge(subject, "eps=1", domain=NumberDomain(0.0, 3.0), **QUICK)
    assert (found.verdict, found.by, found.error_rate) == ("refuted", "statistics", ERROR_RATE)
    programs.close_programs()


def test_a_claim_with_a_budget_for_each_pair_is_judged_by_shares():
    found = judge(
        lambda x, rng: 2.0 * x + rng.laplace(), MetricDP(AbsoluteMetric()), domain=NumberDomain(0, 8, 8.0), **QUICK
    )
    assert found.verdict == "refuted" and found.searched["distance"] == pytest.approx(2.0)


def test_a_metric_claim_is_refuted_where_its_budget_is_not_tiny():
    """The root grows by 1.118 at 0, and less farther on; a proof needs a millionth of a nat beside the budget."""
    found = judge(
        lambda x, rng: (x + 0.2) ** 0.5 + rng.laplace(),
        MetricDP(AbsoluteMetric()),
        domain=NumberDomain(0, 8, 8.0),
        **QUICK,
    )
    assert (found.verdict, found.by) == ("refuted", "recorded noise")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"domain": BOX, "pairs": [(0, 1)]}, "one way, got domain and pairs"),
        ({"domain": {"kind": "box"}}, "kind of a domain must be one of"),
        ({"domain": {"kind": "vectr"}}, "got 'vectr'. Did you mean 'vector'"),
        ({"examples": []}, "examples must be at least one input, got none"),
        *(
            ({"pairs": [(0, 1)], "seconds": value}, f"seconds must be a finite number above 0, got {said}")
            for value, said in ((0.0, "0.0"), (-1, "-1"), (math.inf, "inf"), (math.nan, "nan"), ("10", "'10'"))
        ),
        ({"search": BOX}, "got 'search'. Did you mean 'domain'. They are mechanism, claim, domain"),
        ({}, "State the inputs"),
        ({"pairs": []}, "at least one pair"),
        ({"pairs": [(0, 1)], "seed": -1}, "seed must be"),
        ({"examples": 3}, "examples must be"),
    ],
)
def test_what_users_get_wrong_has_one_clear_message(arguments, said):
    with pytest.raises(UsageError, match=said):
        judge(lambda x, rng: x + rng.laplace(), "eps=1", **arguments)


def test_a_saved_judgement_is_read_back_and_follows_its_schema(tmp_path):
    schema = json.loads((resources.files("dpaudit") / "schemas" / "judgement-1.json").read_text(encoding="utf-8"))
    for found in (
        judge(spread, "eps=1", domain=BOX, **QUICK),
        judge(enough, "eps=1", domain=BOX, **QUICK),
        judge(response, "eps=2", domain={"kind": "inputs", "inputs": [0, 1]}, **QUICK),
    ):
        jsonschema.validate(found.to_dict(), schema)
        found.save(tmp_path / "judgement.json")
        again = load_judgement(tmp_path / "judgement.json")
        assert isinstance(again, Judgement) and again.to_dict() == found.to_dict()
        assert again.exit_status == found.exit_status and again.text() == found.text()


def test_a_pair_of_arrays_comes_back_as_arrays(tmp_path):
    found = judge(lambda x, rng: 3.0 * x[0] + rng.laplace(), "eps=1", domain=domain(2), **QUICK)
    found.save(tmp_path / "judgement.json")
    pair = load_judgement(tmp_path / "judgement.json").pair
    assert pair is not None and isinstance(pair.x, np.ndarray)
    assert (
        "judgement.json" in found.replay() and "judgement.json" in load_judgement(tmp_path / "judgement.json").replay()
    )


def test_a_file_that_is_no_judgement_is_refused(tmp_path):
    record = judge(enough, "eps=1", pairs=[([0.0], [0.5])], **QUICK).to_dict()
    for change, said in (({"verdict": "fine"}, "verdict must be one of"), ({"schema": "x/1"}, "schema must be")):
        (tmp_path / "judgement.json").write_text(json.dumps(record | change))
        with pytest.raises(UsageError, match=said):
            load_judgement(tmp_path / "judgement.json")


def test_a_run_that_takes_long_with_symbols_ends_in_its_time():
    def compares(x, rng):  # 300 integrals a run, and as many runs as there are orders
        return sum(bool(rng.normal() + x > rng.normal()) for _ in range(300))

    started = time.process_time()
    assert judge(compares, "eps=1,delta=1e-5", pairs=[(0.0, 1.0)], seed=SEED, seconds=2.0).verdict != "proved"
    assert time.process_time() - started < 10.0  # seconds of this process, whatever else the machine does


@pytest.mark.parametrize(
    ("why", "said"),
    [
        (
            "an array may be a view of more (return a copy)",
            "change this, which more time does not: an array may be a view",
        ),
        ("the clock is read", "which more time does not: the clock is read"),
        ("a mass of 0.5 is left: more time, or a smaller domain", "Give more time"),
        ("", "Give more time"),
    ],
)
def test_the_next_step_follows_from_why_nothing_is_proved(why, said):
    assert said in advice("inconclusive", "", (), why, False, False)


def test_a_larger_audit_is_advice_also_where_calls_keep_something():
    why = "a run changes the global count: something is kept between runs"
    assert "larger audit" in advice("inconclusive", "statistics", (), why, False, False)


def out_of_time(*_, **__):
    raise OutOfTimeError


def test_a_refutation_stands_where_the_time_ends_while_its_pair_is_made_small(monkeypatch):
    def text(x, rng):  # no record follows it
        return f"{round(sum(x) + rng.laplace(scale=0.2), 1)}"

    monkeypatch.setattr("dpaudit.search.shrinking.shrink", out_of_time)
    found = judge(text, "eps=1", domain=BOX, **QUICK)
    assert (found.verdict, found.by) == ("refuted", "statistics") and found.pair is not None
    monkeypatch.setattr(judging, "make_smaller", out_of_time)
    found = judge(spread, "eps=1", domain=BOX, **QUICK)
    assert (found.verdict, found.by, found.loss) == ("refuted", "recorded noise", pytest.approx(2.0))


def test_an_interrupt_while_a_pair_is_made_small_says_what_was_refuted(monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(judging, "make_smaller", stop)
    with pytest.raises(KeyboardInterrupt) as raised:
        judge(spread, "eps=1", domain=BOX, **QUICK)
    assert "Refuted, after" in raised.value.__notes__[0]


def test_a_proof_stands_where_no_time_is_left_to_hold_it_and_says_so(monkeypatch):
    monkeypatch.setattr(judging, "audit", out_of_time)
    found = judge(response, "eps=1.1", pairs=[(0, 1)], **QUICK)
    assert (found.verdict, found.by) == ("proved", "certificate")
    assert "no time to hold this against real runs" in found.statement


def test_the_runs_that_a_proof_is_held_against_are_counted():
    found = judge(enough, "eps=1", pairs=[([0.0] * 4, [0.0, 0.5, 0.0, 0.0])], **QUICK)
    assert found.details["audit"]["samples"] == 2_000 <= found.runs


def test_a_remedy_that_a_proof_asks_for_is_the_next_step():
    table = np.arange(10.0)
    found = judge(lambda x, rng: table[:3] if rng.random() < 0.6 else table[1:4], "eps=1", pairs=[(0, 1)], **QUICK)
    assert "return a copy" in found.statement and "undecided" not in found.statement
    assert "return a copy" in found.next_step and not found.next_step.startswith("Give more time")


def test_calls_that_wait_do_not_stretch_the_time():
    def waits(x, rng):
        time.sleep(0.7)
        return x + rng.laplace()

    found = judge(waits, "eps=1", pairs=[(0, 1)], seconds=1.5, seed=SEED)
    assert found.verdict == "inconclusive"
    assert found.seconds < 1.4 * 1.5 + 0.7  # of which 0.1 is no call; three calls to plan an audit make it 3.4


def test_a_call_that_catches_what_ends_it_is_no_outcome(monkeypatch):
    def gives_up(x, rng):
        try:
            for _ in range(10**7):
                pass
        except Exception:
            return "gave up"
        return rng.laplace()

    ended = dataclasses.replace(judging.SHARES, end=0.0, over=1e6)  # an audit would go on for long
    monkeypatch.setattr(judging, "SHARES", ended)
    found = judge(gives_up, "eps=1", pairs=[(0, 1)], seconds=1.0)
    assert (found.verdict, found.by) == ("inconclusive", "")
