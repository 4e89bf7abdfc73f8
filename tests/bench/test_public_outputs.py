"""Public outputs: what is not read is named, and nothing of the outputs chosen by hand is silent."""

import numpy as np
import public_outputs
import pytest
from public_outputs import SEEDS, page


def _by_hand():
    return [
        public_outputs._looked_at(kind, name, [made(np.random.default_rng(seed)) for seed in SEEDS])
        for kind, name, made in public_outputs._by_hand()
        if name not in ("a megabyte", "a text of 50,000 characters")
    ]


def test_nothing_that_was_chosen_by_hand_is_silent():
    found = _by_hand()
    assert len(found) >= 12
    assert [one.name for one in found if one.is_silent] == []
    named = {one.name: one.not_read for one in found if one.not_read}
    assert named["a list of 5,000"] == ("positions of lists of numbers from 3,001 on, each by itself",)


def test_what_is_read_as_the_same_is_told():
    # Numpy's texts count as Python's, see the page: that is the one difference.
    found = public_outputs._looked_at("numpy", "text", [np.str_("a"), "a"])
    assert found.is_silent
    text = page([found])
    assert "1 functions, 1 read in full, 0 in part, 1 silent." in text
    assert "- numpy: text (str_)" in text


@pytest.mark.long
def test_outputs_of_public_functions_are_read_or_named():
    found = public_outputs.read()
    assert len(found) >= 300  # numpy and Python's own library are always there
    assert [one.name for one in found if one.is_silent and one.kind in ("text", "bytes", "JSON", "statistics")] == []
