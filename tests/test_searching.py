"""The search for pairs: faults that show on rare pairs are found, and the audit that follows sees none of its draws.

Statistical assertions: each says that an audit of a planted fault ends "violated", or that a search ranks a pair first.
They are of power, at fixed seeds: a search may miss at other seeds. Where a sound mechanism is audited, and may not be
called violated, confidence is 1 - 1e-9, so that the false-positive rate of this file is below 1e-8.
"""

import json
import math
import re
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

import dpaudit
from dpaudit import Search, domains, search_pairs
from dpaudit.cli import main
from dpaudit.errors import OutOfTimeError
from dpaudit.results.model import load
from dpaudit.subjects.call_limits import within

SEED = 20_261_122
SURE = 1.0 - 1e-9
UNIT = domains.DatasetDomain.between(0.0, 1.0)
QUICK = {"samples": 5000, "seed": SEED, "floating_point": False}


def clipped_sum(data, size, rng):
    """Sound: records are clipped to [0, 1], one more or less moves the sum by at most 1."""
    return float(np.sum(np.clip(np.asarray(data, dtype=float), 0.0, 1.0))) + rng.laplace(size=size)


def less_noise_when_empty(data, size, rng):
    """Loss 2 between the empty dataset and [1]; infinite on the real line's tails, by the scale."""
    return float(np.sum(data)) + rng.laplace(scale=1.0 if len(data) else 0.5, size=size)


def heavy_at_the_boundary(data, size, rng):
    """A record exactly at 1 counts three times."""
    records = np.asarray(data, dtype=float)
    return float(records.sum() + 2.0 * (records == 1.0).sum()) + rng.laplace(size=size)


def off_by_one(data, size, rng):
    """A single record is counted as three."""
    return (3 if len(data) == 1 else len(data)) + rng.laplace(size=size)


def two_far_regions(data, size, rng):
    """Answers between 71 and 74 jump by 3: more than d_X allows only for pairs with one end there."""
    return (data + 3.0 if 71.0 < data < 74.0 else data) + rng.laplace(size=size)


def noisy_largest(data, size, rng):
    """Report noisy max that releases the value: 2.5 times its budget where all five answers move together."""
    return (np.asarray(data) + rng.laplace(scale=2.0, size=(size, len(data)))).max(axis=1)


@pytest.mark.parametrize("grey_box", [True, False])
@pytest.mark.parametrize("mechanism", [less_noise_when_empty, heavy_at_the_boundary, off_by_one])
def test_a_fault_on_rare_pairs_is_found_without_being_told_the_pair(mechanism, grey_box):
    search = Search(UNIT, budget=8000, grey_box=grey_box)
    result = dpaudit.audit(mechanism, "eps=1", search, **{**QUICK, "samples": 20_000})
    assert result.verdict == "violated"
    boxes = ["same_randomness", "recorded_noise"] * grey_box
    assert {finding.kind for finding in result.side_findings} == {"pair_search", *boxes}


def test_a_metric_claim_that_breaks_between_two_far_regions_is_found():
    claim = dpaudit.MetricDP(lambda x, y: abs(x - y))
    found = search_pairs(two_far_regions, claim, domains.NumberDomain(0, 100, change=2), seed=SEED, budget=20_000)
    best = found.tried[0]
    assert 71.0 < best.pair.x < 74.0 or 71.0 < best.pair.x_prime < 74.0
    assert best.epsilon == pytest.approx(abs(best.pair.x - best.pair.x_prime))  # its own budget
    assert dpaudit.audit(two_far_regions, claim, found.pairs, **QUICK).verdict == "violated"


def test_the_pattern_that_noisy_max_needs_is_found_without_the_grey_box():
    domain = domains.VectorDomain(5, 0, 4, integer=True)
    found = search_pairs(noisy_largest, "eps=1", domain, seed=SEED, budget=40_000, grey_box=False)
    change = np.asarray(found.pairs[0].x_prime) - np.asarray(found.pairs[0].x)
    assert abs(int(change.sum())) >= 4  # all five move together, or four of them
    assert dpaudit.audit(noisy_largest, "eps=1", found.pairs, **QUICK).verdict == "violated"


@pytest.mark.parametrize(
    ("function", "change"),
    [
        (lambda v: np.abs(v - 0.5).sum(), 0.5),
        (lambda v: (v * (1 - v)).sum(), 0.25),
        (lambda v: np.diff(np.sort([0, *v, 1])).max(), 0.5),
    ],
    ids=["distance", "parabola", "gap"],
)
def test_a_function_that_changes_only_inside_of_its_range_is_found(function, change):
    # No step of 1 from end to end changes any of them; the loss is 2 where one number moves by 1/2.
    def release(data, size, rng):
        return function(np.asarray(data)) + rng.laplace(scale=change / 2, size=size)

    domain = {"kind": "vector", "length": 4, "low": 0, "high": 1, "adjacency": "one"}
    assert dpaudit.audit(release, "eps=1", Search(domain), **QUICK).verdict == "violated"


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (lambda data: len(data) > 12, "an addition"),
        (lambda data: data[:1] != [0.0], "another first record"),
        (lambda data: len(data) == 11 and 9.0 not in data, "the tenth removed"),
    ],
)
def test_a_fault_anywhere_in_an_example_of_a_dozen_records_is_found(fault, why):
    def release(data, size, rng):
        return 3.0 * fault(data) + rng.laplace(size=size)

    search = Search(examples=[[float(k) for k in range(12)]])
    assert dpaudit.audit(release, "eps=1", search, **QUICK).verdict == "violated", why


def test_moves_find_what_no_start_has():
    def hidden(data, size, rng):  # wrong for seven to nine records of the value 0.25
        count = int(np.sum(np.asarray(data) == 0.25))
        return (3.0 if 7 <= count <= 9 else 1.0) * count + rng.laplace(size=size)

    domain = domains.DatasetDomain((0.0, 0.25, 1.0), largest=12)
    starts = {json.dumps([x, y]) for _, x, y in domain.starts()}
    found = search_pairs(hidden, "eps=1", domain, seed=SEED, budget=20_000, grey_box=False)
    assert found.tried[0].suspicion > 3.0 and found.pairs[0].x.count(0.25) >= 6
    assert any(json.dumps([entry.pair.x, entry.pair.x_prime]) not in starts for entry in found.tried[:3])


def test_what_the_search_draws_has_no_part_in_the_audit_that_follows():
    # Bit for bit: the same pairs, written down by a user, give the same findings. So the audit reads none of the
    # search's draws, and its streams do not depend on how many there were.
    search = Search(UNIT, budget=3000, pairs=2)
    searched = dpaudit.audit(clipped_sum, "eps=1", search, confidence=SURE, **QUICK)
    pairs = search_pairs(clipped_sum, "eps=1", UNIT, budget=3000, pairs=2, seed=SEED).pairs
    told = dpaudit.audit(clipped_sum, "eps=1", pairs, confidence=SURE, **QUICK)
    assert searched.findings == told.findings and searched.samples == told.samples
    assert searched.verdict != "violated"


def test_the_same_seed_tries_the_same_pairs_and_another_seed_tries_others():
    first, second, third = (
        search_pairs(clipped_sum, "eps=1", UNIT, budget=3000, seed=seed) for seed in (SEED, SEED, SEED + 1)
    )
    assert [entry.to_dict() for entry in first.tried] == [entry.to_dict() for entry in second.tried]
    assert [entry.to_dict() for entry in first.tried] != [entry.to_dict() for entry in third.tried]


def test_the_budget_is_kept_and_every_pair_is_tried_once():
    runs = 0

    def count(data, size, rng):
        nonlocal runs
        runs += size
        return clipped_sum(data, size, rng)

    found = search_pairs(count, "eps=1", UNIT, budget=5000, seed=SEED, grey_box=False)
    assert runs == found.samples <= 1.25 * 5000  # small searches round up
    keys = [frozenset([str(entry.pair.x), str(entry.pair.x_prime)]) for entry in found.tried]
    assert len(set(keys)) == len(keys) and all(len(key) == 2 for key in keys)


def test_a_hypothesis_strategy_is_steered_and_seeded():
    st = pytest.importorskip("hypothesis.strategies")
    records = st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=4)
    pairs = records.flatmap(lambda rows: st.sampled_from([0.0, 0.5, 1.0]).map(lambda row: (rows, [*rows, row])))
    first, second = (search_pairs(heavy_at_the_boundary, "eps=1", pairs, budget=8000, seed=SEED) for _ in range(2))
    assert [entry.to_dict() for entry in first.tried] == [entry.to_dict() for entry in second.tried]
    assert first.pairs[0].x_prime[-1] == 1.0 and first.tried[0].origin in ("strategy", "climb")
    with pytest.raises(dpaudit.UsageError, match=r"domain must be a strategy of pairs \(x, x_prime\), got 0"):
        search_pairs(clipped_sum, "eps=1", st.just(0), seed=SEED)


def test_what_breaks_a_search_of_a_strategy_is_said_as_it_is():
    strategies = pytest.importorskip("hypothesis.strategies")

    def one_too_many(data, size, rng):
        return rng.laplace(size=size + 1)

    with pytest.raises(dpaudit.SubjectError, match="outputs"):
        search_pairs(one_too_many, "eps=1", strategies.tuples(strategies.just(0.0), strategies.floats(1, 2)), seed=SEED)


def test_a_pair_that_raises_takes_no_place_from_one_that_is_worse():
    def release(data, size, rng):  # without any noise at 1, and refused at 3
        if data == 1:
            return np.full(size, 1.0)
        noise = rng.laplace(size=size)
        if data == 3:
            raise ValueError
        return data + noise

    domain = domains.ListedDomain((0, 1, 2, 3), lambda x, y: {x, y} != {1, 3})
    (chosen,) = search_pairs(release, "eps=1", domain, pairs=1, budget=2000, seed=SEED).pairs
    assert 1 in (chosen.x, chosen.x_prime) and 3 not in (chosen.x, chosen.x_prime)
    several = search_pairs(release, "eps=1", domain, pairs=4, budget=2000, seed=SEED).pairs
    assert sum(3 in (pair.x, pair.x_prime) for pair in several) == 1


def test_example_data_is_enough():
    examples = [[0.3, 0.6, 1.0], [0.2]]
    result = dpaudit.audit(heavy_at_the_boundary, "eps=1", Search(examples=examples, budget=6000), **QUICK)
    assert result.verdict == "violated"
    used = {record for finding in result.findings for record in [*finding.x, *finding.x_prime]}
    assert used <= {0.3, 0.6, 1.0, 0.2}


def test_examples_of_a_metric_claim_are_its_inputs():
    claim = dpaudit.MetricDP(lambda x, y: abs(x - y) if abs(x - y) < 50 else math.inf)
    found = search_pairs(two_far_regions, claim, examples=[0.0, 70.0, 72.0, 99.0], budget=4000, seed=SEED)
    assert {found.pairs[0].x, found.pairs[0].x_prime} == {70.0, 72.0}
    assert all(math.isfinite(entry.epsilon) for entry in found.tried)  # of the others nothing is asked


def mean_that_refuses_none(data, size, rng):
    if len(data) == 0:
        raise ValueError("no records")
    return float(np.clip(np.mean(data), 0.0, 1.0)) + rng.laplace(size=size)


def test_a_pair_with_one_refused_input_is_suspicious_once_and_the_audit_says_what_it_is():
    found = search_pairs(mean_that_refuses_none, "eps=1", UNIT, budget=2000, seed=SEED, grey_box=False)
    refused = [entry for entry in found.tried[: len(found.pairs)] if not (entry.pair.x and entry.pair.x_prime)]
    assert len(refused) == 1 and math.isnan(refused[0].loss)
    result = dpaudit.audit(mean_that_refuses_none, "eps=1", found.pairs, **{**QUICK, "samples": 300})
    assert [finding.id for finding in result.violated] == [refused[0].pair.id]


def test_inputs_that_are_refused_on_both_sides_are_left_out():
    def picky(data, rng):
        if len(data) < 3:
            raise ValueError("too few")
        return float(sum(data)) + rng.laplace()

    found = search_pairs(picky, "eps=1", UNIT, budget=2000, seed=SEED)
    assert all(max(len(e.pair.x), len(e.pair.x_prime)) >= 3 for e in found.tried)

    def never(data, size, rng):
        raise ValueError("closed")

    with pytest.raises(dpaudit.UsageError, match=r"domain must have inputs that .*never takes, got none .* closed"):
        search_pairs(never, "eps=1", UNIT, budget=1000, seed=SEED)

    with pytest.raises(dpaudit.UsageError, match=r"got none in .* pairs: every call raised: KeyError: 'column' in "):
        search_pairs(lambda data, rng: {}["column"], "eps=1", UNIT, budget=1000, seed=SEED)


def test_the_grey_box_raises_suspicion_above_what_few_draws_show():
    def leaks_rarely(data, size, rng):  # 1.3 instead of 1: not to be seen in 1,000 runs
        return 1.3 * len(data) + rng.laplace(size=size)

    found = search_pairs(leaks_rarely, "eps=1", domains.DatasetDomain((0, 1)), budget=1000, seed=SEED)
    assert found.tried[0].grey_box == "implied" and found.grey_box.pairs[0].implied_loss == pytest.approx(1.3)
    assert found.tried[0].suspicion > 50.0 > found.tried[0].excess


@pytest.mark.parametrize("claim", ["mu=1", "rho=0.5", "order=2,rdp=1", "eps=1,delta=1e-3"])
def test_every_family_of_claims_is_searched(claim):
    def release(data, size, rng):  # twice as much for records above 0.9
        return float(np.sum(np.where(np.asarray(data) > 0.9, 4.0, 0.2) * data)) + rng.normal(size=size)

    found = search_pairs(release, claim, UNIT, budget=3000, candidates=24, seed=SEED, grey_box=False)
    first = found.pairs[0]
    assert sum(map(float, first.x)) != pytest.approx(sum(map(float, first.x_prime)), abs=0.9)


def test_the_provenance_is_saved_with_the_audit(tmp_path):
    search = Search(UNIT, budget=3000, pairs=2)
    result = dpaudit.audit(heavy_at_the_boundary, "eps=1", search, **QUICK)
    result.save(tmp_path / "audit.json")
    saved = load(tmp_path / "audit.json").side_findings[0]
    assert saved == result.side_findings[0] and saved.kind == "pair_search" and saved.status == "found"
    assert saved.error_rate is None and "no confidence" in saved.summary
    assert saved.details["chosen"] == [finding.id for finding in result.findings]
    assert saved.details["violated"] == [finding.id for finding in result.findings if finding.verdict == "violated"]
    assert saved.details["domain"]["kind"] == "dataset" and saved.details["seed"] == SEED
    sound = dpaudit.audit(clipped_sum, "eps=1", search, confidence=SURE, **QUICK)
    assert sound.side_findings[0].status == "nothing_found"


def test_arguments_are_checked():
    for wrong, message in (
        ({}, "domain or examples must be given, one of the two, got neither"),
        ({"domain": UNIT, "examples": [[1]]}, "one of the two, got both"),
        ({"domain": UNIT, "pairs": 0}, "pairs must be a positive integer, got 0"),
        ({"domain": UNIT, "pairs": 101}, "pairs must be at most 100, got 101"),
        ({"domain": UNIT, "budget": 10}, "budget must be an integer of at least 1,000, got 10"),
        ({"domain": UNIT, "candidates": 1}, "candidates must be an integer of at least 4, got 1"),
        ({"domain": UNIT, "adjacency": "x"}, "adjacency must be one of add_remove, replace_one, got 'x'"),
    ):
        with pytest.raises(dpaudit.UsageError, match=message):
            Search(**wrong)
    with pytest.raises(dpaudit.UsageError, match="domain must be a Domain, its JSON form or a hypothesis strategy"):
        search_pairs(clipped_sum, "eps=1", 3, seed=SEED)
    with pytest.raises(dpaudit.UsageError, match="domain must have pairs of which the claim asks something"):
        search_pairs(clipped_sum, dpaudit.MetricDP(lambda x, y: math.inf), UNIT, seed=SEED)


def geometric_count(data, rng):
    """Two-sided geometric noise; a record at the upper end counts three times."""
    p = 1.0 - np.exp(-1.0)
    return sum(3 if record == 1.0 else 1 for record in data) + rng.geometric(p) - rng.geometric(p)


def test_a_pair_whose_recorded_noise_breaks_the_claim_comes_first():
    found = search_pairs(geometric_count, "eps=1", UNIT, seed=SEED, budget=2_000, pairs=1, candidates=8)
    assert found.tried[0].recorded == "proved" and found.recorded.ranked == found.pairs
    assert found.recorded.grade == "proved" and found.recorded.pairs[0].loss == pytest.approx(3.0)
    assert found.grey_box.grade == "implied" and found.grey_box.pairs[0].implied_loss == pytest.approx(3.0)


def test_a_sound_mechanism_gets_no_suspicion_from_its_recorded_noise():
    def sparse(data, rng):
        threshold = 1.0 + rng.laplace(scale=2.0)
        return sum(data) + rng.laplace(scale=4.0) > threshold

    found = search_pairs(sparse, "eps=1", UNIT, seed=SEED, budget=2_000, pairs=1, candidates=8)
    assert "proved" not in {entry.recorded for entry in found.tried} and found.recorded is not None
    assert max(entry.suspicion for entry in found.tried) < 10.0  # no more than counts and hints can give


def test_a_search_ends_with_its_time_and_gives_what_it_looked_at():
    calls = []

    def slow(x, size, rng):
        calls.append(x)
        time.sleep(0.2)
        return x + rng.laplace(size=size)

    search = dpaudit.Search({"kind": "number", "low": 0, "high": 1}, budget=20_000, grey_box=False)
    subject, claim = dpaudit.as_subject(slow), dpaudit.parse_claim("eps=1")
    with within(2.0):
        found = search.choose_pairs(subject, claim, 1)
    assert found.pairs and len(calls) <= 11  # of 32 inputs and more in five rounds
    with within(0.0), pytest.raises(OutOfTimeError):
        search.choose_pairs(subject, claim, 1)


# --- `dpaudit audit --search` and `--examples`, and `dpaudit greybox` ---

CODE = """
import numpy as np
from dpaudit.subjects.domains import DatasetDomain

def total(data, rng):
    return float(np.sum(data)) + (rng.laplace() if len(data) else 0.0)

def vector(data, size, rng):
    return np.asarray(data) + rng.laplace(scale=2.0, size=(size, len(data)))

def domain():
    return DatasetDomain.between(0.0, 1.0)

number = 3
"""
OPTIONS = ["--claim", "eps=1", "--samples", "300", "--seed", "7", "--no-floating-point", "--quiet"]
DATASETS = json.dumps({"kind": "dataset", "low": 0, "high": 1})


@pytest.fixture
def code(project):
    (project / "code_under_audit.py").write_text(CODE)
    (project / "domain.json").write_text(DATASETS)
    (project / "header.csv").write_text("age,city\n")
    (project / "examples.json").write_text("[[0.5, 1.0], [0.25]]")
    return project


def run(*arguments):
    result = CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)
    return result.exit_code, result.output


@pytest.mark.parametrize(
    "place",
    [
        ("--search", DATASETS),
        ("--search", "domain.json"),
        ("--search", "code_under_audit.py:domain"),
        ("--examples", "examples.json"),
    ],
)
def test_pairs_are_searched_for_and_the_result_says_where_they_come_from(code, place):
    status, output = run(
        "audit", "code_under_audit.py:total", *OPTIONS, *place, "--search-budget", 1000, "--search-pairs", 2,
        "--out", "out", "--report", "json",
    )  # fmt: skip
    assert status == 1 and re.search("(1 pair was|2 pairs were) chosen of", output)
    assert "same randomness on both inputs: found" in output
    saved = load("out/audit.json")
    kinds = [finding.kind for finding in saved.side_findings]
    assert kinds == ["pair_search", "same_randomness", "recorded_noise", "shrunk_pair"]
    assert len(saved.findings) in (1, 2)  # one where only one stands out


def test_greybox_says_what_differs_and_its_exit_status_says_whether_it_is_more_than_a_hint(code):
    status, output = run("greybox", "code_under_audit.py:total", "--claim", "eps=1", "--pairs", "[],[1]", "--seed", 1)
    assert status == 1 and "[]|[1]: definite." in output and "branches, on 16 of 16" in output
    sound = ("greybox", "code_under_audit.py:vector", "--claim", "eps=1", "--pairs", "[0,0],[1,1]", "--seed", 1)
    assert run(*sound)[0] == 0
    assert run(*sound[:3], "eps=0.9", *sound[4:])[1].count("claimed 0.9") == 1
    status, output = run(*sound[:3], "eps=0.9", *sound[4:], "--format", "json")
    record = json.loads(output)
    assert status == 1 and record["details"]["pairs"][0]["implied_loss"] == 1.0 and record["details"]["seed"] == 1


PROGRAM = """
import json, random, sys
for line in sys.stdin:
    r = json.loads(line)
    noise = random.Random(r.get("seed")).uniform(-1, 1) * (len(sys.argv) > 1)
    reply = {"type": "hello", "protocol": 1, "seeds": True}
    if r["type"] != "hello":
        reply = {"id": r["id"], "outputs": [r["input"] + noise] * r["size"]}
    print(json.dumps(reply), flush=True)
"""


def test_greybox_says_that_only_the_outputs_of_a_program_can_be_compared(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = f"exec:{sys.executable} -S {tmp_path / 'program.py'}"
    asked = ("--pairs", "0,1", "--seed", 1)
    status, output = run("greybox", f"{command} noise", *asked)
    assert status == 5 and "Only the outputs of" in output and "same." not in output
    status, output = run("greybox", f"{command} noise", *asked, "--format", "json")
    assert status == 5 and json.loads(output)["status"] == "not_applicable"
    # Sixteen equal outputs do not prove that it has no noise, as it does where nothing is taken from a generator.
    status, output = run("greybox", command, *asked)
    assert status == 0 and "0|1: hint." in output and "Only outputs could be compared." in output


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (("--example", "header.csv"), "example must have at least one row, got none at 'header.csv'."),
        (("--examples", "header.csv"), "examples must be a JSON list, got a table at 'header.csv'. Give a table with"),
    ],
)
@pytest.mark.parametrize("has_pandas", [True, False])
def test_a_table_that_is_no_example_is_told_what_it_lacks(code, place, message, has_pandas, monkeypatch):
    if has_pandas:
        pytest.importorskip("pandas", reason="needs pandas (extra tables)")
    else:
        monkeypatch.setitem(sys.modules, "pandas", None)
    status, output = run("audit", "code_under_audit.py:total", *OPTIONS, *place)
    assert status == 2 and output.startswith(f"Error: {message}")
