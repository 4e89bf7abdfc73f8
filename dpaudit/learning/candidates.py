"""Candidates: the scores that suit the outputs of a pair, each fitted on earlier draws only.

What a score misses costs draws, never error rate; what it costs to fit and to compute is paid by every audit. So cheap
scores come always, and others only where the outputs call for them and there are draws enough to fit them. Every
candidate is also a competitor that may win by luck: of many coordinates, pairs or summaries only the best come.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from dpaudit.learning.boosted_trees import fit_trees
from dpaudit.learning.cells import whole_edges
from dpaudit.learning.hints import NO_HINTS, Hints
from dpaudit.learning.histograms import (
    Coordinate,
    Histogram,
    fit_histogram,
    fit_table,
    tokens_of,
    weighed_histogram,
)
from dpaudit.learning.predicted import Binned, learned_scores
from dpaudit.learning.scores import Score, Viewed
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.distances import find_distance
from dpaudit.reading.expanded import ExpandedLayout, learn_expanded_layouts
from dpaudit.reading.leaves import SUMMARIES as LEAF_SUMMARIES
from dpaudit.reading.leaves import Leaf
from dpaudit.reading.nested import Layout, learn_layout
from dpaudit.reading.outcomes import Outcomes
from dpaudit.reading.outlines import FORM, STRUCTURE
from dpaudit.reading.tallies import Tally, fit_logistic
from dpaudit.reading.vectors import (
    SUMMARIES,
    Scales,
    Steps,
    Summary,
    fit_even,
    fit_linear,
    fit_quadratic,
    is_affordable,
    screened,
)

MAXIMUM_TABLE = 4_096  # outcomes in a table
MOST_BINNED = 96  # coordinates of which histograms are made
MOST_SUMMED = 64  # of these, in a sum of log ratios
MOST_OF_STEPS = 3  # scores of the differences of coordinates, the first few: their sums, and the most informative one
COARSE_COLUMNS = 8  # from which on log ratios are added up in two bins a column, too
MOST_IN_TREES = 24  # and the most informative, in trees
# Draws of both sides from which on a score is worth its fit.
LINEAR_DRAWS, QUADRATIC_DRAWS, TALLY_DRAWS, TREE_DRAWS = 32, 60, 500, 1_000
DIAGONAL_COLUMNS = 8  # from which on the draws may be too few for correlations
DRAWS_A_NUMBER = 25  # from which on integer parts are worth a look
# Of one side, that scores of objects are fitted on: again and again, or on one half and valued on the other.
LEAF_DRAWS = {False: 8_000, True: 16_000}

COORDINATE = re.compile(r"coordinate (\d+)")

Candidate = tuple[Score, Outcomes, Outcomes]
Halves = tuple[Outcomes, Outcomes]


def candidates(
    first: Outcomes, second: Outcomes, objects: bool, hints: Hints = NO_HINTS, halves: bool = True
) -> Iterator[Candidate]:
    """Scores that suit the outcomes, each with the draws that its thresholds may be fitted on.

    With `halves` a fitted score sees one half of the draws, and comes with the other; else all draws serve for both. So
    they do for what learners propose: most of it is told by outputs without their labels, and where it is rare half of
    it is too little.
    """
    draws, columns = len(first) + len(second), first.numbers.shape[1]
    if objects:
        first, second = (part.rows(slice(0, LEAF_DRAWS[halves])) for part in (first, second))
    fit = rest = first, second
    if halves:
        fit = first.rows(slice(0, None, 2)), second.rows(slice(0, None, 2))
        rest = first.rows(slice(1, None, 2)), second.rows(slice(1, None, 2))
    log_ratio = hints.log_ratio
    if log_ratio is not None and not objects:
        yield log_ratio, first, second
    elif not objects:
        for near in hints.nearness(first):
            yield near, first, second
    if columns == 1 and not objects:
        yield Coordinate(0, 1), first, second
    if min(len(part) for part in rest) < 4:
        if columns > 1 or objects:
            yield Coordinate(0, columns), first, second
        return
    if columns == 1 and not objects:
        # Where partitions are made of the scores, fine cells of the output say the same as its histograms.
        if halves and _varies(first.numbers[:, 0], second.numbers[:, 0]):
            # Not beside a known density; nor for partitions, whose mirrored paths say the same.
            distance = find_distance(first.numbers[:, 0], second.numbers[:, 0]) if log_ratio is None else None
            if distance is not None:
                yield distance, first, second
            bins = int(np.clip(draws // 25, 4, 64))
            yield fit_histogram(*fit, (0,), bins), *rest
            # Not beside a known density: a few wide bins win by luck, and show less than the density does.
            edges = whole_edges(np.concatenate([part.numbers[:, 0] for part in fit]))
            if log_ratio is None and 0 < len(edges) < draws / DRAWS_A_NUMBER:
                yield weighed_histogram(*fit, (0,), bins, edges)[0], *rest
        for learned_score in learned_scores(first, second, known=hints.proposals):
            yield learned_score, first, second
        return
    found = False
    for candidate in _of_objects(fit, rest) if objects else _of_vectors(fit, rest):
        found = True
        yield candidate
    if not objects:
        for learned_score in learned_scores(first, second, hints.points(first.numbers.shape[1]), hints.proposals):
            found = True
            yield learned_score, first, second
    if not found:
        yield Coordinate(0, columns), first, second


def by_kind(several: Iterable[Candidate]) -> Iterator[tuple[str, Candidate]]:
    """Candidates with their kinds: what finds each again among those that were fitted on other draws."""
    seen: Counter[str] = Counter()
    for candidate in several:
        name = _kind_of(candidate[0])
        seen[name] += 1
        yield f"{name} {seen[name]}" if seen[name] > 1 or not _is_learned(candidate[0]) else name, candidate


def _kind_of(score: Score) -> str:
    if isinstance(score, Binned):
        return score.name
    if not isinstance(score, Viewed):
        return type(score).__name__
    if not isinstance(score.score, Binned):
        is_expanded = isinstance(score.view, ExpandedLayout)
        return f"{'Expanded' if is_expanded else 'Viewed'} of {_kind_of(score.score)}"
    # A column has another number in a layout that was learned from other draws.
    return f"Viewed of {COORDINATE.sub(lambda found: score.view.name_of(int(found[1])), score.score.name)}"


def _is_learned(score: Score) -> bool:
    return isinstance(score.score if isinstance(score, Viewed) else score, Binned)


def _of_objects(fit: Halves, rest: Halves) -> Iterator[Candidate]:
    """Tables of tokens and outlines, and scores of the leaves."""
    draws = 2 * (len(fit[0]) + len(fit[1]))
    largest = min(MAXIMUM_TABLE, max(2, draws // 4))
    whole = fit_table(*fit, largest=largest)
    if whole is not None:
        yield whole, *rest
    classes = [len({*tokens_of(fit[0]), *tokens_of(fit[1])})]
    for outline in (FORM, STRUCTURE):
        # An outline that leaves nothing out, or no difference at all, is no further candidate.
        classes.append(len({*tokens_of(fit[0], outline), *tokens_of(fit[1], outline)}))
        if 1 < classes[-1] < classes[-2]:
            table = fit_table(*fit, largest=largest, outline=outline)
            if table is not None:
                yield table, *rest
    for learned in (learn_layout(*fit), *learn_expanded_layouts(*fit)):
        if learned is None:
            continue
        view, *seen = learned
        for outcomes, shown in zip(fit, seen, strict=True):  # the same as those of `rest`, where there are no halves
            outcomes.knows(view, shown)
        # Leaves are the same in every layout: an expansion's are read beside them, and never added to them.
        leaves = [k for k, leaf in enumerate(_leaves_of(view)) if leaf.what not in LEAF_SUMMARIES]
        for score in _of_columns((seen[0], seen[1]), leaves):
            yield Viewed(view, score), *rest
        for learned_score in learned_scores(seen[0], seen[1]):
            yield Viewed(view, learned_score), *rest


def _leaves_of(view: Layout | ExpandedLayout) -> tuple[Leaf, ...]:
    return (view if isinstance(view, Layout) else view.layout).leaves


def _of_vectors(fit: Halves, rest: Halves) -> Iterator[Candidate]:
    """A table where whole vectors repeat; scores of the coordinates; the best summary of them."""
    draws = 2 * (len(fit[0]) + len(fit[1]))
    table = fit_table(*fit, largest=min(MAXIMUM_TABLE, max(2, draws // 4)))
    if table is not None:
        yield table, *rest
    for score in _of_columns(fit, range(fit[0].numbers.shape[1])):
        yield score, *rest
    steps = Steps.between(*fit)
    if steps is not None:
        for score in islice(_of_columns((steps(fit[0]), steps(fit[1])), range(fit[0].numbers.shape[1])), MOST_OF_STEPS):
            yield Viewed(steps, score), *rest
    tally = Tally.between(*fit) if draws >= TALLY_DRAWS else None
    if tally is not None:
        logistic = fit_logistic(tally(fit[0]), tally(fit[1]))
        if logistic is not None:
            yield Viewed(tally, logistic), *rest
    summarised = _summarised(*fit)
    if summarised is not None:
        summary, seen, varying = summarised
        if varying:
            histogram, information, _ = weighed_histogram(*seen, tuple(varying), _bins(draws))
            best = int(np.argmax(information))
            view = summary.only(SUMMARIES[varying[best]])
            yield Viewed(view, Coordinate(0, 1)), *rest
            one = histogram.only([best])
            yield Viewed(view, Histogram((0,), one.edges, one.values, 1)), *rest


def summaries(first: Outcomes, second: Outcomes) -> list[tuple[str, Score]]:
    """Every summary of vectors that varies, as a score of its own, with its name."""
    summarised = _summarised(first, second)
    if summarised is None:
        return []
    summary, _, varying = summarised
    return [(SUMMARIES[k], Viewed(summary, Coordinate(k, len(SUMMARIES)))) for k in varying]


def _summarised(first: Outcomes, second: Outcomes) -> tuple[Summary, Halves, list[int]] | None:
    """The summaries of vectors, what they show of these, and which of them vary; None where no coordinate does."""
    scales = Scales.of(first.numbers, second.numbers)
    if not np.any(scales.spread > 0.0):
        return None
    summary = Summary(SUMMARIES, scales.centre, scales.divisor)
    seen = summary(first), summary(second)
    return summary, seen, [k for k in range(len(SUMMARIES)) if _varies(seen[0].numbers[:, k], seen[1].numbers[:, k])]


def _of_columns(fit: Halves, own: Sequence[int]) -> Iterator[Score]:
    """Scores of columns of numbers; `own` are those that are no summaries of others, which may be added up."""
    first, second = fit
    a, b = first.numbers, second.numbers
    columns, draws = a.shape[1], 2 * (len(a) + len(b))
    varying = tuple(int(k) for k in screened(a, b, MOST_BINNED) if _varies(a[:, k], b[:, k]))
    if not varying:
        return
    histogram, information, deviations = weighed_histogram(first, second, varying, _bins(draws))
    top = int(np.argmax(information))
    if len(varying) > 1:
        order = np.argsort(-deviations, kind="stable").tolist()
        allowed = set(own)
        # Columns that show less than noise would are left out of the sum: half of those that say nothing.
        summed = [k for k in order if deviations[k] > 0.0 and varying[k] in allowed][:MOST_SUMMED]
        if len(summed) > 1:
            yield histogram.only(sorted(summed))
        if columns >= COARSE_COLUMNS:
            coarse, _, shown = weighed_histogram(first, second, varying, 2)
            summed = [k for k in np.argsort(-shown, kind="stable").tolist() if shown[k] > 0.0 and varying[k] in allowed]
            is_new = any(len(coarse.edges[k]) < len(histogram.edges[k]) for k in summed)
            if len(summed) > 1 and is_new:
                yield coarse.only(sorted(summed[:MOST_SUMMED]))
    yield Coordinate(varying[top], columns)
    yield histogram.only([top])
    if len(varying) > 1 and draws >= LINEAR_DRAWS:
        linear = fit_linear(first, second)
        if linear is not None:
            yield linear
            if columns >= DIAGONAL_COLUMNS and is_affordable(len(a) + len(b), columns):
                diagonal = fit_linear(first, second, diagonal=True)
                if diagonal is not None:
                    yield diagonal
            even = fit_even(first, second) if columns >= DIAGONAL_COLUMNS else None
            if even is not None:
                yield even
    if len(varying) > 1 and draws >= QUADRATIC_DRAWS:
        quadratic = fit_quadratic(first, second)
        if quadratic is not None:
            yield quadratic
    if len(varying) > 1 and draws >= TREE_DRAWS:
        chosen = np.array(varying)[np.argsort(-deviations, kind="stable")[:MOST_IN_TREES]]
        trees = fit_trees(first, second, np.sort(chosen))
        if trees is not None:
            yield trees


def _bins(draws: int) -> int:
    return int(np.clip(draws // 50, 2, 16))


def _varies(a: FloatArray, b: FloatArray) -> bool:
    both = np.concatenate([a, b])
    return bool(np.any(both[1:] != both[0])) and not bool(np.all(np.isnan(both)))
