"""Digests are of contents: equal for equal ones, different for different ones, and of no address."""

from __future__ import annotations

import dataclasses

import numpy as np

from dpaudit.running.digests import digest


@dataclasses.dataclass
class Named:
    name: str
    values: object


class Other:
    pass


def test_different_contents_have_different_digests():
    fields = np.array([(1,), (2,)], dtype=[("a", int)])
    values = [
        None, True, 1, 1.0, -1.0, 0.0, -0.0, "1", b"1", (1,), [1], [1, [2]], [[1], 2], {1: 2}, {2: 1}, {1}, {1, 2},
        np.array([1, 2]), np.array([1.0, 2.0]), np.array([[1, 2]]), np.float64(1.0), np.array([1, "a"], dtype=object),
        np.ma.array([1, 2], mask=[0, 0]), np.ma.array([1, 2], mask=[0, 1]), fields[0], fields[1], fields[:1],
        fields[:1].astype([("b", int)]), Named("a", 1), Named("b", 1), Named("a", 2), Other(), ("ab", "c"), ("a", "bc"),
        len, max,
    ]  # fmt: skip
    found = [digest(value) for value in values]
    assert len(set(found)) == len(values)
    assert found == [digest(value) for value in values]
