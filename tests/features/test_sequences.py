"""Sequences that go together: two of one output, the columns of a table, and a sequence with itself farther on."""

import numpy as np
import pytest

import dpaudit
from dpaudit.features.outcomes import read_outputs
from dpaudit.features.reader import Reader, correlations
from dpaudit.features.views import proposals

NAMES = np.array(["ada", "ben", "cleo", "dan", "eva", "finn", "gil", "hans"])


def in_a_week(rng):
    own = rng.normal(size=42)
    return own, np.corrcoef(own[7:], own[:-7])[0, 1] > 0.1


def two_columns(rng):
    own = rng.normal(size=(20, 3)) * [1.0, 5.0, 20.0]
    return own, np.corrcoef(own[:, 0], own[:, 2])[0, 1] > 0.2


def two_lists(rng):
    before, after = (rng.permutation(NAMES)[:4].tolist() for _ in range(2))
    return {"before": before, "after": after}, len({*before} & {*after}) > 2


@pytest.mark.parametrize("draw", [in_a_week, two_columns, two_lists])
def test_what_goes_together_is_found(draw):
    """Randomised response of loss 3; a twin of loss 1 keeps the claim, and is violated in at most 5% of audits."""

    def mechanism(loss):
        def release(data, rng):
            wanted = (rng.random() < 1.0 / (1.0 + np.exp(-loss))) == bool(data)
            return next(own for own, is_there in iter(lambda: draw(rng), None) if is_there == wanted)

        return release

    verdicts = [
        dpaudit.audit(
            mechanism(loss), "eps=1", [(1, 0)], samples=600, seed=1, floating_point=False, severity=False
        ).verdict
        for loss in (3.0, 1.0)
    ]
    assert verdicts[0] == "violated" and verdicts[1] != "violated"


@pytest.mark.parametrize("shape", [(4, 5), (12, 3), (31, 2), (100,)])
def test_outputs_of_few_numbers_are_asked_for_their_decimals(shape):
    """Views of single numbers are proposed up to so many columns: sequences that go together do not use these up."""
    outputs = read_outputs(np.random.default_rng(3).normal(size=(40, *shape)), 40)
    reader = Reader.learn([outputs, outputs])
    labels = np.repeat([0, 1], 20)
    views = proposals(reader(outputs)[:40], labels, reader.layout)
    assert "fraction" in {view.kind for several in views for view in several}


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e200, 1e300])
def test_a_correlation_has_no_size(size):
    own = np.random.default_rng(4).normal(size=(5, 20)) * size
    # Both are one vector, scaled to length 1: what is left is the rounding of the result to 2**-36, which is 1.5e-11.
    np.testing.assert_allclose(correlations(own, own), 1.0, atol=1e-9)


def test_a_correlation_is_that_of_numpy_and_shows_no_low_bits():
    first, second = np.random.default_rng(3).normal(size=(2, 30, 9))
    expected = [np.corrcoef(a, b)[0, 1] for a, b in zip(first, second, strict=True)]
    # Numbers are rounded to 36 bits: 2**-36 of the sum of nine sizes, so by some 2**-33 of one of them, of which the
    # correlation has a few times as much; 2**-30 is eight times that.
    np.testing.assert_allclose(correlations(first, second)[:, 0], expected, atol=2**-30)
    assert np.isnan(correlations(np.full((1, 9), 0.1), second[:1])).all()  # not that of its errors of rounding


@pytest.mark.parametrize("shape", [(), (1,), (5,), (6, 2), (12, 3), (4, 2)])
@pytest.mark.parametrize("is_near", [False, True])
def test_each_column_of_a_reader_has_a_name(shape, is_near):
    outputs = read_outputs(np.random.default_rng(1).normal(size=(30, *shape)), 30)
    width = outputs.numbers.shape[1]
    reader = Reader.learn([outputs, outputs], ((0.0,) * width, (1.0,) * width) if is_near else ())
    assert reader(outputs).shape == (30, reader.n_columns) and reader.n_columns == len(reader.names)


def test_a_weighted_sum_is_said_in_words():
    outputs = read_outputs(np.random.default_rng(1).normal(size=(30, 5)), 30)
    assert "the randomly weighted sum of the numbers of the output" in Reader.learn([outputs, outputs]).names
