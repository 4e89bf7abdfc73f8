"""The false-alarm budget of a session: who gets which share of it, fixed before anything is drawn.

A session at confidence c promises: if every mechanism keeps its claim, the probability that *any* audit, replay or list
of checks in it raises an alarm is at most A = 1 - c. Nobody knows beforehand how many audits a suite will run: `-k`
deselects tests, `-x` stops early, xdist hands tests to workers that do not see each other, a test may call `dp_audit`
in a loop. What every process does know, before the first draw and identically, is the list of collected tests. So:

* *Lists of conformance checks* take what they state (0.001 each), scaled down together where that is over A / 2: L. One
  whose checks are collected n times, as under another parameter or pytest-repeat, takes it n times.
* *Tests with a confidence of their own* (`@pytest.mark.dp_audit(confidence=0.999)`) take 1 - confidence each: M.
  M may be half of A - L where other tests have audits, else all of it; tests that take more fail, and have nothing.
* *All other tests that can audit* (they have the fixture `dp_audit`, or the mark) share A - L - M evenly: S each.
* *Calls within a test*: the first takes 3/4 of S, the k-th one (k >= 2) takes 1/k of what the calls before it left,
  which is S / (4 k (k - 1)). These sum to S over any number of calls. `@pytest.mark.dp_audit(calls=n)` says that there
  are n, which get S / n each, and no more. A call with a `confidence` of its own takes what that costs from what is
  left of S, and is refused where that is not enough.
* *Within a call's share*: 80% for the audit, 10% for the replay of a witness that an earlier run has saved (whether or
  not there is one), and 10% for the low bits where they can fail a test (`--dp-strict`; else they only warn, at the
  rate of their own that `AuditResult.floating_point` states).

Validity: let p_j be the share of the j-th alarm that may be raised, in the order of the session. It is fixed by the
collected tests and by the calls before it, never by what was drawn for it, and the audit, replay or list is such that
P(alarm j | everything before) <= p_j, because its streams are nobody else's. So P(any alarm) <= E[sum of p_j], and the
sum is at most L + M + (number of the others) S = A however far the session gets, in whatever order and wherever tests
run. A test that is not run, or a replay that has nothing to replay, leaves its share unspent. It needs no independence
between tests: with one seed for all (`--dp-seed`) the bound is P(alarm j) <= p_j, as long as neither shares nor what is
audited depends on results.

A rerun of a test (pytest-rerunfailures, flaky) that makes the same call again has the same seed and so the same bits:
no second look, nothing to pay. Anything else that a rerun does (another mechanism, claim or option, or one with
randomness of its own) is a further call of the test, with a seed of its own unless one is stated, and pays as one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from dpaudit.errors import UsageError
from dpaudit.reports.words import some

LISTS_AT_MOST = 0.5  # of the session's error rate, for lists of conformance checks
RESERVED_AT_MOST = 0.5  # of the rest, for tests with a confidence of their own, where there are other tests
FIRST_CALL = 0.75  # of a test's share
AUDIT, REPLAY, LOW_BITS = 0.8, 0.1, 0.1  # of a call's share
NAMED = 5  # tests in a message, of those that take too much together
MIN_SHARE = 1e-12  # below it 1 - share, the confidence of an audit, is no longer told from 1


@dataclasses.dataclass(frozen=True)
class SessionBudget:
    """Split of the error rate of one session."""

    error_rate: float  # 1 - confidence of the session
    lists: int  # of conformance checks that were collected
    stated_list_error: float  # the sum of what they state
    list_factor: float  # in (0, 1]: what each keeps of it
    reserved: float  # the sum of what tests reserve for themselves
    reserving: int  # their number
    tests: int  # the other tests that can audit
    test_error: float  # the share of each of them
    refused: Mapping[str, str]  # by node id: why a test with a confidence of its own has none

    @property
    def total(self) -> float:
        """Error rate that may be spent at most; never above `error_rate`, but for rounding."""
        lists = self.stated_list_error * self.list_factor
        return lists + self.reserved + self.tests * self.test_error


def split(
    error_rate: float,
    lists: Sequence[float],
    reserved: Sequence[tuple[str, float]],
    tests: int,
    test_error: float | None = None,
) -> SessionBudget:
    """The split of a session's error rate, a number in (0, 1).

    `lists` are what lists of conformance checks state, `reserved` has node ids of tests with a confidence of their own,
    each with what it takes, and `tests` is the number of the others. Each of these has an even share, or `test_error`;
    `UsageError` if that is more.

    Tests that take too much are refused: each that does alone, or all others together. Validity: it depends on the
    collected tests alone, and a refused test draws nothing, so that the others share what there is without it.

    Examples
    --------
    >>> split(0.05, [0.001, 0.001], [], 12).test_error
    0.004
    """
    stated = math.fsum(lists)
    factor = min(1.0, LISTS_AT_MOST * error_rate / stated) if stated > 0.0 else 1.0  # what lists keep
    rest = error_rate - stated * factor
    limit = rest * (RESERVED_AT_MOST if tests else 1.0) * (1 + 1e-9)  # what a user's decimals may be off
    opening = f"must take at most {limit:.3g} of the session's error rate {error_rate:.3g}"
    advice = "Raise it there, or lower --dp-confidence."
    refused = {
        node_id: f"confidence of the mark dp_audit {opening}, got {error:.3g} in {node_id}. {advice}"
        for node_id, error in reserved
        if error > limit
    }
    kept = [(node_id, error) for node_id, error in reserved if node_id not in refused]
    taken = math.fsum(error for _, error in kept)
    if taken > limit:
        names = some([node_id for node_id, _ in kept], NAMED)
        text = f"confidence of marks dp_audit {opening} together, got {taken:.3g} in {len(kept)} tests"
        refused |= {node_id: f"{text} ({names}). {advice}" for node_id, _ in kept}
        kept, taken = [], 0.0
    even = max(0.0, rest - taken) / tests if tests else 0.0
    if test_error is not None and tests:
        if test_error > even * (1 + 1e-9):
            raise UsageError(f"dp_test_error must be at most {even:.3g} for {tests} tests, got {test_error!r}.")
        even = min(even, test_error)
    return SessionBudget(error_rate, len(lists), stated, factor, taken, len(kept), tests, even, refused)


class TestBudget:
    """Error rate of one test, call by call: its share of the session's, over all its calls."""

    __test__ = False  # not a class of tests

    def __init__(self, error: float, calls: int | None = None) -> None:
        self.error, self.stated_calls = error, calls
        self.left = error
        self.calls = 0
        self._defaults = 0

    def next(self) -> float:
        """The share of the next call that states no confidence."""
        self._count()
        self._defaults += 1
        if self.stated_calls is not None:
            share = self.left / (self.stated_calls - self.calls + 1)
        else:
            share = self.left * (FIRST_CALL if self._defaults == 1 else 1.0 / self._defaults)
        if share < MIN_SHARE:
            raise UsageError(
                f"dp_audit must have a share of the session's error rate of at least {MIN_SHARE:g}, got {share:.3g} "
                f"in call {self.calls} of the test. Audit less in one test, or lower --dp-confidence."
            )
        self.left -= share
        return share

    def take(self, confidence: float) -> float:
        """The share of the next call, which states the confidence of its audit; its replay and low bits cost extra."""
        self._count()
        share = (1.0 - confidence) / AUDIT
        if share > self.left * (1 + 1e-9):
            least = 1.0 - self.left * AUDIT
            raise UsageError(
                f"confidence must be at least {least:.9g}, since the test has {self.left:.3g} left of the session's "
                f"error rate, got {confidence!r}. Leave it out, or state one for the test: "
                "@pytest.mark.dp_audit(confidence=...)."
            )
        self.left = max(0.0, self.left - share)
        return share

    def _count(self) -> None:
        if self.stated_calls is not None and self.calls >= self.stated_calls:
            raise UsageError(f"calls must be how often the test calls dp_audit, got {self.stated_calls}, and one more.")
        self.calls += 1


def confidence_of(error: float) -> float:
    """A confidence whose error rate is at most `error`: rounded upwards, since 1 - (1 - error) may be above it."""
    confidence = 1.0 - error
    return confidence if 1.0 - confidence <= error else math.nextafter(confidence, 1.0)
