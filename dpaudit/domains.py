"""Domains of inputs, under the name that users write: see `dpaudit.subjects.domains`."""

from dpaudit.subjects.domains import *  # noqa: F403
from dpaudit.subjects.domains import __all__ as __all__
