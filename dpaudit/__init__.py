"""dpaudit: the test suite for differential privacy.

>>> import dpaudit
>>> result = dpaudit.audit(
...     lambda data, size, rng: data + rng.laplace(size=size),
...     claim=dpaudit.PureDP(1.0), pairs=[(0.0, 1.0)], samples=10_000, seed=7,
... )
>>> result.verdict
'not_refuted'

Names are imported where they are first used, so that `import dpaudit` (and the pytest plugin) costs nothing: the list
of them stands once, as imports that only type checkers make, and `__getattr__` reads it from this file's own source.
(Rooms have other names than functions, so that `dpaudit.audit` and `dpaudit.museum` are always the functions.)
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import TYPE_CHECKING, Any

from dpaudit.environment import __version__ as __version__
from dpaudit.results.shown import attach as _attach

if TYPE_CHECKING:
    from dpaudit import domains as domains
    from dpaudit import laws as laws
    from dpaudit import libraries as libraries
    from dpaudit import strategies as strategies
    from dpaudit.audits.auditing import audit as audit
    from dpaudit.audits.auditing import same_distribution as same_distribution
    from dpaudit.audits.grey_box import GreyBoxResult as GreyBoxResult
    from dpaudit.audits.grey_box import replay_same_randomness as replay_same_randomness
    from dpaudit.audits.planning import plan as plan
    from dpaudit.audits.replaying import replay as replay
    from dpaudit.audits.replaying import replay_floating_point as replay_floating_point
    from dpaudit.audits.search_result import SearchResult as SearchResult
    from dpaudit.audits.searching import Search as Search
    from dpaudit.audits.searching import search_pairs as search_pairs
    from dpaudit.audits.time_limits import TooSlowError as TooSlowError
    from dpaudit.audits.time_limits import audit_within as audit_within
    from dpaudit.audits.utility import UtilityResult as UtilityResult
    from dpaudit.audits.utility import audit_utility as audit_utility
    from dpaudit.conformance.bindings import conformance_checks as conformance_checks
    from dpaudit.conformance.bindings import parametrize_with_checks as parametrize_with_checks
    from dpaudit.conformance.result import CheckResult as CheckResult
    from dpaudit.conformance.running import check as check
    from dpaudit.errors import DpauditCheckpointWarning as DpauditCheckpointWarning
    from dpaudit.errors import DpauditError as DpauditError
    from dpaudit.errors import DpauditFloatingPointWarning as DpauditFloatingPointWarning
    from dpaudit.errors import DpauditInconclusiveWarning as DpauditInconclusiveWarning
    from dpaudit.errors import DpauditNoteWarning as DpauditNoteWarning
    from dpaudit.errors import OutputError as OutputError
    from dpaudit.errors import ProgramError as ProgramError
    from dpaudit.errors import SubjectError as SubjectError
    from dpaudit.errors import UsageError as UsageError
    from dpaudit.exact.finite_mechanism import FiniteMechanism as FiniteMechanism
    from dpaudit.exhibits import Exhibit as Exhibit
    from dpaudit.exhibits import museum as museum
    from dpaudit.judgements import Judgement as Judgement
    from dpaudit.judgements import judge as judge
    from dpaudit.judgements import load_judgement as load_judgement
    from dpaudit.laws import LAWS as LAWS
    from dpaudit.laws import Law as Law
    from dpaudit.privacy.claims import ApproxDP as ApproxDP
    from dpaudit.privacy.claims import Claim as Claim
    from dpaudit.privacy.claims import GaussianDP as GaussianDP
    from dpaudit.privacy.claims import MetricDP as MetricDP
    from dpaudit.privacy.claims import ProfileClaim as ProfileClaim
    from dpaudit.privacy.claims import PureDP as PureDP
    from dpaudit.privacy.claims import RenyiDP as RenyiDP
    from dpaudit.privacy.claims import ZeroConcentratedDP as ZeroConcentratedDP
    from dpaudit.privacy.neighbours import NeighbourClaim as NeighbourClaim
    from dpaudit.privacy.pairs import AllPairs as AllPairs
    from dpaudit.privacy.pairs import Pair as Pair
    from dpaudit.privacy.pairs import all_pairs as all_pairs
    from dpaudit.privacy.parsing import parse_claim as parse_claim
    from dpaudit.privacy.trade_off import FDP as FDP
    from dpaudit.profiles import Profile as Profile
    from dpaudit.profiles import register_profile as register_profile
    from dpaudit.reports import write_report as write_report
    from dpaudit.reports.dossier import Dossier as Dossier
    from dpaudit.reports.reading import read_dossier as read_dossier
    from dpaudit.results.model import AuditResult as AuditResult
    from dpaudit.results.model import Finding as Finding
    from dpaudit.results.model import FloatingPointFinding as FloatingPointFinding
    from dpaudit.results.model import SideFinding as SideFinding
    from dpaudit.results.model import load as load
    from dpaudit.results.plan_result import Plan as Plan
    from dpaudit.scores.auditing import audit_scores as audit_scores
    from dpaudit.scores.result import ScoresResult as ScoresResult
    from dpaudit.scores.result import load_scores as load_scores
    from dpaudit.subjects.by_outputs import with_by_outputs as with_by_outputs
    from dpaudit.subjects.callables import Subject as Subject
    from dpaudit.subjects.callables import as_subject as as_subject
    from dpaudit.subjects.isolation.limits import Isolation as Isolation
    from dpaudit.subjects.programs import exec_subject as exec_subject
    from dpaudit.subjects.protocol import InteractiveMechanism as InteractiveMechanism
    from dpaudit.subjects.protocol import Mechanism as Mechanism
    from dpaudit.subjects.protocol import SessionEnded as SessionEnded
    from dpaudit.subjects.samplers import samplers as samplers
    from dpaudit.subjects.sessions import as_sessions as as_sessions
    from dpaudit.subjects.utility_bounds import UtilityBound as UtilityBound
    from dpaudit.symbolic.certificate import Certificate as Certificate
    from dpaudit.symbolic.certificate import load_certificate as load_certificate
    from dpaudit.symbolic.certifying import certify as certify
    from dpaudit.symbolic.recorded_noise import RecordedResult as RecordedResult
    from dpaudit.symbolic.recorded_noise import record_noise as record_noise

_attach("notebook", lambda: importlib.import_module("dpaudit.reports.notebook"))
_attach("progress", lambda: importlib.import_module("dpaudit.reports.progress"))


@functools.cache
def _homes() -> dict[str, str]:
    """The module of each public name, from the imports above."""
    import ast
    import inspect

    tree = ast.parse(inspect.getsource(sys.modules[__name__]))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {one.name: str(node.module) for node in imports for one in node.names if one.asname == one.name}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    home = "" if name.startswith("_") else _homes().get(name, "")
    if not home:
        raise AttributeError(f"module 'dpaudit' has no attribute {name!r}")
    is_module = home == __name__  # a whole room of names, as `dpaudit.laws.mixture`
    value = importlib.import_module(f"dpaudit.{name}") if is_module else getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_homes())
