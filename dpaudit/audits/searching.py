"""Pairs that nobody gave: a search for the pair of inputs on which a claim is worst.

`search_pairs` tries pairs of a domain (`dpaudit.subjects.domains`), of a hypothesis strategy, or near example data, and
ranks them by suspicion. `Search` is the same as the `pairs` of `dpaudit.audit`, which confirms the most suspicious.

How it searches. Where the noise can be recorded, the pairs that are the farthest apart without it come first
(`dpaudit.audits.climbing`): if one of them is proved to break its claim, nothing else is looked for. The starts of the
domain and pairs at random are each looked at with a few draws; the better half is kept and drawn twice as often, and
the best of it are moved a little; and so on, until the budget is spent or a pair stands out: an estimated loss that is
`STANDS_OUT` standard deviations above its budget needs no further search, and only pairs that stand out beside it are
chosen with it, as each takes a share of the error rate and of the draws. The suspicion of a pair is how far its
estimated loss is above its own budget, in standard deviations: rules are fitted on one half of the search's draws and
counted on the other one, and the other way round. What recorded noise proves is added.

Why the error rate holds. Let F be everything that the search saw: outputs on streams of the purposes `SEARCH_DRAWS`,
`SEARCH_CHOICES`, `GREY_BOX` and `RECORDED`, which no audit draws from. The chosen pairs are a function of F. Given F
they are fixed, and the audit's draws and coins (`DRAWS`, `COINS`) are independent of F; so whatever F is, P(a chosen
pair that keeps its claim is called violated | F) <= 1 - confidence, as for pairs that a user wrote down, and likewise
for bounds. The average over F is no larger. The search spends nothing of the error rate and has no part in it: no
suspicion is a p-value, a bound or a verdict. What it costs is draws, and that the chosen pairs share the level.

(A subject with randomness of its own has fresh randomness in each call, if it keeps the protocol: then it holds too.)
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.arguments import RngLike, seed_from, with_near_names
from dpaudit.audits.climbing import LIMITS, climb
from dpaudit.audits.exploring import explore_pairs
from dpaudit.audits.grey_box import GreyBox
from dpaudit.audits.noise_free import NoiseFree
from dpaudit.audits.search_result import RAISES, SearchResult, TriedPair
from dpaudit.errors import OutOfTimeError, UsageError
from dpaudit.features.outcomes import Outcomes, join, read_outputs
from dpaudit.features.reader import Reader
from dpaudit.inference.failures import common_failure
from dpaudit.inference.tables import N_BINS, Predicted, bins_of
from dpaudit.learning.mixture import fit_views
from dpaudit.privacy.claims import (
    LARGEST_EPSILON,
    ApproxDP,
    Claim,
    FloatArray,
    GaussianDP,
    number,
    single_line,
    whole_number,
)
from dpaudit.privacy.inputs import identity_of
from dpaudit.privacy.neighbours import claim_of_candidate, searched_relation
from dpaudit.privacy.pair_budgets import check_order_is_given
from dpaudit.privacy.pairs import Pair, as_pairs, short_form
from dpaudit.running.streams import SEARCH_CHOICES, SEARCH_DRAWS, root_of, stream
from dpaudit.running.worker_pool import randomness_moved
from dpaudit.subjects.call_limits import is_time_over
from dpaudit.subjects.callables import CallError, Subject, as_subject
from dpaudit.subjects.domains import RELATIONS, DatasetDomain, Domain, ListedDomain, Relation, domain_from_dict
from dpaudit.subjects.domains.datasets import in_turn
from dpaudit.subjects.stated import stated_claim
from dpaudit.symbolic.recorded_noise import MOST_RECORDED

ROUNDS = 5  # each with twice the draws of the one before, and half of its pairs
MIN_DRAWS, MAX_FIRST_DRAWS = 32, 500  # of an input in the first round; so many where the pairs are proved already
MOVED_SHARE = 0.5  # moved pairs that join a round, over those that stay in it
STARTS_SHARE = 0.75  # of the first candidates that are starts of the domain, where it has so many
MAX_KEPT = 20_000  # draws of an input
MAX_VIEWS = 6  # of the outputs, that a rule is made of
PSEUDO_COUNT = 1.0  # added to the right and to the wrong guesses: it shrinks a loss that few guesses estimate
MIDDLE_DELTA = 0.05  # of the line by which claims without an epsilon of their own are ranked
MAX_CHOSEN = 100  # pairs: an audit of more would spread its error rate thin
CLIMBED_SHARE = 4  # of the budget, for pairs without draws
STANDS_OUT = 4.0  # standard deviations above its budget from which a pair is enough, and the search ends
BESIDE = 0.3  # of the excess of the best pair: what another one needs to be chosen beside one that stands out


@dataclasses.dataclass(frozen=True)
class Search:
    """Pairs for `dpaudit.audit` that are searched for before it: `audit(mechanism, claim, pairs=Search(domain))`.

    Parameters
    ----------
    domain : Domain, mapping or hypothesis strategy, optional
        Where pairs come from: one of `dpaudit.subjects.domains`, its JSON form, or a strategy of pairs (x, x_prime).
    examples : sequence, optional
        In its place: datasets like which others are made, with `adjacency`; or inputs of a metric claim, any two of
        which are a pair.
    adjacency : {"add_remove", "replace_one"}, optional
        Of datasets that are made from examples; by default "replace_one" where the claim says so, else "add_remove".
    pairs : int
        How many are chosen, at least 1: the error rate of the audit is split over them.
    budget : int
        About how many runs of the mechanism the search takes, at least 1,000.
    candidates : int
        Pairs to begin with, at least 4.
    grey_box : bool
        Whether to replay pairs on the same randomness too, where the mechanism takes a generator.
    first : sequence of (x, x_prime)
        Pairs of the domain to begin with, beside its own.

    Examples
    --------
    >>> from dpaudit import audit
    >>> from dpaudit.subjects.domains import DatasetDomain
    >>> def total(data, size, rng):  # clips to [0, 1], calibrated to that, but forgets it for a single record
    ...     records = data if len(data) == 1 else np.clip(data, 0.0, 1.0)
    ...     return float(np.sum(records)) + rng.laplace(size=size)
    >>> result = audit(total, "eps=1", Search(DatasetDomain.between(0.0, 5.0), budget=8000), samples=4000, seed=1)
    >>> result.verdict, [finding.kind for finding in result.side_findings]
    ('violated', ['pair_search', 'same_randomness', 'recorded_noise'])
    """

    domain: Any = None
    examples: Sequence[Any] | None = None
    adjacency: Relation | None = None
    pairs: int = 3
    budget: int = 200_000
    candidates: int = 64
    grey_box: bool = True
    first: Sequence[Any] = ()

    def __post_init__(self) -> None:
        if (self.domain is None) == (self.examples is None):
            got = "neither" if self.domain is None else "both"
            raise UsageError(f"domain or examples must be given, one of the two, got {got}.")
        whole_number("pairs", self.pairs, "a positive integer", 1)
        number("pairs", self.pairs, f"at most {MAX_CHOSEN}", lambda v: v <= MAX_CHOSEN)
        whole_number("budget", self.budget, "an integer of at least 1,000", 1000)
        whole_number("candidates", self.candidates, "an integer of at least 4", 4)
        if self.adjacency not in (None, *RELATIONS):
            raise UsageError(f"adjacency must be one of {', '.join(RELATIONS)}, got {self.adjacency!r}.")

    def choose_pairs(self, subject: Subject, claim: Claim, seed: int) -> SearchResult:
        """Search; what `dpaudit.audit` calls before its first draw."""
        return _Searcher(self, subject, claim, seed).run()

    def domain_for(self, claim: Claim) -> Domain | None:
        """The domain that pairs come from, as the claim speaks of them; None for a hypothesis strategy."""
        if isinstance(self.domain, Domain):
            return self.domain
        if isinstance(self.domain, Mapping):
            return domain_from_dict(self.domain)
        if self.examples is None:
            if not hasattr(self.domain, "example") or not hasattr(self.domain, "map"):  # as of a hypothesis strategy
                got = short_form(self.domain)
                raise UsageError(
                    f"domain must be a Domain, its JSON form or a hypothesis strategy of pairs, got {got}."
                )
            return None
        if not isinstance(self.examples, Iterable) or isinstance(self.examples, str | bytes):
            raise UsageError(f"examples must be a list of inputs, got {short_form(self.examples)}.")
        known = list(self.examples)
        if not known:
            raise UsageError("examples must be at least one input, got none.")
        on = getattr(claim, "on", None)
        if on == "inputs":  # a metric gives any two inputs a budget
            return ListedDomain(tuple(known))
        adjacency = self.adjacency or searched_relation(claim)
        return DatasetDomain.of_examples(known, "replace_one" if on == "records" else adjacency)


@with_near_names
def search_pairs(
    mechanism: Any,
    claim: Claim | str | None = None,
    domain: Any = None,
    *,
    examples: Sequence[Any] | None = None,
    adjacency: Relation | None = None,
    pairs: int = 3,
    budget: int = 200_000,
    candidates: int = 64,
    grey_box: bool = True,
    seed: int | None = None,
    rng: RngLike = None,
) -> SearchResult:
    """Look for the pairs on which the claim is worst, without a verdict: parameters as for `Search` and `audit`.

    Returns
    -------
    SearchResult
        Its suspicions carry no confidence. `dpaudit.audit(mechanism, claim, result.pairs)` gives a verdict.

    Examples
    --------
    >>> from dpaudit.subjects.domains import NumberDomain
    >>> def release(data, size, rng):  # the noise forgets that the answer may double above 9
    ...     return (data if data < 9 else 2 * data) + rng.laplace(size=size)
    >>> search_pairs(release, "eps=1", NumberDomain(0, 10), budget=4000, seed=1).pairs[0].x > 8
    True
    """
    seed = seed_from(seed, rng)
    subject = as_subject(mechanism)
    promise = stated_claim(subject, claim)
    search = Search(domain, examples, adjacency, pairs, budget, candidates, grey_box)
    return search.choose_pairs(subject, promise, root_of(seed))


class _Searcher:
    """One search; see the module."""

    def __init__(self, search: Search, subject: Subject, claim: Claim, seed: int) -> None:
        self.search, self.subject, self.claim, self.seed = search, subject, claim, seed
        self.started, self.runs = time.perf_counter(), 0
        self.domain = search.domain_for(claim)
        self.known: dict[Any, int] = {}  # inputs by identity
        self.data: list[Any] = []
        self.drawn: list[list[Outcomes]] = []
        self.raised: dict[int, str] = {}  # inputs on which a vectorised call raised
        self.failure = ""  # what all calls on the first pair that was refused raised
        self.candidates: dict[Any, TriedPair] = {}
        self.climbed: list[TriedPair] = []

    def run(self) -> SearchResult:
        if self.domain is not None:
            check_order_is_given(self.claim, "a domain")
        if self._is_found_without_draws():
            return self._result()
        # A round draws twice as often as the one before, on half as many inputs and as many moved ones at most.
        inputs, least = self.search.budget // (2 * ROUNDS), MIN_DRAWS
        if self.claim.has_value:  # so many show a loss of twice the claim: from fewer the first choice is a lottery
            least = int(min(max(2.0 / max(line_of(self.claim).epsilon, 0.01) ** 2, MIN_DRAWS), MAX_FIRST_DRAWS))
        count = min(self.search.candidates, max(4, inputs // least))
        with contextlib.suppress(OutOfTimeError):
            self._rounds(count, max(inputs // count, 8))
        return self._result()

    def _rounds(self, count: int, draws: int) -> None:
        """Look at candidates, up to one that stands out; `OutOfTimeError` where the time ends it before."""
        active = self._of_strategy(count, draws) if self.domain is None else self._first(self.domain, count)
        active += self.climbed
        for x, x_prime in self.search.first:
            self._add(active, "given", "given", x, x_prime)
        for round_ in range(ROUNDS):
            if round_ > 0:
                active = self._ranked(active)[: max(count >> round_, self.search.pairs)]
                active += self._moved(active, max(1, int(MOVED_SHARE * len(active))), round_)
            for candidate in sorted(active, key=lambda one: one.origin not in ("given", "climb")):  # these first
                self._look(candidate, draws << round_)
                if candidate.excess >= STANDS_OUT:
                    return

    def _is_found_without_draws(self) -> bool:
        """Tell whether a pair farthest apart without noise (`dpaudit.audits.climbing`) breaks the claim by its record.

        What is the farthest is a candidate in any case.
        """
        if not self.search.grey_box or self.subject.is_program or self.subject.is_contained:
            return False
        noise_free = NoiseFree(self.subject, self.claim, self.seed)
        runs = min(LIMITS.runs, self.search.budget // CLIMBED_SHARE)
        limits = dataclasses.replace(LIMITS, runs=runs, chosen=self.search.pairs)
        place = self.domain if self.domain is not None else self.search.domain
        found = climb(noise_free, place, self.seed, limits)
        for one in (*found.best, *(() if noise_free.only_adds else found.others)):
            candidate = self._add([], one.family, "climb", one.x, one.x_prime)
            if candidate is None:
                continue
            proof = noise_free.recorder.pair(candidate.pair)
            if proof.grade == "proved":
                candidate.proved = proof.loss / max(candidate.line.epsilon, 1e-3)
            if proof.grade == "proved" or len(self.climbed) < len(found.best):
                self.climbed.append(candidate)
        self.runs += noise_free.recorder.runs
        is_found = any(candidate.proved is not None for candidate in self.climbed)
        for candidate in self.climbed if is_found else ():
            self._look(candidate, MAX_FIRST_DRAWS)
        return is_found

    def _first(self, domain: Domain, count: int) -> list[TriedPair]:
        """Starts of the domain, drawn from its families in turn, and pairs at random.

        Where there are more families than places, the first families have half of the places and the others are drawn.
        """
        rng = stream(self.seed, SEARCH_CHOICES, 0)
        families: dict[str, list[tuple[Any, Any]]] = {}
        for family, x, x_prime in domain.starts():
            families.setdefault(family, []).append((x, x_prime))
        families = {family: _shuffled(pairs, rng) for family, pairs in families.items()}
        first = int(0.5 * STARTS_SHARE * count)
        names = [*list(families)[:first], *_shuffled(list(families)[first:], rng)]
        starts = in_turn([[(name, "start", *pair) for pair in families[name]] for name in names])
        others = (("random", "random", *domain.random(rng)) for _ in range(20 * count))
        active: list[TriedPair] = []
        for proposals, most in ((starts, STARTS_SHARE * count), (others, count)):
            while len(active) < most and (proposal := next(proposals, None)) is not None:
                self._add(active, *proposal)
        if not active:
            raise UsageError(f"domain must have pairs of which the claim asks something, got {domain.to_dict()}.")
        return active

    def _moved(self, best: Sequence[TriedPair], count: int, round_: int) -> list[TriedPair]:
        """Pairs near the best ones, the first of each before the second of any; none of a strategy."""
        active: list[TriedPair] = []
        if self.domain is None:
            return active
        rng = stream(self.seed, SEARCH_CHOICES, round_)
        moves = [
            [(parent.family, *pair) for pair in self.domain.moves(parent.pair.x, parent.pair.x_prime, rng)]
            for parent in best[: max(2, len(best) // 2)]
        ]
        for family, x, x_prime in in_turn(moves):
            if len(active) < count:
                self._add(active, family, "move", x, x_prime)
        return active

    def _of_strategy(self, count: int, draws: int) -> list[TriedPair]:
        """Pairs of a hypothesis strategy, which is steered towards suspicion."""
        active: list[TriedPair] = []

        def look(x: Any, x_prime: Any) -> float | None:
            candidate = self._add(active, "strategy", "strategy", x, x_prime)
            if candidate is None:
                return None
            self._look(candidate, draws)
            return candidate.suspicion

        explore_pairs(self.search.domain, look, examples=count, seed=self.seed)
        if not active:
            raise UsageError("domain must yield pairs of which the claim asks something, got none from the strategy.")
        return active

    def _add(self, active: list[TriedPair], family: str, origin: str, x: Any, x_prime: Any) -> TriedPair | None:
        """A new candidate, unless the pair is known, equal to itself, or nothing is asked of it."""
        first, second = self._input(x), self._input(x_prime)
        key = (min(first, second), max(first, second))  # a claim is asked in both directions
        if first == second or key in self.candidates:
            return None
        claim = claim_of_candidate(self.claim, x, x_prime)
        if claim.is_vacuous:
            return None
        place = len(self.candidates)
        candidate = TriedPair(Pair(x, x_prime), family, origin, line_of(claim), (first, second), place)
        self.candidates[key] = candidate
        active.append(candidate)
        return candidate

    def _input(self, x: Any) -> int:
        key = identity_of(x)
        if key not in self.known:
            self.known[key] = len(self.data)
            self.data.append(x)  # kept, so that an identity is never used again
            self.drawn.append([])
        return self.known[key]

    def _look(self, candidate: TriedPair, size: int) -> None:
        """Draw up to `size` outputs of both inputs, and estimate how suspicious the pair is."""
        if candidate.refused:
            return
        if is_time_over():
            raise OutOfTimeError
        candidate.draws = min(size, MAX_KEPT)
        batches = [self._outcomes(i, candidate.draws) for i in candidate.inputs]
        drawn = [side for side in batches if side is not None]
        if len(drawn) < 2:
            candidate.raises, candidate.refused = len(drawn) == 1, not drawn
            return
        failure = common_failure(drawn)
        candidate.refused = failure is not None
        if failure is not None:
            self.failure = self.failure or failure.what
        else:
            candidate.excess, candidate.loss = excess(candidate.line, *drawn)

    def _outcomes(self, i: int, size: int) -> Outcomes | None:
        """At least `size` outputs on an input (all that were drawn); None where a vectorised call raised."""
        parts = self.drawn[i]
        have = sum(len(part) for part in parts)
        if have < size and i not in self.raised:
            self.runs += size - have
            rng = stream(self.seed, SEARCH_DRAWS, i, len(parts))
            moved = randomness_moved(self.subject, rng)
            try:
                parts.append(read_outputs(self.subject.sample(self.data[i], size - have, rng), size - have).kept())
            except CallError as error:
                self.raised[i] = str(error)
            if moved():
                self.subject.history.note_moved(self.data[i])
        return join(parts).rows(slice(0, size)) if parts and i not in self.raised else None

    def _ranked(self, candidates: Iterable[TriedPair]) -> list[TriedPair]:
        kept = [candidate for candidate in candidates if not candidate.refused]
        return sorted(kept, key=lambda candidate: (-candidate.suspicion, candidate.place))

    def _chosen(self, ranked: Sequence[TriedPair]) -> list[TriedPair]:
        """Pairs to audit, of the ones that stayed to the end: estimates from few draws have a large variance."""
        last = max(candidate.draws for candidate in ranked)
        deep = [c for c in ranked if c.draws >= last // 2 or c.raises or c.suspicion >= RAISES]
        raising = [candidate for candidate in deep if candidate.raises]
        # A call that raises makes the audit ask for one output a call: one such pair is enough.
        chosen = [c for c in deep if not c.raises or c is raising[0]]
        best = max(c.excess for c in deep)
        if best >= STANDS_OUT:
            chosen = [c for c in chosen if c.raises or c.excess >= BESIDE * best]
        return chosen[: self.search.pairs]

    def _result(self) -> SearchResult:
        ranked = [candidate for candidate in self._ranked(self.candidates.values()) if candidate.draws]
        refused = sum(candidate.refused for candidate in self.candidates.values())
        if not ranked:
            if is_time_over():
                raise OutOfTimeError
            why = next(iter(self.raised.values()), f"every call raised: {self.failure}" if self.failure else "no draws")
            name, tried = self.subject.name, f"{refused} pair{'' if refused == 1 else 's'}"
            raise UsageError(f"domain must have inputs that {name} takes, got none in {tried}: {why.rstrip('.')}.")
        chosen = self._chosen(ranked)
        taken = {candidate.place for candidate in chosen}
        ranked = [*chosen, *(candidate for candidate in ranked if candidate.place not in taken)]
        for candidate, pair in zip(ranked, as_pairs([candidate.pair for candidate in ranked]), strict=True):
            candidate.pair = pair  # with a name that no other has
        pairs = tuple(candidate.pair for candidate in chosen)
        report = recorded = box = None
        if self.search.grey_box:
            box = GreyBox(self.subject, self.claim, self.seed)
            report = box.examine(pairs)
            if (recorder := box.recorder) is not None:
                recorded = recorder.result([(recorder.pair(pair), pair) for pair in pairs[:MOST_RECORDED]])
        for name, found in (("grey_box", report), ("recorded", recorded)):
            grades = {} if found is None else {one.id: str(one.grade) for one in found.pairs}
            for candidate in chosen:
                setattr(candidate, name, grades.get(candidate.pair.id, ""))
        strategy = {"kind": "strategy", "strategy": short_form(self.search.domain, 200)}
        return SearchResult(
            pairs=pairs,
            tried=tuple(ranked),
            refused=refused,
            samples=self.runs + (box.samples if box is not None else 0),
            seconds=time.perf_counter() - self.started,
            seed=self.seed,
            claim=str(self.claim),
            domain=strategy if self.domain is None else self.domain.to_dict(),
            grey_box=report,
            recorded=recorded,
        )


def excess(line: ApproxDP, first: Outcomes, second: Outcomes) -> tuple[float, float]:
    """Excess of the estimated loss of a pair over its line, in standard deviations; and that loss, in nats.

    Rules are fitted on one half of the draws and counted on the other one, both ways round, so that one that was lucky
    on its training draws gains nothing. An estimate for ranking only: rules are of a few plain views.
    """
    size = min(len(first), len(second))
    batches = [side.rows(slice(0, size)) for side in (second, first)]  # labels 0 and 1
    reader = Reader.learn(batches)
    matrices = [reader(side) for side in batches]
    total = np.zeros(4)  # right and wrong guesses of 1, right and wrong guesses of 0
    guessed = 0.0
    for fitted in (slice(0, size // 2), slice(size // 2, size)):
        both = np.concatenate([matrix[fitted] for matrix in matrices])
        labels = np.repeat([0, 1], [len(matrix[fitted]) for matrix in matrices])
        order = np.random.default_rng(np.random.SeedSequence(20_261_130)).permutation(len(labels))
        both, labels = both[order], labels[order]
        mixture = fit_views(reader, both, labels, MAX_VIEWS)
        predicted = Predicted.of(mixture.mixed(mixture.of_matrix(both)))
        kept = np.ones(size, dtype=bool)
        kept[fitted] = False
        bins = [bins_of(mixture.mixed(mixture.of_matrix(matrix[kept]))) for matrix in matrices]
        counts = np.stack([np.bincount(one, minlength=N_BINS) for one in bins])
        up, down = _best_ends(predicted, line, float(counts.sum()))
        total += [counts[1, up:].sum(), counts[0, up:].sum(), counts[0, :down].sum(), counts[1, :down].sum()]
        guessed += 0.5 * line.delta * float(counts.sum()) * ((up < N_BINS) + (down > 0))
    score, loss = _excess(total[0] + total[2] - guessed, total[1] + total[3], line.epsilon)
    return float(score), float(loss)


def _excess(right: FloatArray, wrong: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Standard deviations of a record's loss above epsilon, and the loss; `right` is less what a delta pays for."""
    earned = np.maximum(right, 0.0) + PSEUDO_COUNT
    loss = np.log(earned / (wrong + PSEUDO_COUNT))
    return (loss - epsilon) / np.sqrt(1.0 / earned + 1.0 / (wrong + PSEUDO_COUNT)), loss


def _best_ends(bins: Predicted, line: ApproxDP, draws: float) -> tuple[int, int]:
    """The first bin that guesses 1 and the end of those that guess 0 with the best predicted excess.

    With a delta the guesses of one label alone too: a rare event that pays for it is lost among those of the other.
    """
    ones, zeros = (draws * np.cumsum(bins.mass * q)[:-1] for q in (bins.q, 1.0 - bins.q))
    right_up, wrong_up = draws * float(bins.mass @ bins.q) - ones, draws * float(bins.mass @ (1.0 - bins.q)) - zeros
    paid = 0.5 * line.delta * draws
    best_up = int(np.argmax(_excess(right_up - paid, wrong_up, line.epsilon)[0]))
    best_down = int(np.argmax(_excess(zeros - paid, ones, line.epsilon)[0]))
    up, down = best_up + 1, best_down + 1
    ends = [(up, down), (up, 0), (N_BINS, down)] if down <= up else [(up, 0), (N_BINS, down)]

    def score(ends: tuple[int, int]) -> float:
        up, down = ends
        right = right_up[up - 1 : up].sum() + zeros[max(down - 1, 0) : down].sum()
        wrong = wrong_up[up - 1 : up].sum() + ones[max(down - 1, 0) : down].sum()
        return float(_excess(right - paid * ((up < N_BINS) + (down > 0)), wrong, line.epsilon)[0])

    return max(ends, key=score)


def line_of(claim: Claim) -> ApproxDP:
    """The one line by which a pair is ranked: the claim's own, or one in the middle of its family.

    A Renyi claim is ranked as the Gaussian mechanism that has its divergences: not what it promises, but near it. A
    one-directional claim by the order that is promised more.
    """
    if not claim.is_symmetric:
        return min(map(line_of, claim.directions), key=lambda line: (line.epsilon, line.delta))
    if claim.family == "renyi":
        rho = min(float(claim.renyi_epsilons(np.array([claim.value]), order)[0]) / order for order in claim.orders)
        claim = GaussianDP(math.sqrt(2.0 * rho))
    line = single_line(claim)
    if line is not None:
        return ApproxDP(min(line.epsilon, LARGEST_EPSILON), min(line.delta, 1.0))
    epsilon = min(claim.epsilon_at(MIDDLE_DELTA), LARGEST_EPSILON)
    return ApproxDP(epsilon, min(claim.profile(epsilon), MIDDLE_DELTA))


def _shuffled(values: Sequence[Any], rng: np.random.Generator) -> list[Any]:
    return [values[k] for k in rng.permutation(len(values))]
