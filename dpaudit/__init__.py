"""dpaudit: the test suite for differential privacy.

>>> import dpaudit
>>> result = dpaudit.audit(
...     lambda data, size, rng: data + rng.laplace(size=size),
...     claim=dpaudit.PureDP(1.0), pairs=[(0.0, 1.0)], samples=10_000, seed=7,
... )
>>> result.verdict
'not_refuted'

Names are imported where they are first used, so that `import dpaudit` (and the pytest plugin) costs nothing.
(The modules are `auditing` and `replaying`, so that `dpaudit.audit` and `dpaudit.replay` are always the functions.)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dpaudit.version import __version__

if TYPE_CHECKING:
    from dpaudit import laws, strategies
    from dpaudit.auditing import audit
    from dpaudit.conformance.faces import conformance_checks, parametrize_with_checks
    from dpaudit.conformance.result import CheckResult
    from dpaudit.conformance.running import check
    from dpaudit.doubles_replaying import replay_floating_point
    from dpaudit.errors import (
        DpauditError,
        DpauditFloatingPointWarning,
        DpauditInconclusiveWarning,
        SubjectError,
        UsageError,
    )
    from dpaudit.exact.finite_mechanism import FiniteMechanism
    from dpaudit.laws import LAWS, Law
    from dpaudit.plan_result import Plan
    from dpaudit.planning import plan
    from dpaudit.privacy.claims import (
        ApproxDP,
        Claim,
        GaussianDP,
        MetricDP,
        ProfileClaim,
        PureDP,
        RenyiDP,
        ZeroConcentratedDP,
    )
    from dpaudit.privacy.pairs import AllPairs, Pair, all_pairs
    from dpaudit.privacy.parsing import parse_claim
    from dpaudit.replaying import replay
    from dpaudit.reports import write_report
    from dpaudit.results import AuditResult, Finding, FloatingPointFinding, load
    from dpaudit.subjects.callables import Subject, as_subject
    from dpaudit.subjects.isolation.limits import Isolation
    from dpaudit.subjects.protocol import InteractiveMechanism, Mechanism, SessionEnded
    from dpaudit.subjects.sessions import as_sessions
    from dpaudit.subjects.utility_bounds import UtilityBound
    from dpaudit.utility import UtilityResult, audit_utility

_HOMES = {
    "LAWS": "dpaudit.laws",
    "AllPairs": "dpaudit.privacy.pairs",
    "ApproxDP": "dpaudit.privacy.claims",
    "AuditResult": "dpaudit.results",
    "CheckResult": "dpaudit.conformance.result",
    "Claim": "dpaudit.privacy.claims",
    "DpauditError": "dpaudit.errors",
    "DpauditFloatingPointWarning": "dpaudit.errors",
    "DpauditInconclusiveWarning": "dpaudit.errors",
    "Finding": "dpaudit.results",
    "FiniteMechanism": "dpaudit.exact.finite_mechanism",
    "FloatingPointFinding": "dpaudit.results",
    "GaussianDP": "dpaudit.privacy.claims",
    "InteractiveMechanism": "dpaudit.subjects.protocol",
    "Isolation": "dpaudit.subjects.isolation.limits",
    "Law": "dpaudit.laws",
    "Mechanism": "dpaudit.subjects.protocol",
    "MetricDP": "dpaudit.privacy.claims",
    "Pair": "dpaudit.privacy.pairs",
    "Plan": "dpaudit.plan_result",
    "ProfileClaim": "dpaudit.privacy.claims",
    "PureDP": "dpaudit.privacy.claims",
    "RenyiDP": "dpaudit.privacy.claims",
    "SessionEnded": "dpaudit.subjects.protocol",
    "Subject": "dpaudit.subjects.callables",
    "SubjectError": "dpaudit.errors",
    "UsageError": "dpaudit.errors",
    "UtilityBound": "dpaudit.subjects.utility_bounds",
    "UtilityResult": "dpaudit.utility",
    "ZeroConcentratedDP": "dpaudit.privacy.claims",
    "all_pairs": "dpaudit.privacy.pairs",
    "as_sessions": "dpaudit.subjects.sessions",
    "as_subject": "dpaudit.subjects.callables",
    "audit": "dpaudit.auditing",
    "audit_utility": "dpaudit.utility",
    "check": "dpaudit.conformance.running",
    "conformance_checks": "dpaudit.conformance.faces",
    "load": "dpaudit.results",
    "parse_claim": "dpaudit.privacy.parsing",
    "parametrize_with_checks": "dpaudit.conformance.faces",
    "plan": "dpaudit.planning",
    "replay": "dpaudit.replaying",
    "replay_floating_point": "dpaudit.doubles_replaying",
    "write_report": "dpaudit.reports",
}
_MODULES = ("laws", "strategies")  # whole rooms of names, as `dpaudit.laws.mixture`

__all__ = [
    "LAWS",
    "AllPairs",
    "ApproxDP",
    "AuditResult",
    "CheckResult",
    "Claim",
    "DpauditError",
    "DpauditFloatingPointWarning",
    "DpauditInconclusiveWarning",
    "Finding",
    "FiniteMechanism",
    "FloatingPointFinding",
    "GaussianDP",
    "InteractiveMechanism",
    "Isolation",
    "Law",
    "Mechanism",
    "MetricDP",
    "Pair",
    "Plan",
    "ProfileClaim",
    "PureDP",
    "RenyiDP",
    "SessionEnded",
    "Subject",
    "SubjectError",
    "UsageError",
    "UtilityBound",
    "UtilityResult",
    "ZeroConcentratedDP",
    "__version__",
    "all_pairs",
    "as_sessions",
    "as_subject",
    "audit",
    "audit_utility",
    "check",
    "conformance_checks",
    "laws",
    "load",
    "parametrize_with_checks",
    "parse_claim",
    "plan",
    "replay",
    "replay_floating_point",
    "strategies",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"dpaudit.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'dpaudit' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
