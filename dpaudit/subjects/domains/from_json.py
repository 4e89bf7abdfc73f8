"""Domains from JSON."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from dpaudit.arguments import check_names, did_you_mean
from dpaudit.errors import UsageError
from dpaudit.subjects.domains.datasets import DatasetDomain
from dpaudit.subjects.domains.domain import Domain
from dpaudit.subjects.domains.listed_domain import ListedDomain
from dpaudit.subjects.domains.numbers import NumberDomain, VectorDomain

SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}  # how JSON names them


def domain_from_dict(record: Mapping[str, Any]) -> Domain:
    """The domain of a JSON object.

    Parameters
    ----------
    record : mapping
        `kind` and the parameters of its class: "number" (`NumberDomain`), "vector" (`VectorDomain`), "dataset"
        (`DatasetDomain` with `values`, or with `low` and `high`) or "inputs" (`ListedDomain`). NaN and infinities are
        the strings "nan", "inf" and "-inf", in `values`, `special` and `change`.

    Examples
    --------
    >>> domain_from_dict({"kind": "number", "low": 0, "high": 1, "change": "inf"})
    NumberDomain(low=0, high=1, change=inf, integer=False)
    """
    kinds: dict[str, Callable[..., Domain]] = {
        "number": NumberDomain,
        "vector": VectorDomain,
        "dataset": DatasetDomain.between if "low" in record else DatasetDomain,
        "inputs": ListedDomain,
    }
    kind = record.get("kind") if isinstance(record, Mapping) else record
    if not isinstance(kind, str) or kind not in kinds:
        raise UsageError(
            f"kind of a domain must be one of {', '.join(kinds)}, got {kind!r}.{did_you_mean(kind, kinds)}"
        )
    values = {key: value for key, value in record.items() if key != "kind"}
    parameters = dict(inspect.signature(kinds[kind]).parameters)
    parameters.pop("adjacent", None)  # a function: JSON has none
    check_names(f"a domain of kind {kind!r}", values, parameters)
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in values:
            given = ", ".join(values) or "nothing"
            raise UsageError(f"{name} must be given for a domain of kind {kind!r}, got {given}.")
    for name in ("special", "values", "inputs", "examples"):
        if name in values:
            if not isinstance(values[name], list | tuple):
                raise UsageError(f"{name} of a domain must be a list, got {values[name]!r}.")
            values[name] = tuple(_named(value) for value in values[name])
    if "change" in values:
        values["change"] = _named(values["change"])
    if kind == "vector":  # what JSON has, so that a saved pair is the input that was audited
        values.setdefault("as_list", True)
    return kinds[kind](**values)


def _named(value: Any) -> Any:
    return SPECIAL.get(value, value) if isinstance(value, str) else value
