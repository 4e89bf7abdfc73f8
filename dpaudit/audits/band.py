"""A confidence band for the trade-off function of one pair: an audit's opt-in stage, on draws of its own.

The stage examines the pair that the audit found clearest. A first part of its draws fits a predictor, which is frozen;
the others are counted in the bins of its probability, and the band is that of the bins' two laws. It holds at all
thresholds of the bins, and so at all type I errors, together.

Validity. The pair is chosen from what the audit saw, and the stage reads streams that nothing else reads. How many
draws it takes depends on options and subject alone. So given the audit, the pair and the score, the values on the
second part of the draws are independent samples of two fixed laws, and the band is wrong somewhere with probability at
most its level. That level is `BAND_SHARE` of the error rate of the call (`dpaudit.audits.options`); the pairs and their
bounds have the rest. By the union bound the whole call is wrong with probability at most its error rate, the band
included. Where the stage gives no band, its share is lost: to give it back would depend on what was seen.

Rate. The thresholds between bins are fixed before the draws. At each of the T of them the number of draws below it is
binomial, on either side; its four Clopper-Pearson limits, two a side, fail with probability at most level / (4 T) each.
By the union bound some limit at some threshold fails with probability at most the level. (With 9,000 draws a side this
is a quarter narrower in the tails than the band of `dpaudit.scores.bands`, for scores of any value, and 12% wider in
the middle.)

The bin is a fixed function of the output by then, so its trade-off function is at least that of the mechanism, and an
upper limit of the one is an upper limit of the other (post-processing). The lower limit is of the bins' thresholds.

Where a number of the output is named that the pair's likelihood ratio is assumed to be monotone in, a share of the
level goes to upper limits on the loss (`dpaudit.audits.monotone`), which take more draws where these come in batches.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpaudit.audits import monotone as assumed
from dpaudit.audits.audit_run import AuditRun
from dpaudit.audits.severity import batch_of
from dpaudit.errors import SubjectError
from dpaudit.features.outcomes import join
from dpaudit.inference.binomial import binomial_lower_each
from dpaudit.inference.learning_state import LearningState, Training
from dpaudit.inference.order import change_of
from dpaudit.inference.tables import N_BINS, bins_of
from dpaudit.inference.tasks import Task
from dpaudit.inference.witness import describe_score
from dpaudit.results.trade_off import TradeOffBand, TradeOffPoint
from dpaudit.running.streams import BAND_DRAWS
from dpaudit.scores.auditing import claimed_trade_off
from dpaudit.scores.bands import Band
from dpaudit.scores.profile_bounds import TYPE_ONE

# Of each input: of a subject that draws batches, of one that is called once.
MAX_DRAWS = {True: 12_000, False: 2_000}
TRAINING_SHARE = 0.25  # of these, on which the score is fitted
DEPEND = "The draws of the stage depend on each other, so that nothing can be said."
RAISED = "A call of the stage raised or did not come back."
FAILED = "No pair has an answer."


def draws_of(samples: int, is_vectorised: bool) -> tuple[int, int]:
    """Draws of each input that fit the score, and that the band rests on, in an audit of `samples`.

    Examples
    --------
    >>> draws_of(100_000, is_vectorised=True)
    (3000, 9000)
    """
    draws = max(min(samples, MAX_DRAWS[is_vectorised]), 8)
    training = int(TRAINING_SHARE * draws)
    return training, draws - training


def examine(run: AuditRun, place: int, level: float) -> tuple[TradeOffBand, int]:
    """The band of the pair at this place at an error rate of `level`, or why there is none, and the runs it took."""
    pair, claim, subject, samples = run.pairs[place], run.claims[place], run.subject, run.options.samples
    draw = run.worker_pool.drawer(subject, [pair.x, pair.x_prime], run.root, BAND_DRAWS)
    runs = 0
    state = LearningState()
    predicted: list[list[NDArray[np.float64]]] = []
    number = assumed.number_of(subject, pair, run.options.monotone)
    numbers: list[list[NDArray[np.float64]]] = []
    sizes: tuple[int, ...] = draws_of(samples, subject.is_vectorised)
    if number is not None and subject.is_vectorised:
        further, last = divmod(max(min(samples, assumed.SIZES.draws) - sum(sizes), 0), sizes[1])
        sizes += sizes[1:] * further + ((last,) if last > 0 else ())
    try:
        for part, size in enumerate(sizes):
            batch = batch_of(size)
            # Validity: both inputs at once, so that calls are made in one random order, where they are made one by one.
            tasks = [
                Task(i, part, chunk, start, min(batch, size - start), (), min(batch, size - start))
                for chunk, start in enumerate(range(0, size, batch))
                for i in (0, 1)
            ]
            runs += 2 * size
            drawn = [found.kept for found in draw(tasks) if found.kept is not None]
            for outputs in (drawn[::2], drawn[1::2]):
                # Validity: a shared draw of noise or a state shows in the order of the calls; then there is no band.
                if change_of(join(outputs), [len(output) for output in outputs]) is not None:
                    return TradeOffBand(pair.id, level, reason=DEPEND), runs
            batches = [join(drawn[::2]), join(drawn[1::2])]
            numbers += [[number.read(side) for side in batches]] if number is not None else []
            if part == 0:
                state.learn(Training(batches[0], batches[1]))
            else:
                predicted.append([state.counter.mixture(side) for side in batches])
    except SubjectError:
        return TradeOffBand(pair.id, level, reason=RAISED), runs
    if subject.has_lost_calls:  # when a call did not come back may tell of which input it was
        return TradeOffBand(pair.id, level, reason=RAISED), runs
    tested = [np.concatenate(side) for side in zip(*predicted, strict=True)]
    first, second = (np.bincount(bins_of(q), minlength=N_BINS) for q in tested)
    limits, rest = None, level
    if number is not None:
        rest = level * (1.0 - assumed.SIZES.level_share)
        later = [np.concatenate(side) for side in zip(*numbers[1:], strict=True)]
        limits = assumed.limits_of(number.name, numbers[0], later, tested, level - rest, band_of_bins)
    found = band_of_bins(first, second, rest)
    columns = TYPE_ONE, found.upper(TYPE_ONE), found.thresholds_lower(TYPE_ONE), claimed_trade_off(claim, TYPE_ONE)
    points = tuple(TradeOffPoint(*(float(value) for value in row)) for row in zip(*columns, strict=True))
    return TradeOffBand(
        pair.id, level, int(first.sum()), describe_score(state.counter.mixture), points, monotone=limits
    ), runs


def band_of_bins(counts_in: NDArray[np.int64], counts_out: NDArray[np.int64], level: float) -> Band:
    """The band of two laws of bins from independent counts, non-coverage at most `level`: see the module.

    Examples
    --------
    >>> found = band_of_bins(np.array([10, 90]), np.array([90, 10]), 0.05)
    >>> found.type_one_upper.round(3).tolist(), found.type_two_upper.round(3).tolist()
    ([1.0, 0.188, 0.0], [0.0, 0.188, 1.0])
    """
    limits = []
    for counts in (counts_in, counts_out):
        below, size = np.concatenate([[0], np.cumsum(counts)]).astype(float), float(counts.sum())
        each, total = np.full(len(below), level / (4.0 * (len(counts) - 1))), np.full(len(below), size)
        lower = binomial_lower_each(below, total, each)
        upper = 1.0 - binomial_lower_each(size - below, total, each)
        lower[[0, -1]] = upper[[0, -1]] = 0.0, 1.0  # all bins are below the end, and none below the start
        limits.append((lower, upper))
    (in_lower, in_upper), (out_lower, out_upper) = limits
    return Band(1.0 - out_upper, 1.0 - out_lower, in_lower, in_upper)
