"""Pairs that nobody has to give: domains guessed from what a mechanism says of itself, and broken pairs made small.

The search itself is `dpaudit.audits.searching`.
"""

from dpaudit.search.default_domains import Guess, guess_domain
from dpaudit.search.shrinking import Shrunk, audit_and_shrink, shrink

__all__ = ["Guess", "Shrunk", "audit_and_shrink", "guess_domain", "shrink"]
