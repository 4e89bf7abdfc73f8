"""Digits of identifiers: which columns are read digit by digit, and residues of weighted sums of them."""

import itertools

import numpy as np
import pytest

from dpaudit.features.outcomes import Outcomes, read_outputs
from dpaudit.features.reader import Reader
from dpaudit.features.views import SIZES, View, residues_of_sums

IDS = np.random.default_rng(5).integers(10_000, 1_000_000, 300)


def records(ids):
    return read_outputs([{"id": number, "kind": "a"} for number in ids], len(ids))


def test_an_identifier_is_read_digit_by_digit():
    reader = Reader.learn([records(IDS.tolist())])
    columns = dict(zip(reader.names, reader(records(IDS.tolist())).T, strict=True))
    for k in range(6):
        assert columns[f"digit {k} of the output['id']"].tolist() == [int(f"{n:06d}"[::-1][k]) for n in IDS]
    for k in range(20):
        assert columns[f"bit {k} of the output['id']"].tolist() == [n >> k & 1 for n in IDS.tolist()]
    assert columns["the sum of the digits of the output['id']"].tolist() == [sum(map(int, str(n))) for n in IDS]


OTHERS = [0, 7, -5, 123_456, 2**41, 2**60, 2**80, 10**400, 0.5, 1e300, -np.inf, np.inf, np.nan, None, True, "12", []]


def test_a_row_alone_has_the_digits_that_it_has_among_others():
    """Validity: also where later outputs are no such numbers; there is a name for each column, also after saving."""
    reader, outcomes = Reader.learn([records(IDS.tolist())]), records(OTHERS)
    matrix = reader(outcomes)
    assert reader.digits and matrix.shape[1] == reader.n_columns == len(reader.names) == len(set(reader.names))
    alone = np.concatenate([reader(outcomes.rows(slice(k, k + 1))) for k in range(len(OTHERS))])
    np.testing.assert_array_equal(matrix, alone)
    milliseconds = Reader.learn([records([1_700_000_000_000 + 997 * number for number in IDS.tolist()])])
    assert [n for *_, n in milliseconds.digits] == [40, 13]
    restored = Reader.from_dict(reader.to_dict())
    assert restored == reader and np.array_equal(restored(outcomes), matrix, equal_nan=True)
    some, _ = reader.only([0])
    assert not some.digits


@pytest.mark.parametrize(
    "column",
    [
        IDS % 2 == 0, IDS % 64, IDS - 20_000, IDS + 2**44, IDS * 2**60, IDS + 0.5, IDS * 1e-3, IDS * 0, IDS[:0],
        np.full(300, np.nan), np.full(300, np.inf), 1e300 * IDS,
    ],
    ids=range(12),
)  # fmt: skip
def test_what_is_no_identifier_is_not(column):
    """Flags, small numbers, negative and enormous ones, fractions, constants, and no numbers at all."""
    assert not Reader.learn([Outcomes(column.astype(float)[:, None])]).digits


def test_of_many_identifiers_none_is():
    assert len(Reader.learn([read_outputs(np.stack([IDS] * 4, axis=1), 300)]).digits) == 8
    assert not Reader.learn([read_outputs(np.stack([IDS] * 5, axis=1), 300)]).digits


def test_what_a_weighted_sum_tells_is_its_fourier_coefficient():
    """By an enumeration of all weights of three columns modulo 5."""
    rng = np.random.default_rng(3)
    matrix = rng.integers(0, 50, (400, 3)).astype(float)
    labels = (rng.random(400) < np.where(matrix @ [1, 3, 2] % 5 == 4, 0.95, 0.3)).astype(int)
    signs = labels - labels.mean()
    told = {
        weights: abs(signs @ np.exp(2j * np.pi * (matrix @ weights) / 5)) ** 2 / (signs @ signs)
        for weights in itertools.product(range(5), repeat=3)
    }
    views = residues_of_sums(matrix, labels, [(0, 1, 2)])
    assert views[0] == View("residue of a sum", (0, 1, 2), 5.0, (), (1.0, 3.0, 2.0))
    assert np.array_equal(views[0](matrix), matrix @ [1, 3, 2] % 5)
    assert told[1, 3, 2] >= (1.0 - 1e-12) * max(told.values())  # as much as its multiples
    assert views[0].describe(["a", "b", "c"]) == "a plus 3 times b plus 2 times c modulo 5"


def test_of_labels_that_nothing_tells_few_sums_are_proposed():
    """Those of all groups and primes have a probability of exp(-3) together at most, as the costs are a prior."""
    rng = np.random.default_rng(4)
    matrix = rng.integers(0, 10, (500, 5)).astype(float)
    found = [bool(residues_of_sums(matrix, rng.permutation(500) % 2, [(0, 1, 2, 3, 4), (0, 1)])) for _ in range(100)]
    assert sum(found) <= 15  # of 100 with probability .05 each more than 15 have probability 4e-5
    assert SIZES.clear == 3.0


def test_what_cannot_be_summed_or_told_gives_no_sums():
    labels = np.arange(60) % 2
    for column in (np.full(60, np.nan), np.full(60, np.inf), np.full(60, 1e300), np.arange(60) * 2.0**45, np.ones(60)):
        assert residues_of_sums(np.stack([column, labels * 1.0], axis=1), labels, [(0, 1)]) == []
    matrix = np.stack([labels, labels[::-1]], axis=1) * 1.0
    assert residues_of_sums(matrix, np.ones(60, dtype=int), [(0, 1)]) == []
    assert residues_of_sums(matrix, labels, []) == []
