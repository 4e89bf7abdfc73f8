"""Which inputs a mechanism takes, under the name that users write: see `dpaudit.subjects.domains`."""

from dpaudit.subjects.domains import (
    CHANGES,
    RELATIONS,
    Change,
    DatasetDomain,
    Domain,
    Inputs,
    ListedDomain,
    NumberDomain,
    Relation,
    Start,
    VectorDomain,
    domain_from_dict,
)

__all__ = [
    "CHANGES",
    "RELATIONS",
    "Change",
    "DatasetDomain",
    "Domain",
    "Inputs",
    "ListedDomain",
    "NumberDomain",
    "Relation",
    "Start",
    "VectorDomain",
    "domain_from_dict",
]
