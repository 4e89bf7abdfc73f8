"""All pairs of a domain that has few inputs: what is proved for each of them is proved for the domain."""

from __future__ import annotations

import itertools

from dpaudit.privacy.pairs import Pair
from dpaudit.subjects.domains import Domain

MAX_INPUTS = 64
MAX_PAIRS = 400


def all_pairs_of(domain: Domain) -> list[Pair] | None:
    """Every pair of neighbours of a domain, each once; None where there are too many, or they cannot be listed.

    Examples
    --------
    >>> from dpaudit.subjects.domains import NumberDomain
    >>> [pair.id for pair in all_pairs_of(NumberDomain(0, 3, integer=True)) or ()]
    ['0|1', '1|2', '2|3']
    >>> all_pairs_of(NumberDomain(0, 3)) is None
    True
    """
    listed = domain.all_inputs(MAX_INPUTS)
    inputs = None if listed is None else list(itertools.islice(listed, MAX_INPUTS + 1))
    if inputs is None or len(inputs) > MAX_INPUTS:
        return None
    pairs = [Pair(x, y) for x, y in itertools.combinations(inputs, 2) if domain.is_pair(x, y) or domain.is_pair(y, x)]
    return pairs if 0 < len(pairs) <= MAX_PAIRS else None
