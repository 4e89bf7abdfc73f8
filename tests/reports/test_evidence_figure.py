"""The first picture: outputs on both inputs along the view of the rule, and where it guesses."""

import dataclasses

import numpy as np
import pytest

import dpaudit
from dpaudit import reports
from dpaudit.errors import UsageError
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.figures import witness_figure
from dpaudit.reports.redaction import redacted
from dpaudit.results.model import AuditResult


@pytest.fixture(scope="module")
def result():
    """A loss of 2 under a claim of 1: the exact test misses it with probability below 1e-9 at this size."""
    options = {"samples": 4_000, "seed": 3, "mode": "fixed", "floating_point": False}
    return dpaudit.audit(lambda x, size, rng: x + rng.laplace(scale=0.5, size=size), "eps=1", [(0.0, 1.0)], **options)


def test_the_sketch_has_each_draw_in_a_bin_and_guesses_on_both_sides(result):
    sketch = result.worst.witness.sketch
    assert sketch.view == "the output" and list(sketch.edges) == sorted(sketch.edges)
    assert sum(sketch.x) + sum(sketch.x_prime) >= 500
    assert sketch.guesses[0] == 1.0 and sketch.guesses[-1] == -1.0  # x = 0 lies to the left
    assert sum(sketch.x[: len(sketch.x) // 2]) > sum(sketch.x_prime[: len(sketch.x) // 2])


def test_it_is_the_first_picture_in_html_and_says_how_often_the_rule_was_right(result):
    page, witness = reports.render(result, "html"), result.worst.witness
    assert page.index('id="figure-evidence"') < page.index('id="figure-profile"')
    assert f"right: {witness.correct:,} of {witness.correct + witness.wrong:,} fresh guesses" in page
    for drawing in (witness_figure(result).wide, witness_figure(result).narrow):
        assert 'class="guess-x"' in drawing and 'class="guess-x-prime"' in drawing


def test_a_panel_without_any_number_says_so_and_does_not_look_like_no_data():
    # A key that one input never has: a loss without limit, which 32 draws show with probability 1 - 1e-9.
    def release(x, rng):
        return {"a": 1.0, **({"b": rng.normal()} if x else {})}

    options = {"samples": 400, "seed": 1, "floating_point": False}
    drawn = witness_figure(dpaudit.audit(release, "eps=1", [(0, 1)], **options))
    assert "x = 0: no output has this number" in drawn.wide and "x′ = 1: no output" not in drawn.wide


def test_it_is_saved_and_left_out_where_records_are_redacted_and_of_older_files(result):
    record = result.to_dict()
    assert AuditResult.from_dict(record).worst.witness.sketch == result.worst.witness.sketch
    assert witness_figure(redacted(Dossier.of(result)).audits[0]) is None
    older = dataclasses.replace(result.worst, witness=dataclasses.replace(result.worst.witness, sketch=None))
    assert witness_figure(dataclasses.replace(result, findings=(older,))) is None
    record["pairs"][0]["witness"]["sketch"]["x"].pop()
    with pytest.raises(UsageError, match="sketch must have"):
        AuditResult.from_dict(record)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("low", [-1.7e308, 1.6e308])
def test_numbers_near_the_largest_double_are_audited_and_have_no_sketch(low):
    # The loss is log 9 under a claim of 1: missed with probability below 1e-9.
    def release(x, size, rng):
        return np.where(rng.random(size) < (0.9 if x else 0.1), 1.7e308, low)

    options = {"samples": 2_000, "seed": 1, "floating_point": False, "severity": False}
    result = dpaudit.audit(release, "eps=1", [(0, 1)], **options)
    assert result.verdict == "violated" and result.worst.witness.sketch is None
