"""Other people's mechanisms as subjects: one module a library, each with `subject(...)` and `stated_claim(...)`.

    opendp        measurements of OpenDP
    diffprivlib   mechanisms, tools and models of IBM's diffprivlib
    pydp          mechanisms and algorithms of Google's library, by python-dp
    estimators    any object with `fit`, read after it
    sql           any function that queries a table
    tmlt          measurements of Tumult Core

Every `subject` takes a `claim`, which is audited in the place of what the library promises, and a `name` for results.
None imports its library before it is used; where the library is absent, one message says what to install. What is no
object of the library is refused with a `UsageError`. What the
library's own metadata promise for a pair (`promised(x, x_prime)` of the mechanism) is compared with the claim of the
audit: the side finding "claim_metadata" (`dpaudit.audits.claim_metadata`).
"""

from __future__ import annotations

from dpaudit.subjects.libraries import diffprivlib, estimators, opendp, pydp, sql, tmlt
from dpaudit.subjects.libraries.library_mechanism import with_pairs

__all__ = ["diffprivlib", "estimators", "opendp", "pydp", "sql", "tmlt", "with_pairs"]
