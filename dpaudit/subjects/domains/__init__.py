"""Domains: which inputs a mechanism takes and which two of them are adjacent, as a source of pairs to try.

A domain does three things: it lists `starts`, the pairs that tend to be bad (the patterns of the literature, the
boundary, empty and tiny inputs, duplicates, extremes); it draws pairs at random; and it makes `moves`, pairs that
differ a little from a given one. Every pair it makes is adjacent in its own sense, so the sense has to be the one that
the claim speaks of: the domain is a part of the promise, said by the user.
"""

from dpaudit.subjects.domains.datasets import DatasetDomain
from dpaudit.subjects.domains.domain import RELATIONS, Domain, Inputs, Relation, Start
from dpaudit.subjects.domains.from_json import domain_from_dict
from dpaudit.subjects.domains.listed_domain import ListedDomain
from dpaudit.subjects.domains.numbers import CHANGES, Change, NumberDomain, VectorDomain
from dpaudit.subjects.domains.tables import TableDomain

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
    "TableDomain",
    "VectorDomain",
    "domain_from_dict",
]
