"""Low-bit stage: a test of the claim on the doubles that a mechanism really returns, apart from the verdict.

The claim of an audit is read on the real line. A mechanism that keeps it there can break it on doubles: noise is added
and rounded in floating point, so that some doubles can come from one input only (Mironov 2012: naive Laplace sampling
by inversion; the same holds for ziggurat Gaussians, for rounded noise that is added, and for single precision).
This stage asks the pair's own claim, at its budget (epsilon, delta), of the laws of the doubles. No verdict or bound of
the audit depends on it, and its draws are not the audit's.

**The test.** At most `STAGE_PAIRS` pairs are examined (those with the smallest budgets, in the order of the audit).
Views of low-order bits (`dpaudit.features.low_bits`) get a tree each on a part of the training draws; the view and the
guessing rule with the best expected bound by the rest of them are frozen. Then n labelled draws are counted once by an
exact test (`dpaudit.inference.exact`), n fixed beforehand: labels are fair coins (the number of ones is
binomial(n, 1/2), from a stream of the pair's own), and draws are fresh. Both directions share the one test.

**Its error rate.** `STAGE_RATE` is split evenly over the examined pairs. At a pair's level l, the lower bound on
epsilon exceeds the truth of the doubles' law with probability at most l, given all that was drawn before. "leaks" is
the bound above the budget. Summed over pairs (union bound, whatever inputs they share): if the doubles keep the claim,
P(any "leaks") <= error rate; in any case P(some bound of the check exceeds its truth) <= error rate. It is spent beside
the audit's own 1 - confidence, never out of it.

**What it can see.** Excess at low bits and in the support of numbers. What is no number (an exception, a missing entry,
NaN) is no evidence: rules abstain on it, and an entry that is a number more often on one input is not looked at, by a
choice on probes that are neither trained nor counted on. Views are blind to sizes, except through atoms and binades, so
a claim that is broken on the real line may show up here too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.audits.findings import FIT_SHARE, STAGE_PAIRS, STAGE_RATE
from dpaudit.audits.power import FOUND_WITH
from dpaudit.campaign.draws import Draws
from dpaudit.campaign.witness_game import Asked, WitnessGame
from dpaudit.errors import OutOfTimeError, SubjectError
from dpaudit.features.outcomes import Outcomes
from dpaudit.inference import binomial
from dpaudit.inference.exact import ExactTest
from dpaudit.inference.guess_rules import SIZES as RULE_SIZES
from dpaudit.inference.low_bit_rules import LowBitRule, choose_columns, learn_rule
from dpaudit.inference.tables import N_BINS
from dpaudit.inference.tasks import Drawer
from dpaudit.privacy.claims import ApproxDP, Budget
from dpaudit.privacy.pairs import Pair
from dpaudit.results.model import FloatingPointFinding, FloatingPointPair


@dataclasses.dataclass(frozen=True)
class LowBitStageSizes:
    """The size of the stage, and how its rules are found."""

    min_samples: int = 1_000  # of the audit, below which the stage would cost as much as the audit and find little
    share_of_audit: tuple[float, float] = (0.25, 0.5)  # of its runs on one input, of calls one by one; of batches
    max_draws: tuple[int, int] = (5_000, 20_000)  # of one input, of calls one by one; of batches
    slow_call: float = 1e-3  # seconds, above which calls are not made behind a violation unless they are asked for
    probe: int = 128  # draws of one input that show whether and where its outputs are real numbers
    max_numbers: int = 1 << 23  # numbers drawn of one input, and held of all, where outputs are wide


SIZES = LowBitStageSizes()


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A pair that may be examined: its inputs, their positions, the claim as one line, its place in the audit."""

    pair: Pair
    inputs: tuple[int, int]
    budget: Budget
    place: int


def draws_of(samples: int, is_vectorised: bool, taken: int | None = None) -> int:
    """Number of draws of each input that the stage takes, about, in an audit of `samples`; 0: it does not run.

    `taken` says how many runs the audit took of each input: `samples` by default.

    Examples
    --------
    >>> draws_of(20_000, True), draws_of(20_000, False), draws_of(20_000, True, taken=100), draws_of(500, True)
    (10000, 5000, 1000, 0)
    """
    if samples < SIZES.min_samples:
        return 0
    share = int(SIZES.share_of_audit[is_vectorised] * (samples if taken is None else taken))
    return min(max(share, SIZES.min_samples), SIZES.max_draws[is_vectorised])


def not_applicable(reason: str, samples: int = 0, omitted: int = 0) -> FloatingPointFinding:
    """A finding that tested nothing, with the reason."""
    return FloatingPointFinding("not_applicable", reason, STAGE_RATE, samples, (), omitted)


def examine(
    candidates: Sequence[Candidate],
    draws: int,
    draw: Drawer,
    coin: Callable[[int], np.random.Generator],
    error_rate: float = STAGE_RATE,
) -> FloatingPointFinding:
    """Run the stage on the pairs of the audit with finite budgets, with about and at most `draws` draws of each input.

    `coin` takes the place of a pair to the generator of its labels; `error_rate` is of the whole stage.
    """
    chosen = sorted(candidates, key=lambda pair: (pair.budget.epsilon, pair.budget.delta, pair.place))[:STAGE_PAIRS]
    omitted = len(candidates) - len(chosen)
    if not chosen:
        return not_applicable("There is no pair to examine.")
    game = LowBitGame(chosen, draws, draw, coin, error_rate)
    try:
        game.start()
        game.round()
    except OutOfTimeError:
        raise
    except SubjectError as error:
        return not_applicable(f"The subject broke during the check: {error}", game.runs, len(candidates))
    pairs = game.found
    if not pairs:
        reason = (
            "No pair has a real-valued entry in its outputs: a number, as often on one input as on the other, that is "
            "not always the same or an integer. Those in texts, bytes, decimals and fractions are not looked at."
        )
        return not_applicable(reason, game.runs, len(candidates))
    ranked = tuple(sorted(pairs, key=lambda pair: (pair.verdict != "leaks", pair.p_value, -pair.epsilon_lower)))
    return FloatingPointFinding(
        ranked[0].verdict, "", error_rate, game.runs, ranked, omitted + len(chosen) - len(pairs)
    )


class LowBitTest(ExactTest):
    """The exact test of one frozen rule on one pair, which abstains on what is no number."""

    def __init__(self, candidate: Candidate, draws: int, rule: LowBitRule) -> None:
        super().__init__(ApproxDP(candidate.budget.epsilon, candidate.budget.delta), draws)
        self.candidate, self.low_bits, self.rule = candidate, rule, rule.guesses
        self._counts = np.zeros((2, N_BINS + 1), dtype=np.int64)  # of x, of x_prime

    @property
    def statistic(self) -> LowBitRule:
        return self.low_bits

    def add(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> None:
        self._counts += np.stack([counts_x, counts_x_prime])

    @property
    def counts(self) -> tuple[int, int, int]:
        right, wrong, idle = self.rule.record(self._counts[::-1, :N_BINS])
        return right, wrong, idle + int(self._counts[:, N_BINS].sum())

    def found(self) -> FloatingPointPair:
        """The finding, after the look."""
        return _finding(
            self.candidate, self.level, self.counts,
            verdict="leaks" if self.is_rejected else "nothing_found",
            epsilon_lower=self.lower,
            p_value=self.p_value,
            description=self.describe(*self.candidate.pair.said),
            rule=self.low_bits.to_dict() if self.is_rejected else None,
        )  # fmt: skip

    def describe(self, x: str, x_prime: str) -> str:
        """The guessing events in words, with how often fresh draws of each input fell into them."""
        names = [letter if name == letter else f"{letter} = {name}" for letter, name in (("x", x), ("x′", x_prime))]
        chosen = slice(self.rule.first_up, N_BINS), slice(0, self.rule.end_down)
        said = []
        for k, (event, bins) in enumerate(zip(self.low_bits.events(), chosen, strict=True)):
            shares = [
                f"{self._counts[side, bins].sum():,} of {self._counts[side].sum():,} on {names[side]}"
                for side in (k, 1 - k)
            ]
            said += [f"Outputs {event}: {', '.join(shares)}."] if event else []
        return " ".join(said)


def _finding(candidate: Candidate, level: float, counts: tuple[int, int, int], **more: Any) -> FloatingPointPair:
    """The finding of a pair; of one without a rule where no more is given: it guesses nothing, whatever is drawn."""
    pair, budget = candidate.pair, candidate.budget
    nothing: dict[str, Any] = {"verdict": "nothing_found", "epsilon_lower": 0.0, "p_value": 1.0, "description": ""}
    return FloatingPointPair(
        pair.id, pair.x_id, pair.x_prime_id, budget, error_share=level,
        correct=counts[0], wrong=counts[1], abstained=counts[2],
        detectable_share=detectable_share(sum(counts), budget.epsilon, budget.delta, level),
        **(nothing | more),
    )  # fmt: skip


class LowBitGame(WitnessGame):
    """The stage on its pairs, in one round: rules are fitted first, and their tests are asked then.

    Parameters are those of `examine`, of the pairs that are chosen; `found` is of those with real numbers.
    """

    def __init__(
        self,
        chosen: Sequence[Candidate],
        draws: int,
        draw: Drawer,
        coin: Callable[[int], np.random.Generator],
        error_rate: float,
    ) -> None:
        super().__init__(Draws(draw), [])
        self.without_rule: list[FloatingPointPair] = []
        self._chosen, self._size, self._coin, self._rate = chosen, draws, coin, error_rate

    @property
    def found(self) -> list[FloatingPointPair]:
        """The findings, after the look: first of pairs without a rule."""
        return [*self.without_rule, *(asked.test.found() for asked in self.asked)]

    def start(self) -> None:
        """Probe the inputs, leave out pairs without real numbers, fix levels and sizes, and fit a rule for each."""
        probed = min(SIZES.probe, self._size // 4)
        inputs = sorted({i for one in self._chosen for i in one.inputs})
        probes = self.draws.hand_over(dict.fromkeys(inputs, probed))
        columns = [(one, choose_columns(*(probes[i] for i in one.inputs))) for one in self._chosen]
        asked = [(one, of_pair) for one, of_pair in columns if of_pair.places]
        if not asked:
            return
        # Validity: the pairs, their levels and sizes are fixed by probes, before all other draws.
        self.draws.measure(list(probes.values()))
        inputs = sorted({i for one, _ in asked for i in one.inputs})
        held = self.draws.columns * max(1.0, FIT_SHARE * len(inputs))
        draws = max(min(self._size, SIZES.min_samples), min(self._size, int(SIZES.max_numbers / held)))
        training, level = int(FIT_SHARE * draws), self._rate / len(asked)
        labelled = 2 * (draws - training - probed)
        trained = self.draws.hand_over(dict.fromkeys(inputs, training))
        for one, of_pair in asked:
            batches = of_pair(trained[one.inputs[0]]), of_pair(trained[one.inputs[1]])
            rule = learn_rule(of_pair, batches, one.pair, one.budget, level, labelled)
            if rule is None:
                self.without_rule.append(_finding(one, level, (0, 0, labelled)))
                continue
            # Validity: coins are of a stream that nothing else reads, so labels do not depend on outputs.
            coin = self._coin(one.place)
            self.asked.append(Asked(LowBitTest(one, labelled, rule), level, labelled, coin, one.inputs))
        super().start()


def detectable_share(labelled: int, epsilon: float, delta: float, level: float) -> float:
    """The smallest share of one input's outputs that, given by it alone, would have been found; see the result."""
    shares = np.geomspace(0.5 / labelled, 1.0, 200)
    # The number of right guesses, exceeded with probability `FOUND_WITH`: a normal quantile, less one for its error.
    mean = labelled * shares / 2.0
    quantile = np.floor(mean + scipy.special.ndtri(1.0 - FOUND_WITH) * np.sqrt(mean * (1.0 - shares / 2.0))) - 1.0
    right = np.maximum(quantile, 0.0)
    spent = level * RULE_SIZES.mass_share if delta > 0.0 else 0.0
    accuracy = binomial.binomial_lower_each(right, right, np.full(len(right), level - spent))
    mass = binomial.binomial_lower_each(right, np.full(len(right), float(labelled)), np.full(len(right), spent))
    allowed = binomial.largest_accuracy(np.array([epsilon]), np.array([delta / 2.0]), mass)
    found = np.flatnonzero(accuracy > allowed)
    return float(shares[found[0]]) if len(found) else math.inf


def in_turn(draw: Callable[[int, int, int, int], Outcomes]) -> Drawer:
    """Carries out tasks in turn: `draw` takes (round, input, chunk, size), and gives so many fresh outputs."""

    return lambda tasks: [task.result_on(draw(task.round, task.input, task.chunk, task.size)) for task in tasks]
