"""Notes of an audit beside its verdict: pairs of an input with itself, outputs that never vary, calls that raise.

No statistical assertion but that a sound mechanism is not called violated: at confidence 1 - 1e-9 (10 assertions).
"""

import html
import math

import numpy as np
import pytest

import dpaudit
from dpaudit import reports
from dpaudit.audits.findings import CONTROL_VIOLATED
from dpaudit.reports import dossier, redaction
from dpaudit.reports.answers import answers
from dpaudit.reports.rows import missed_sentence
from dpaudit.results.model import NOTHING_DRAWN, SAME_INPUT


def sound(data, size, rng):
    return data + rng.laplace(scale=2.0, size=size)


def audited(mechanism=sound, pairs=((0.0, 1.0),), **options):
    options = {"samples": 8_000, "seed": 1, "confidence": 1.0 - 1e-9, "floating_point": False, **options}
    return dpaudit.audit(mechanism, "eps=1", pairs, **options)


def renderings(result):
    """Every format in which people read a result."""
    found = [reports.render(result, name, profile) for name in ("html", "md") for profile in ("plain", "compliance")]
    return [html.unescape(text).replace("\\", "") for text in found]


# A pair of an input with itself.


@pytest.mark.parametrize("mode", ["sequential", "adaptive", "fixed"])
def test_an_audit_of_controls_alone_is_inconclusive(mode, tmp_path):
    result = audited(pairs=[(0.0, 0.0), ([1.0], [1.0])], mechanism=lambda data, size, rng: rng.random(size), mode=mode)
    assert (result.verdict, result.exit_status) == ("inconclusive", 5)
    assert [finding.verdict for finding in result.findings] == ["inconclusive"] * 2
    assert all(finding.notes == (SAME_INPUT,) and finding.power is None for finding in result.findings)
    result.save(tmp_path / "audit.json")
    again = dpaudit.load(tmp_path / "audit.json")
    assert [finding.notes for finding in again.findings] == [(SAME_INPUT,)] * 2
    for text in renderings(again):
        assert SAME_INPUT in text and "no loss can be found" in text
        assert "would have been found with" not in text and "More draws would settle it" not in text


def test_a_control_beside_other_pairs_has_no_say_in_the_verdict():
    alone = audited()
    result = audited(pairs=[(0.0, 1.0), (0.0, 0.0)])
    assert alone.verdict == result.verdict == "not_refuted"
    assert [finding.notes for finding in result.findings] == [(), (SAME_INPUT,)]
    assert [finding.power is None for finding in result.findings] == [False, True]
    for text in renderings(result):
        assert f"0.0|0.0: {SAME_INPUT}" in text
    assert "Tested least well was the pair 0.0|1.0." in missed_sentence(result)  # of which something could be said


def test_a_control_that_is_violated_stays_so():
    calls = []

    def counting(data, size, rng):  # its outputs depend on when it is called
        calls.append(1)
        return np.full(size, float(len(calls) % 2))

    result = audited(counting, [(0.0, 0.0)], confidence=0.95)
    assert result.verdict == "inconclusive" and result.findings[0].notes[0] == SAME_INPUT
    assert "Draws depend on each other" in result.findings[0].notes[1]
    # At 50% an exact test of a control is violated by luck, at most every other time. Of 520 fair guesses 262 or more
    # are right with probability 0.45 (binomial): that none of 20 seeds is violated has probability 0.55^20 < 1e-5.
    options = {"samples": 400, "mode": "fixed", "confidence": 0.5, "floating_point": False}
    results = (dpaudit.audit(sound, "eps=0.01", [(0.0, 0.0)], seed=seed, **options) for seed in range(20))
    lucky = next(result for result in results if result.verdict == "violated")
    assert lucky.verdict == "violated" and lucky.findings[0].notes[:2] == (SAME_INPUT, CONTROL_VIOLATED)


# Outputs that strike one.


def nothing(data, rng):
    rng.random()


def nan(data, size, rng):
    return np.full(size, math.nan)


@pytest.mark.parametrize("mode", ["sequential", "fixed"])
@pytest.mark.parametrize(("mechanism", "printed"), [(nothing, "None"), (nan, "nan"), (lambda data, rng: 5, "5")])
def test_a_mechanism_that_always_says_the_same_is_not_refuted_and_says_so(mechanism, printed, mode):
    result = audited(mechanism, mode=mode, samples=40_000)
    assert result.verdict == "not_refuted"  # it keeps every promise
    (note,) = result.findings[0].notes
    assert note.startswith("All ") and f"outputs that were looked at, on both inputs, read as {printed}:" in note


def test_pairs_of_a_table_that_were_examined_in_depth_have_their_notes():
    # 66 inputs have 2,145 pairs, which are one table; all outputs are 5.
    result = audited(lambda data, size, rng: np.full(size, 5), dpaudit.AllPairs(list(range(66))), samples=400)
    assert result.universe is not None and len(result.findings) > 10
    assert all("on both inputs, read as 5:" in finding.notes[0] for finding in result.findings)


@pytest.mark.parametrize("jobs", [1, 2])
def test_exceptions_leave_a_trace(jobs):
    def raises(data, rng):
        draw = rng.random()
        if draw < 0.2:
            raise KeyError("no such record")
        return data + rng.laplace(scale=2.0)

    result = audited(raises, jobs=jobs)
    assert result.verdict == "not_refuted"
    (note,) = result.findings[0].notes
    assert "were exceptions: " in note and "raised KeyError" in note and "no such record" not in note
    count, raised = (int(word.replace(",", "")) for word in (note.split()[2], note.split(" inputs, ")[1].split()[0]))
    assert count == 2 * 8_000 and 0.1 < raised / count < 0.3  # 3,200 are expected, with a deviation of 51


def test_an_ordinary_mechanism_has_no_notes():
    result = audited()
    assert result.findings[0].notes == () and all("Note:" not in text for text in renderings(result))


def test_redacted_reports_keep_outputs_out():
    result = audited(lambda data, rng: "the secret answer")
    hidden = redaction.redacted(dossier.Dossier.of(result))
    assert "secret answer" in result.findings[0].notes[0]
    for name in ("html", "md"):
        assert "secret answer" not in reports.render(hidden, name, "compliance")


# Outputs with keys.


@pytest.mark.parametrize("mode", ["sequential", "adaptive", "fixed"])
def test_the_keys_of_dictionaries_are_counted_and_kept_in_the_file(mode, tmp_path):
    def histogram(data, rng):
        bins = {"old": rng.random()} | ({"new": 1.0} if rng.random() < 0.4 else {})
        return {**bins, "rare": 1.0} if data and rng.random() < 0.1 else bins

    result = audited(histogram, [(False, True)], samples=2_000, mode=mode)
    keys = result.findings[0].keys
    assert keys is not None and keys.keys == 3 and keys.varying == 2 and keys.outputs > 100
    result.save(tmp_path / "audit.json")
    assert dpaudit.load(tmp_path / "audit.json").findings == result.findings
    assert audited(samples=2_000).findings[0].keys is None
    for text in renderings(result):
        assert "of up to 3 keys of a pair" in text and "up to 2 appeared in some" in text


OWN = np.random.default_rng(5)


def of_its_own(x, rng):
    return x + OWN.laplace()


def drawing(x, rng):
    return x + rng.laplace()


def drawing_on_one(x, rng):
    return x + rng.laplace() if x else 0.0


@pytest.mark.parametrize(
    ("mechanism", "is_said", "jobs"),
    [(lambda x, rng: x, True, 2), (of_its_own, True, 1), (drawing, False, 1), (drawing_on_one, False, 2)],
)
def test_a_generator_that_nothing_is_drawn_from_is_said_beside_the_verdict_and_on_page_one(mechanism, is_said, jobs):
    result = dpaudit.audit(mechanism, "eps=3", [(0.0, 1.0)], samples=200, seed=1, floating_point=False, jobs=jobs)
    assert (NOTHING_DRAWN in result.findings[0].notes) == is_said
    assert (NOTHING_DRAWN in str(answers(dossier.Dossier.alone(result)).rows[0])) == is_said


def forgetting(x, rng):
    rng.laplace()


def test_outputs_that_are_all_none_are_said_on_page_one():
    result = dpaudit.audit(forgetting, "eps=1", [(0, 1)], samples=400, seed=1)
    (_, release), *_ = answers(dossier.Dossier.alone(result)).rows
    assert "All 800 outputs that were looked at, on both inputs, read as None: does the mechanism return" in release
