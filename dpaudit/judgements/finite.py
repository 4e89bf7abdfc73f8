"""All pairs of a domain that has few inputs: what is proved for each of them is proved for the domain."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from dpaudit.privacy.pairs import Pair
from dpaudit.subjects.domains import DatasetDomain, Domain, ListedDomain, NumberDomain, VectorDomain

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
    listed = _inputs(domain)
    inputs = None if listed is None else list(itertools.islice(listed, MAX_INPUTS + 1))
    if inputs is None or len(inputs) > MAX_INPUTS:
        return None
    pairs = [Pair(x, y) for x, y in itertools.combinations(inputs, 2) if domain.is_pair(x, y) or domain.is_pair(y, x)]
    return pairs if 0 < len(pairs) <= MAX_PAIRS else None


def _inputs(domain: Domain) -> Iterable[Any] | None:
    if isinstance(domain, ListedDomain):
        return domain.inputs
    if isinstance(domain, NumberDomain) and domain.integer:
        return [*range(int(domain.low), int(domain.high) + 1), *domain.special]
    if isinstance(domain, VectorDomain) and domain.integer and not domain.special:
        count = int(domain.high) - int(domain.low) + 1
        if count**domain.length > MAX_INPUTS:
            return None
        numbers = range(int(domain.low), int(domain.high) + 1)
        kind = list if domain.as_list else _array
        return map(kind, itertools.product(numbers, repeat=domain.length))
    if isinstance(domain, DatasetDomain) and domain.ends is None and not domain.examples:
        sizes = range(domain.smallest, domain.largest + 1)
        return (list(rows) for size in sizes for rows in itertools.product(domain.values, repeat=size))
    return None


def _array(values: Iterable[int]) -> Any:
    import numpy as np

    return np.array(list(values))
