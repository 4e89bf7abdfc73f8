"""The list of stages behind a verdict: streams, levels, words where a stage cannot run. No statistical assertion."""

import dataclasses
import types

import numpy as np
import pytest

import dpaudit
from dpaudit.audits import stages
from dpaudit.audits.options import Options
from dpaudit.audits.stages import STAGES, Stage, play_stages
from dpaudit.errors import OutOfTimeError
from dpaudit.running import streams

OPTIONS = Options(1_000, "sequential", 0.95, 1, 0.1, 2.0, None, None)
GAME = (streams.DRAWS, streams.COINS, streams.ALL_PAIRS_DRAWS, streams.ALL_PAIRS_COINS, streams.KEPT_NOISE)


def test_no_two_stages_and_no_stage_and_the_game_read_the_same_stream():
    purposes = [purpose for stage in STAGES for purpose in stage.purposes]
    of_game = [purpose + restart for purpose in GAME for restart in (0, streams.RESTART)]
    others = [streams.SEARCH_DRAWS, streams.SEARCH_CHOICES, streams.PLAN_DRAWS, streams.EVIDENCE]
    assert len({*purposes, *of_game, *others}) == len(purposes) + len(of_game) + len(others)


def test_stages_that_draw_labels_or_test_have_a_rate_that_the_options_fix():
    rates = {type(stage).__name__: stage.rate(OPTIONS) for stage in STAGES}
    assert rates["LowBits"] == rates["Timing"] == rates["Independence"] == 1e-3
    assert rates["BandStage"] == pytest.approx(0.01) and rates["SeverityStage"] == pytest.approx(0.05)
    assert rates["Dependence"] == 2e-9  # small batches, and more of them where these hint
    assert rates["SecondLook"] == 1e-4  # of withholding a violation that is at least half of what was found
    assert rates["Metadata"] == rates["Containment"] == rates["SearchReport"] == rates["GreyBoxStage"] == 0.0
    other = dataclasses.replace(OPTIONS, samples=10, severity=True, band=True, floating_point=False)
    assert rates == {type(stage).__name__: stage.rate(other) for stage in STAGES}


def test_a_stage_that_cannot_run_says_why_and_draws_nothing():
    said = []

    class One(Stage):
        def __init__(self, is_asked, reason):
            self.asked, self.reason = is_asked, reason

        def is_asked(self, run):
            return self.asked

        def why_not(self, run):
            return self.reason

        def leave_out(self, run, reason):
            said.append(reason)

        def run(self, run):
            said.append("ran")

    play_stages(None, (One(False, "never said"), One(True, "draws depend"), One(True, "")))
    assert said == ["draws depend", "ran"]


@pytest.mark.parametrize("ends", [True, False])
def test_a_stage_is_listed_as_cut_only_where_it_did_not_end(ends, monkeypatch):
    over = []
    monkeypatch.setattr(stages, "is_time_over", lambda: bool(over))

    class One(Stage):
        what = "one"

        def run(self, run):
            over.append(True)
            if not ends:
                raise OutOfTimeError

    run = types.SimpleNamespace(cut=[])
    play_stages(run, (One(),))
    assert run.cut == ([] if ends else ["one"])


def test_where_draws_depend_no_stage_that_supposes_independence_has_run():
    def release(data, size, rng):  # one noise a batch
        return data + np.full(size, rng.laplace())

    result = dpaudit.audit(release, "eps=1", [(0.0, 1.0)], samples=1_000, seed=1, band=True)
    assert result.floating_point.message == stages.DEPEND and result.floating_point.samples == 0
    assert result.trade_off.reason and result.findings[0].severity is None
    assert [finding.kind for finding in result.side_findings] == ["call_order"]
