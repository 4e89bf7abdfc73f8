"""What composes: every two features of an audit, walked.

A cell that works gives what the first feature gives without the second, where the second is not meant to change it; or
an audit of both, whose sound subject is not refuted at confidence 1 - 1e-9 and whose faulty one is. One that does not
work raises `IncompatibleOptions` with its reason. No statistical assertion has a false-alarm rate above 1e-9; all
violations are of a subject that releases its input, of which every guess is right.
"""

from __future__ import annotations

import dataclasses
import shutil
import sqlite3
from pathlib import Path

import pytest
from compatibility_page import page, table

import dpaudit
from dpaudit.audits.compatibility import FEATURES, REFUSED, IncompatibleOptions, check_compatibility
from dpaudit.audits.time_limits import audit_within
from dpaudit.subjects.domains import NumberDomain
from dpaudit.subjects.targets import resolve_target

SURE = 1.0 - 1e-9
ROOT = Path(__file__).resolve().parents[2]
PAIRS = [(0.0, 1.0), (1.0, 2.0)]
# These may not change what the other feature gives, to the bit.
NEUTRAL = ("grey_box", "isolation", "jobs", "dask", "checkpoint", "seconds")
CELLS = table()


class Release:
    """Laplace noise, a translation family; `noise` 0 gives the input away."""

    translation_family = True
    claim = "eps=1"

    def __init__(self, noise: float = 1.0) -> None:
        self.noise = noise

    def sample(self, data, size, rng):
        return data + self.noise * rng.laplace(size=size)


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="dask's distributed is not installed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50) as made:
        yield made.scheduler_address


def arguments(features, folder, request):
    """What a caller states for these features: the subject, pairs and options."""
    options = {"samples": 400, "seed": 3, "confidence": SURE, "floating_point": False, "pool": False}
    options["mode"] = next((mode for mode in ("sequential", "adaptive", "fixed") if mode in features), "sequential")
    subject, pairs = Release(), list(PAIRS)
    if "program" in features:
        if shutil.which("node") is None:
            pytest.skip("node is not installed")
        subject = resolve_target(f"exec:node {ROOT / 'docs/examples/exec/laplace.js'}")
    if "all pairs" in features:
        pairs = dpaudit.AllPairs([float(k) / 1000.0 for k in range(65)])
    if "search" in features:
        pairs = dpaudit.Search(NumberDomain(0, 4), pairs=1, budget=1000, candidates=4, grey_box=False)
    if "pool" in features:
        options["pool"] = True
    if "grey_box" in features:
        options["grey_box"] = True
    if "isolation" in features:
        options["isolation"] = "seconds=60,timing=0"
    if "jobs" in features:
        options["jobs"] = 2
    if "dask" in features:
        options |= {"backend": "dask", "cluster": request.getfixturevalue("cluster")}
    if "checkpoint" in features:
        options["checkpoint"] = folder / "finished.checkpoint"
    if "power" in features:
        options["power"] = "quick"
    if "band" in features:
        options["band"] = True
    if "store" in features:
        options["store"] = folder / "evidence.db"
    return subject, pairs, options


def audited(features, folder, request, subject=None):
    folder.mkdir()
    of_features, pairs, options = arguments(features, folder, request)
    subject = subject or of_features
    if "seconds" in features:
        return audit_within(3600.0, subject, "eps=1", pairs, **options)
    return dpaudit.audit(subject, "eps=1", pairs, **options)


def evidence(result):
    """What the seed fixes of an audit's findings."""
    record = dataclasses.replace(result, seconds=0.0).to_dict()
    return [{**pair, "power": None} for pair in record["pairs"]], record["verdict"], record["seed"]


def walked(first, second, said):
    """One cell; those that take processes of their own are walked by `make long`, but for the first mode's."""
    is_quick = said.startswith("no") or (first == "sequential" and second not in ("dask", "isolation", "all pairs"))
    return pytest.param(first, second, said, id=f"{first}, {second}", marks=() if is_quick else pytest.mark.slow)


@pytest.mark.parametrize(("first", "second", "said"), [walked(*cell) for cell in CELLS])
def test_every_two_features_work_together_or_say_what_would_break(first, second, said, tmp_path, request):
    if said.startswith("no"):
        reason = REFUSED[frozenset({first, second})]
        with pytest.raises(IncompatibleOptions) as caught:
            check_compatibility({first: "given", second: "given"})
        assert caught.value.reason == reason and reason.sentence in str(caught.value)
        assert set(caught.value.features) == {first, second} or "mode" in caught.value.features
        if not {first, second} <= {"sequential", "adaptive", "fixed"}:
            with pytest.raises(IncompatibleOptions):
                audited({first, second}, tmp_path / "both", request)
        return
    both = audited({first, second}, tmp_path / "both", request)
    assert both.verdict in ("not_refuted", "inconclusive"), [finding.message for finding in both.findings]
    neutral = [feature for feature in (second, first) if feature in NEUTRAL]
    if neutral:
        alone = audited({first, second} - {neutral[0]}, tmp_path / "alone", request)
        assert evidence(both) == evidence(alone)
    if "all pairs" not in (first, second) and "program" not in (first, second):
        leak = audited({first, second}, tmp_path / "leak", request, Release(noise=0.0))
        assert leak.verdict == "violated"


def test_the_page_of_the_manual_is_this_table():
    assert (ROOT / "docs" / "composition.md").read_text(encoding="utf-8") == page()


def test_every_feature_is_walked_with_every_other():
    assert len(CELLS) == len(FEATURES) * (len(FEATURES) - 1) // 2
    for two in REFUSED:
        assert two <= set(FEATURES)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["sequential", "adaptive"])
@pytest.mark.parametrize("interface", ["calls", "batches"])
def test_isolated_evidence_goes_on_and_its_checkpoint_resumes(tmp_path, mode, interface):
    def one(data, rng):
        return data + rng.laplace()

    subject = one if interface == "calls" else Release()
    options = {"claim": "eps=1", "pairs": PAIRS, "samples": 300, "floating_point": False, "isolation": "seconds=60"}
    for seed in (1, 2):
        session = dpaudit.audit(subject, **options, mode=mode, seed=seed, store=tmp_path / "e.db", confidence=0.999)
        assert session.verdict != "violated" and session.options["isolation"]
    with sqlite3.connect(tmp_path / "e.db") as rows:
        (sessions,) = rows.execute("select count(*) from nights where status = 'finished'").fetchone()
    assert sessions == 2

    class Stop(Exception):
        pass

    def stops(progress):
        if progress.runs > 200:
            raise Stop

    place = tmp_path / "audit.checkpoint"
    with pytest.raises(Stop):
        dpaudit.audit(subject, **options, mode=mode, seed=5, checkpoint=place, on_progress=stops)
    resumed = dpaudit.audit(subject, **options, mode=mode, seed=5, checkpoint=place, resume=True)
    alone = dpaudit.audit(subject, **options, mode=mode, seed=5)
    assert resumed.options["resumed"] is True and not place.exists()
    assert evidence(resumed) == evidence(alone)


@pytest.mark.slow
def test_a_restart_under_isolation_and_a_store_shares_no_draws(tmp_path):
    """A batch that raises makes the subject one that is called once a draw: from then on pairs are apart."""

    class Raises(Release):
        def sample(self, data, size, rng):
            if size > 1 and data > 1.5:
                raise ValueError("one at a time")
            return super().sample(data, size, rng)

    options = {"claim": "eps=1", "pairs": PAIRS, "samples": 200, "floating_point": False, "isolation": "seconds=60"}
    for seed in (1, 2):
        session = dpaudit.audit(Raises(), **options, seed=seed, store=tmp_path / "e.db", confidence=0.999)
        assert session.verdict in ("not_refuted", "inconclusive")
        assert session.subject["interface"].endswith("one call a draw")


def test_a_search_for_an_isolated_subject_finds_the_pair_and_its_calls_are_contained():
    def release(data, size, rng):  # the noise forgets that the answer doubles above 9
        return (data if data < 9 else 2 * data) + rng.laplace(size=size)

    search = dpaudit.Search(NumberDomain(0, 10), budget=4000, pairs=1)
    found = dpaudit.audit(release, "eps=1", search, samples=2000, seed=1, isolation="seconds=60", floating_point=False)
    assert found.verdict == "violated" and found.options["isolation"]
    assert {"pair_search", "containment"} <= {finding.kind for finding in found.side_findings}


def test_pooled_pairs_of_an_isolated_subject_that_is_called_once_a_draw_share_no_draws():
    class OneByOne:
        translation_family = True

        def __call__(self, data, rng):
            return data + rng.laplace(scale=0.4)

    points = [(float(k), float(k + 1)) for k in range(4)]
    options = {"claim": "eps=1", "pairs": points, "samples": 400, "seed": 2, "floating_point": False, "pool": True}
    found = dpaudit.audit(OneByOne(), **options, isolation="seconds=60")
    assert found.verdict == "violated" and found.options["pools"] == 1
