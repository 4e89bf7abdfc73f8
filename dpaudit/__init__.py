"""dpaudit: the test suite for differential privacy.

>>> import dpaudit
>>> result = dpaudit.audit(
...     lambda data, size, rng: data + rng.laplace(size=size),
...     claim=dpaudit.PureDP(1.0), pairs=[(0.0, 1.0)], samples=10_000, seed=7,
... )
>>> result.verdict
'not_refuted'

Names are imported where they are first used, so that `import dpaudit` (and the pytest plugin) costs nothing.
(Rooms have other names than functions, so that `dpaudit.audit` and `dpaudit.museum` are always the functions.)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dpaudit.environment import __version__
from dpaudit.results.shown import attach as _attach

if TYPE_CHECKING:
    from dpaudit import domains, laws, libraries, strategies
    from dpaudit.audits.auditing import audit
    from dpaudit.audits.comparing import same_distribution
    from dpaudit.audits.grey_box import GreyBoxResult, replay_same_randomness
    from dpaudit.audits.planning import plan
    from dpaudit.audits.replaying import replay, replay_floating_point
    from dpaudit.audits.search_result import SearchResult
    from dpaudit.audits.searching import Search, search_pairs
    from dpaudit.audits.time_limits import TooSlowError, audit_within
    from dpaudit.audits.utility import UtilityResult, audit_utility
    from dpaudit.conformance.bindings import conformance_checks, parametrize_with_checks
    from dpaudit.conformance.result import CheckResult
    from dpaudit.conformance.running import check
    from dpaudit.errors import (
        DpauditCheckpointWarning,
        DpauditError,
        DpauditFloatingPointWarning,
        DpauditInconclusiveWarning,
        DpauditNoteWarning,
        OutputError,
        ProgramError,
        SubjectError,
        UsageError,
    )
    from dpaudit.exact.finite_mechanism import FiniteMechanism
    from dpaudit.exhibits import Exhibit, museum
    from dpaudit.judgements import Judgement, judge, load_judgement
    from dpaudit.laws import LAWS, Law
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
    from dpaudit.privacy.neighbours import NeighbourClaim
    from dpaudit.privacy.pairs import AllPairs, Pair, all_pairs
    from dpaudit.privacy.parsing import parse_claim
    from dpaudit.privacy.trade_off import FDP
    from dpaudit.profiles import Profile, register_profile
    from dpaudit.reports import write_report
    from dpaudit.reports.dossier import Dossier
    from dpaudit.reports.reading import read_dossier
    from dpaudit.results.model import AuditResult, Finding, FloatingPointFinding, SideFinding, load
    from dpaudit.results.plan_result import Plan
    from dpaudit.scores.auditing import audit_scores
    from dpaudit.scores.result import ScoresResult, load_scores
    from dpaudit.subjects.by_outputs import with_by_outputs
    from dpaudit.subjects.callables import Subject, as_subject
    from dpaudit.subjects.isolation.limits import Isolation
    from dpaudit.subjects.programs import exec_subject
    from dpaudit.subjects.protocol import InteractiveMechanism, Mechanism, SessionEnded
    from dpaudit.subjects.samplers import samplers
    from dpaudit.subjects.sessions import as_sessions
    from dpaudit.subjects.utility_bounds import UtilityBound
    from dpaudit.symbolic.certificate import Certificate, load_certificate
    from dpaudit.symbolic.certifying import certify
    from dpaudit.symbolic.recorded_noise import RecordedResult, record_noise

_HOMES = {
    "FDP": "dpaudit.privacy.trade_off",
    "LAWS": "dpaudit.laws",
    "AllPairs": "dpaudit.privacy.pairs",
    "ApproxDP": "dpaudit.privacy.claims",
    "AuditResult": "dpaudit.results.model",
    "Certificate": "dpaudit.symbolic.certificate",
    "CheckResult": "dpaudit.conformance.result",
    "Claim": "dpaudit.privacy.claims",
    "Dossier": "dpaudit.reports.dossier",
    "DpauditError": "dpaudit.errors",
    "DpauditCheckpointWarning": "dpaudit.errors",
    "DpauditFloatingPointWarning": "dpaudit.errors",
    "DpauditInconclusiveWarning": "dpaudit.errors",
    "DpauditNoteWarning": "dpaudit.errors",
    "Exhibit": "dpaudit.exhibits",
    "Finding": "dpaudit.results.model",
    "FiniteMechanism": "dpaudit.exact.finite_mechanism",
    "FloatingPointFinding": "dpaudit.results.model",
    "GaussianDP": "dpaudit.privacy.claims",
    "GreyBoxResult": "dpaudit.audits.grey_box",
    "InteractiveMechanism": "dpaudit.subjects.protocol",
    "Isolation": "dpaudit.subjects.isolation.limits",
    "Judgement": "dpaudit.judgements",
    "Law": "dpaudit.laws",
    "Mechanism": "dpaudit.subjects.protocol",
    "MetricDP": "dpaudit.privacy.claims",
    "NeighbourClaim": "dpaudit.privacy.neighbours",
    "Pair": "dpaudit.privacy.pairs",
    "Plan": "dpaudit.results.plan_result",
    "Profile": "dpaudit.profiles",
    "ProfileClaim": "dpaudit.privacy.claims",
    "OutputError": "dpaudit.errors",
    "ProgramError": "dpaudit.errors",
    "PureDP": "dpaudit.privacy.claims",
    "RecordedResult": "dpaudit.symbolic.recorded_noise",
    "RenyiDP": "dpaudit.privacy.claims",
    "ScoresResult": "dpaudit.scores.result",
    "Search": "dpaudit.audits.searching",
    "SearchResult": "dpaudit.audits.search_result",
    "SideFinding": "dpaudit.results.model",
    "SessionEnded": "dpaudit.subjects.protocol",
    "Subject": "dpaudit.subjects.callables",
    "SubjectError": "dpaudit.errors",
    "TooSlowError": "dpaudit.audits.time_limits",
    "UsageError": "dpaudit.errors",
    "UtilityBound": "dpaudit.subjects.utility_bounds",
    "UtilityResult": "dpaudit.audits.utility",
    "ZeroConcentratedDP": "dpaudit.privacy.claims",
    "all_pairs": "dpaudit.privacy.pairs",
    "as_sessions": "dpaudit.subjects.sessions",
    "as_subject": "dpaudit.subjects.callables",
    "audit": "dpaudit.audits.auditing",
    "audit_scores": "dpaudit.scores.auditing",
    "audit_utility": "dpaudit.audits.utility",
    "audit_within": "dpaudit.audits.time_limits",
    "certify": "dpaudit.symbolic.certifying",
    "check": "dpaudit.conformance.running",
    "conformance_checks": "dpaudit.conformance.bindings",
    "exec_subject": "dpaudit.subjects.programs",
    "judge": "dpaudit.judgements",
    "load": "dpaudit.results.model",
    "load_certificate": "dpaudit.symbolic.certificate",
    "load_judgement": "dpaudit.judgements",
    "load_scores": "dpaudit.scores.result",
    "museum": "dpaudit.exhibits",
    "parse_claim": "dpaudit.privacy.parsing",
    "parametrize_with_checks": "dpaudit.conformance.bindings",
    "plan": "dpaudit.audits.planning",
    "record_noise": "dpaudit.symbolic.recorded_noise",
    "register_profile": "dpaudit.profiles",
    "read_dossier": "dpaudit.reports.reading",
    "replay": "dpaudit.audits.replaying",
    "replay_floating_point": "dpaudit.audits.replaying",
    "replay_same_randomness": "dpaudit.audits.grey_box",
    "same_distribution": "dpaudit.audits.comparing",
    "samplers": "dpaudit.subjects.samplers",
    "search_pairs": "dpaudit.audits.searching",
    "with_by_outputs": "dpaudit.subjects.by_outputs",
    "write_report": "dpaudit.reports",
}
# Whole rooms of names, as `dpaudit.laws.mixture`.
_MODULES = ("domains", "laws", "libraries", "strategies")

__all__ = [
    "FDP",
    "LAWS",
    "AllPairs",
    "ApproxDP",
    "AuditResult",
    "Certificate",
    "CheckResult",
    "Claim",
    "Dossier",
    "DpauditCheckpointWarning",
    "DpauditError",
    "DpauditFloatingPointWarning",
    "DpauditInconclusiveWarning",
    "DpauditNoteWarning",
    "Exhibit",
    "Finding",
    "FiniteMechanism",
    "FloatingPointFinding",
    "GaussianDP",
    "GreyBoxResult",
    "InteractiveMechanism",
    "Isolation",
    "Judgement",
    "Law",
    "Mechanism",
    "MetricDP",
    "NeighbourClaim",
    "OutputError",
    "Pair",
    "Plan",
    "Profile",
    "ProfileClaim",
    "ProgramError",
    "PureDP",
    "RecordedResult",
    "RenyiDP",
    "ScoresResult",
    "Search",
    "SearchResult",
    "SessionEnded",
    "SideFinding",
    "Subject",
    "SubjectError",
    "TooSlowError",
    "UsageError",
    "UtilityBound",
    "UtilityResult",
    "ZeroConcentratedDP",
    "__version__",
    "all_pairs",
    "as_sessions",
    "as_subject",
    "audit",
    "audit_scores",
    "audit_utility",
    "audit_within",
    "certify",
    "check",
    "conformance_checks",
    "domains",
    "exec_subject",
    "judge",
    "laws",
    "libraries",
    "load",
    "load_certificate",
    "load_judgement",
    "load_scores",
    "museum",
    "parametrize_with_checks",
    "parse_claim",
    "plan",
    "read_dossier",
    "record_noise",
    "register_profile",
    "replay",
    "replay_floating_point",
    "replay_same_randomness",
    "same_distribution",
    "samplers",
    "search_pairs",
    "strategies",
    "with_by_outputs",
    "write_report",
]


_attach("notebook", lambda: importlib.import_module("dpaudit.reports.notebook"))
_attach("progress", lambda: importlib.import_module("dpaudit.reports.progress"))


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
