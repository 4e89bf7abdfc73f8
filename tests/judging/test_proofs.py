"""The examples of other provers: what is proved of a few of them, and that no verdict is wrong.

A refutation by draws of a right one would have a probability of at most .01 (`dpaudit.judgements.judging.ERROR_RATE`);
those that are run here for right ones end with a proof or a bound, which have no draws but those that hold them against
runs, at a rate of 1e-6.
"""

from __future__ import annotations

import pytest
from proof_examples import EXAMPLES, ONES

import dpaudit

PAIR = [([1.0, 1.0, 0.0], [0.0, 0.0, 1.0])]
BY_NAME = {f"{example.source}: {example.name}, {example.claim}": example for example in EXAMPLES}


def said_of(example):
    """What is proved of an example, with shorter inputs of the same kind where these are long."""
    pairs = PAIR if example.pairs[0][0] is ONES and len(example.pairs) > 3 else example.pairs[:1]
    certificate = dpaudit.certify(example.mechanism, example.claim, pairs, seconds=20.0)
    recorded = dpaudit.record_noise(example.mechanism, pairs, example.claim, seed=1)
    return certificate.verdict, recorded.grade


@pytest.mark.parametrize("name", BY_NAME)
def test_no_example_has_a_wrong_proof(name):
    example = BY_NAME[name]
    certified, recorded = said_of(example)
    if example.is_right:
        assert certified != "violated" and recorded != "proved"
    if example.is_right is False and example.pairs[0][0] is not ONES:  # of the others these inputs may be good ones
        assert certified != "kept" and recorded != "same"


DECIDED = {
    "CheckDP: report noisy max, eps=1": ("kept", "same"),
    "CheckDP: sparse vector, 1 above, eps=1": ("kept", "same"),
    "CheckDP: gap sparse vector, eps=1": ("open", "same"),
    "CheckDP: smart sum, eps=2": ("open", "same"),
    "behind a function: rounded, eps=1": ("open", "same"),
    "behind a function: rounded, half, eps=1": ("open", "proved"),
    "behind a function: clipped, half, eps=1": ("open", "proved"),
    "behind a function: a logarithm, half, eps=1": ("open", "proved"),
    "behind a function: truncated, eps=1.1": ("kept", "hint"),
}


@pytest.mark.parametrize("name", DECIDED)
def test_what_is_decided_stays_decided(name):
    assert said_of(BY_NAME[name]) == DECIDED[name]
