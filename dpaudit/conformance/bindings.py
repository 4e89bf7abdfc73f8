"""The generator of checks, and pytest's face of it. Importing this imports neither numpy nor pytest."""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpaudit.arguments import did_you_mean, number, whole_number
from dpaudit.conformance.outcomes import CheckFailed, CheckInconclusive
from dpaudit.conformance.registry import CheckSpec, all_checks, check_names
from dpaudit.errors import DpauditInconclusiveWarning, UsageError
from dpaudit.privacy.pairs import numbered

if TYPE_CHECKING:
    from dpaudit.conformance.case import Case

SAMPLES = 10_000  # of the audits among the checks
ERROR_RATE = 1e-3  # of the whole list of one mechanism
MIN_RATE = 1e-12  # below it 1 - rate, the confidence of an audit, is no longer told from 1
Expected = Mapping[str, str] | Callable[[Any], Mapping[str, str]]


class Subjects:
    """One mechanism with the options of its checks; what they share is made when the first of them runs."""

    def __init__(self, mechanism: Any, claim: Any, pairs: Any, options: dict[str, Any]) -> None:
        self.mechanism, self.claim, self.pairs, self.options = mechanism, claim, pairs, options
        self.stated_rate: float = options["error_rate"]
        self.ran: set[str] = set()  # the names of checks that were called
        self.inconclusive: dict[str, str] = {}  # what inconclusive checks said, by their names
        self._case: Case | None = None

    def limit(self, error_rate: float) -> None:
        """Give the list an error rate below the stated one, before its first check: what a session has for it."""
        if error_rate != self.options["error_rate"]:
            self.options = {**self.options, "error_rate": max(error_rate, MIN_RATE)}
            self._case = None

    @property
    def case(self) -> Case:
        """Case that the checks share."""
        if self._case is None:
            from dpaudit.conformance.case import Case

            self._case = Case(self.mechanism, self.claim, self.pairs, **self.options)
        return self._case


@dataclasses.dataclass(frozen=True, repr=False)
class BoundCheck:
    """One check of one mechanism: call it."""

    spec: CheckSpec
    mechanism_name: str  # unique among the mechanisms of one call
    subjects: Subjects = dataclasses.field(repr=False)
    expected_failure: str = ""  # why the mechanism is known to fail it

    def __repr__(self) -> str:
        return f"BoundCheck({self.id})"

    @property
    def name(self) -> str:
        """Of the check."""
        return self.spec.name

    @property
    def id(self) -> str:
        """Of the test: mechanism and check."""
        return f"{self.mechanism_name}-{self.spec.name}"

    def remark(self) -> str | None:
        """Run the check; what it remarks. Whatever is raised but `CheckFailed` and its like says that it broke."""
        __tracebackhide__ = True
        self.subjects.ran.add(self.name)
        return self.spec.function()(self.subjects.case)

    def __call__(self) -> None:
        """Run the check in a test: a failure is an AssertionError, a skip a skip, too little power a warning."""
        __tracebackhide__ = True
        try:
            self.remark()
        except CheckFailed as error:
            raise CheckFailed(f"{self.mechanism_name} fails {self.name}: {error}") from None
        except UsageError as error:
            raise UsageError(f"{self.mechanism_name} cannot be checked: {error}") from None
        except CheckInconclusive as error:
            self.subjects.inconclusive[self.name] = str(error)
            text = f"{self.mechanism_name}: {self.name} is inconclusive: {error}. Take more samples."
            warnings.warn(text, DpauditInconclusiveWarning, stacklevel=2)


def conformance_checks(
    mechanism: Any,
    claim: Any = None,
    pairs: Any = None,
    *,
    samples: int = SAMPLES,
    error_rate: float = ERROR_RATE,
    seed: int = 0,
    expected_failures: Expected | None = None,
    name: str | None = None,
    target: str | None = None,
) -> Iterator[BoundCheck]:
    """The checks of one mechanism, in the order of the registry, each to be called.

    Parameters
    ----------
    mechanism : object, callable or class
        As for `dpaudit.audit`; of a class, its instances: those that a classmethod `examples()` returns, else the one
        without arguments.
    claim : Claim or str, optional
        The mechanism's own by default; what needs a claim is skipped where there is none.
    pairs : iterable, optional
        The mechanism's own by default.
    samples : int
        Of the audits, at least 1,000.
    error_rate : float
        In [1e-12, 1), of the whole list of one mechanism.
    seed : int
        Non-negative. The same seed gives the same draws.
    expected_failures : dict or callable, optional
        Names of checks that are known to fail, with the reason; or a function of the mechanism that returns them.
    name, target : str, optional
        How the mechanism is named.

    Raises
    ------
    UsageError
        If an argument makes no sense.

    Examples
    --------
    >>> def release(data, size, rng):
    ...     return data + rng.laplace(size=size)
    >>> [check.id for check in conformance_checks(release)][:2]
    ['release-seeded_determinism', 'release-global_generators_unchanged']
    """
    yield from _bound([mechanism], claim, pairs, expected_failures, name, target, samples, error_rate, seed)


def parametrize_with_checks(
    mechanisms: Sequence[Any],
    *,
    claim: Any = None,
    pairs: Any = None,
    samples: int = SAMPLES,
    error_rate: float = ERROR_RATE,
    seed: int = 0,
    expected_failures: Expected | None = None,
) -> Any:
    """A pytest decorator: one test for each check of each mechanism, with the argument `check`, to be called.

    For example::

        @dpaudit.parametrize_with_checks([MyMechanism(epsilon=1.0)])
        def test_conformance(check):
            check()

    A check that does not apply is skipped with the reason. A known failure is a strict xfail: the test fails as soon as
    the mechanism passes. An inconclusive check warns. Test ids are `MECHANISM-CHECK`; of several mechanisms of one name
    the second is `MECHANISM#2`. Parameters as in `conformance_checks`, for all mechanisms.
    """
    import pytest

    if isinstance(mechanisms, str | bytes) or not isinstance(mechanisms, Iterable):
        raise UsageError(f"mechanisms must be a list, got {type(mechanisms).__name__}. Put it into a list.")
    params = []
    listed = list(mechanisms)
    if not listed:
        raise UsageError("mechanisms must name at least one mechanism, got none.")
    for check in _bound(listed, claim, pairs, expected_failures, None, None, samples, error_rate, seed):
        # Only a failure of the check itself is expected: a check that breaks is an error all the same.
        xfail = pytest.mark.xfail(reason=check.expected_failure, raises=CheckFailed, strict=True)
        params.append(pytest.param(check, id=check.id, marks=[xfail] if check.expected_failure else []))
    return pytest.mark.parametrize("check", params)


def instances(mechanism: Any) -> list[Any]:
    """The mechanism itself; of a class its `examples()`, else one that is made without arguments."""
    if not isinstance(mechanism, type):
        return [mechanism]
    name = mechanism.__name__
    own = getattr(mechanism, "examples", None)
    if callable(own):
        try:
            found = list(own())
        except Exception as error:
            raise UsageError(f"examples of the class {name} must return instances, got {error!r}.") from error
        if not found:
            raise UsageError(f"examples of the class {name} must return at least one instance, got none.")
        return found
    try:
        return [mechanism()]
    except Exception as error:
        raise UsageError(
            f"mechanism must be an instance, or a class that can be made without arguments, got the class {name} "
            f"({error}). Give it a classmethod examples() that returns instances, or name an instance."
        ) from error


def named(mechanisms: Iterable[Any], name: str | None) -> list[tuple[Any, str]]:
    """Every instance with a name: of its class or function, numbered from the second on; never an address."""
    found = [instance for mechanism in mechanisms for instance in instances(mechanism)]
    return list(zip(found, numbered([name or _name(one) for one in found]), strict=True))


def _name(mechanism: Any) -> str:
    stated = getattr(mechanism, "name", None)
    if isinstance(stated, str) and stated:
        return stated
    inner = getattr(mechanism, "func", mechanism)
    named_itself = inspect.isroutine(inner) and isinstance(getattr(inner, "__name__", None), str)
    return str(inner.__name__ if named_itself else type(mechanism).__name__)


def expected(given: Expected | None, mechanism: Any) -> dict[str, str]:
    """The checked names and reasons of known failures."""
    found = given(mechanism) if callable(given) else given
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise UsageError(f"expected_failures must be a dict of check names and reasons, got {found!r}.")
    for name, reason in found.items():
        if name not in check_names():
            raise UsageError(f"expected_failures must name checks, got {name!r}. {close(name)}")
        if not isinstance(reason, str) or not reason.strip():
            raise UsageError(f"expected_failures must have a reason for each check, got {reason!r} for {name!r}.")
    return dict(found)


def close(name: str) -> str:
    """Suggest names of checks for a misspelt one."""
    return did_you_mean(name, check_names()).strip() or "dpaudit check --list prints them."


def _bound(mechanisms: Iterable[Any], claim: Any, pairs: Any, failures: Expected | None, name: str | None,
           target: str | None, samples: int, error_rate: float, seed: int) -> Iterator[BoundCheck]:  # fmt: skip
    """The checks of each instance of each mechanism."""
    whole_number("samples", samples, "an integer of at least 1000", 1_000)
    number("error_rate", error_rate, f"in [{MIN_RATE:g}, 1)", lambda rate: MIN_RATE <= rate < 1.0)
    whole_number("seed", seed, "a non-negative integer", 0)
    options = {"samples": samples, "error_rate": error_rate, "seed": seed, "target": target}
    for one, own_name in named(mechanisms, name):
        reasons, subjects = expected(failures, one), Subjects(one, claim, pairs, options)
        for spec in all_checks():
            yield BoundCheck(spec, own_name, subjects, reasons.get(spec.name, ""))
