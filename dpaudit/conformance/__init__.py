"""The whole suite: every check that any mechanism must pass, one by one, with three interfaces over one list.

    dpaudit.check(MyMechanism(epsilon=1.0))                     # all checks, as a `CheckResult`

    @dpaudit.parametrize_with_checks([MyMechanism(epsilon=1.0)])
    def test_conformance(check):                                # one test a check
        check()

    for check in dpaudit.conformance_checks(mechanism): ...     # the generator under both

and `dpaudit check TARGET` on the command line. A check passes over what does not apply to a mechanism with a reason,
never silently. What a mechanism may state beside `sample` to have more of it checked: `claim`, `pairs()`,
`distribution(data)` with `outcomes`, `log_density`, `privacy_loss`, `privacy_profile`, `utility_bounds()`,
`input_kind` ("number", "vector", "counts", "position" or "records"), `with_budget(factor)`, and for a class
`examples()`, which returns instances to check.

**The error rate** (`error_rate`, 0.001) is of the whole list of one mechanism: each statistical check of the registry
has the same share, whether it applies or not, so a sound mechanism fails some check with at most that probability.

Nothing but this folder's own light modules is imported until a check runs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dpaudit.conformance.bindings import BoundCheck as BoundCheck
from dpaudit.conformance.bindings import conformance_checks as conformance_checks
from dpaudit.conformance.bindings import parametrize_with_checks as parametrize_with_checks
from dpaudit.conformance.outcomes import CheckFailed as CheckFailed
from dpaudit.conformance.outcomes import CheckInconclusive as CheckInconclusive
from dpaudit.conformance.outcomes import CheckSkipped as CheckSkipped
from dpaudit.conformance.registry import CHECKS as CHECKS
from dpaudit.conformance.registry import CheckSpec as CheckSpec
from dpaudit.conformance.registry import all_checks as all_checks
from dpaudit.conformance.registry import check_names as check_names

if TYPE_CHECKING:
    from dpaudit.conformance.result import CheckRecord as CheckRecord
    from dpaudit.conformance.result import CheckResult as CheckResult
    from dpaudit.conformance.running import check as check

_HOMES = {
    "CheckRecord": "dpaudit.conformance.result",
    "CheckResult": "dpaudit.conformance.result",
    "check": "dpaudit.conformance.running",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dpaudit.conformance' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
