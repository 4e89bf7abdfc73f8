"""Other people's mechanisms as subjects, under the name that users write: see `dpaudit.subjects.libraries`."""

from dpaudit.subjects.libraries import diffprivlib, estimators, opendp, pydp, sql, with_pairs

__all__ = ["diffprivlib", "estimators", "opendp", "pydp", "sql", "with_pairs"]
