"""Random programs with continuous noise: what is proved of them against a quadrature that is written apart from it.

Nothing is drawn: a wrong verdict has no error rate. What is within `CLOSE` of the claim is not asked.
"""

from __future__ import annotations

import collections
import math

import pytest
from continuous_programs import Program

import dpaudit
from dpaudit.privacy.claims import ApproxDP, PureDP
from dpaudit.privacy.pairs import as_pairs
from dpaudit.subjects.callables import as_subject
from dpaudit.symbolic.noise_laws import noise_law
from dpaudit.symbolic.recorded_noise import Recorder
from dpaudit.symbolic.tracing import Untraceable

FIRST, FEW, MANY = 20_000, 4, 120  # the seeds; the generator was tried on those from 0 to 99
CLOSE = 0.01  # relative: how far the claims are from the loss
TINY = 1e-3  # a loss: of less a broken claim is not asked
MAX_EPSILON = 16.0  # epsilon of a delta that is compared
OFF = 1e-7  # of a probability or a loss, computed in two ways
SECONDS = 4.0  # of a certificate


def checked(seed: int) -> str:
    """What was decided of a program; fails on whatever is wrong."""
    case, found = Program(seed), []
    subject, pair, loss = as_subject(case.program), as_pairs([(case.x, case.x_prime)])[0], case.loss()
    text = f"seed {seed}, x = {case.x}, x_prime = {case.x_prime}, loss {loss!r}\n{case.source}"
    recorder = Recorder(subject, None, 1)
    bare = recorder.pair(pair)
    if not math.isnan(bare.loss):
        assert bare.loss <= loss * (1.0 + OFF) + OFF, f"{bare}\n{text}"
    if bare.implied is not None:
        assert loss <= bare.implied * (1.0 + OFF) + OFF, f"{bare}\n{text}"
    # Of a loss that is infinite every claim is broken, of one that is a rounding of 0 none.
    claims = [(3.0, False)] if math.isinf(loss) else [(loss * (1.0 + CLOSE) + TINY, True)]
    if TINY < loss < math.inf:
        claims.append((loss * (1.0 - CLOSE), False))
    for epsilon, is_kept in claims:
        recorder.claim = PureDP(epsilon)
        graded = recorder.pair(pair).grade
        assert graded != ("proved" if is_kept else "same"), f"{recorder.claim}: {graded}\n{text}"
        found.append("refuted" if graded == "proved" else "kept" if graded == "same" else "undecided")
    said = f"record {', '.join(found)}"
    if case.is_released or not any(path.tape.events for path in recorder.paths(case.x).known):
        return said
    return f"{said}; certificate {_certified(seed, case, subject, pair, loss, text)}"


def _certified(seed, case, subject, pair, loss, text):
    try:
        law = noise_law(subject, case.x)
    except Untraceable:
        return "undecided"
    truth, masses = case.law(case.x), collections.Counter()
    for leaf, mass in law.law.items():
        masses[leaf.token] += float(mass)
    assert sorted(masses.values()) == pytest.approx(sorted(p for p in truth.values() if p > 0.0), abs=OFF), text
    epsilon = 0.5 * loss if TINY < loss < math.inf else 1.0
    delta = case.delta(epsilon)
    claim, is_kept = PureDP(epsilon), loss < epsilon
    if delta > 1e-6:
        is_kept = bool(seed % 2)
        claim = ApproxDP(epsilon, delta * (1.0 + CLOSE if is_kept else 1.0 - CLOSE))
    found = dpaudit.certify(subject.mechanism, claim, [pair], seconds=SECONDS).pairs[0]
    assert found.verdict != ("violated" if is_kept else "kept"), f"{claim}: {found}\n{text}"
    # Delta falls in epsilon; beyond `MAX_EPSILON` it would be made of the rounding errors of the quadrature.
    if found.epsilon_lower > 0.0:
        lower = min(found.epsilon_lower, MAX_EPSILON) * (1.0 - OFF) - OFF
        assert case.delta(lower) >= found.delta - OFF, f"{found}\n{text}"
    if found.epsilon_upper < MAX_EPSILON:
        assert case.delta(found.epsilon_upper * (1.0 + OFF) + OFF) <= found.delta + OFF, f"{found}\n{text}"
    return found.verdict


@pytest.mark.parametrize("seed", range(FIRST, FIRST + FEW))
def test_a_few_continuous_programs_are_judged_as_by_quadrature(seed):
    checked(seed)


@pytest.mark.slow
def test_continuous_programs_are_judged_as_by_quadrature():
    for seed in range(FIRST, FIRST + MANY):
        checked(seed)
