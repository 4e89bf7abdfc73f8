"""An inconclusive audit names a pair that is inconclusive, and the loss that it was judged by."""

import dataclasses

import pytest

from dpaudit.pytest_plugin.texts import weakness_text
from dpaudit.reports import wording
from dpaudit.results.model import Power


@pytest.fixture
def unclear(synthetic):
    """A pair of budget 0 that is inconclusive, beside one of a larger detectable loss that is not."""
    power = Power(0.1, 0.9, 0.4, 0.0)
    zero = synthetic.finding("a", "b", 0.0, 0.0, "inconclusive", ratio_lower=None, power=power)
    one = synthetic.finding("a", "c", 0.8, 1.0, power=Power(0.1, 0.9, 1.4, 1.0))
    return synthetic.result([zero, one])


def test_the_pair_that_is_named_is_an_inconclusive_one(unclear):
    assert wording.least_powerful(unclear).id == "a|b"
    text = wording.power_sentence(unclear)
    assert text.startswith("For the least well tested pair, a|b, a loss of 0.4 nats or more")
    assert "the claim allows none at all, and a pair of budget 0 is judged where 0.1 nats would have been found" in text
    assert "a|b" in weakness_text(unclear) and "a|c" not in weakness_text(unclear)


def test_among_inconclusive_pairs_the_one_furthest_from_its_limit_is_named(synthetic, unclear):
    three = synthetic.finding("a", "d", 0.1, 1.0, "inconclusive", power=Power(0.1, 0.9, 9.0, 1.0))  # 4.5 limits of 2
    both = dataclasses.replace(unclear, findings=(*unclear.findings, three))
    assert wording.least_powerful(both).id == "a|d"
    # The limit is the audit's own: 0.4 is 4 times the 0.1 of a budget of 0.
    wide = dataclasses.replace(both, options={**both.options, "inconclusive_factor": 3.0})
    assert wording.least_powerful(wide).id == "a|b"
