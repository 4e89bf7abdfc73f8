"""Memory of a mechanism from call to call where the order of its outcomes cannot show it: noise, or a budget.

Two kinds of memory leave outcomes that come in no suspicious order, and an audit that has learnt next to nothing:

* **Kept noise.** The first call on an input draws noise, and later ones return the same output. All outcomes on an
  input are one value, as those of a mechanism without any noise are, and the audit has seen one draw of each input.
* **A spent budget.** A few calls are answered, and all later ones refused, whatever the input is: nearly identical
  outcomes on both inputs, of which nothing was learnt, beside a few that are too few for any order test.

Where one is seen a pair is inconclusive, without a bound and without power: no error rate grows by that.

Kept noise. A mechanism without memory whose randomness is the generator that it is given decides to take from it before
it has anything random: it does so in every call on an input, or in none. So one that moved its generator in the first
chunk of calls, or in an earlier audit of the same object, and leaves it alone in a later call has kept something, with
certainty, if nobody else has changed it between the two. (Noise that a caller has switched off, and a method without
noise behind one with noise, are called kept noise too: a new object shows what is so.) Then nothing is said of any pair
of this object whose calls take none and give one value on each input: one noise for all inputs is drawn on the first.

A mechanism with randomness of its own (of an attribute, of the system) is not seen by this. An isolated one is asked in
up to `OTHERS` fresh processes on each input: all n outcomes of a mechanism without memory are one value, and one of
these is another, with probability at most `OTHERS` / (e n), as r (1 - r)^n <= 1 / (e n) for any share r of others.

A spent budget. Where outcomes are independent and of one law, the m rare ones among n of an input are its first m with
probability 1 / C(n, m), at most 1 / n for 0 < m < n. So a mechanism that is rarely another is called spent with
probability at most 1 / n of an input, at least 100.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.audits.findings import NONE_GIVEN
from dpaudit.campaign.label_game import LabelGame
from dpaudit.errors import SubjectError
from dpaudit.features.outcomes import Outcomes, read_outputs
from dpaudit.inference.pair_game import PairGame
from dpaudit.results.model import IS_RETURNED, NOTHING_DRAWN
from dpaudit.running.streams import KEPT_NOISE as KEPT_DRAWS
from dpaudit.running.streams import stream
from dpaudit.running.worker_pool import randomness_moved
from dpaudit.subjects.call_outcomes import Failed
from dpaudit.subjects.callables import Subject

OTHERS = 2  # processes: how often a sound one differs is bounded by their number, in the module
RARE_SHARE = 0.01  # of outcomes, at most, that came before a budget was spent; of fewer than 100 nothing is said
KEPT_NOISE = (
    "Noise is kept, or was switched off: earlier calls on an input took random numbers, a later one took none, and all "
    f"its outcomes are the same. {NONE_GIVEN} With fresh=True (--fresh) each call has an object of its own, where the "
    "mechanism is a factory. Where noise was switched off, audit a new object."
)
SHARED_NOISE = (
    "Noise is kept: all outcomes on an input are the same, but other processes gave others, so this is one draw of "
    f"each input. {NONE_GIVEN}"
)


def why_kept(
    subject: Subject, root: int, game: LabelGame, data: Sequence[Any], moved: Mapping[int, bool]
) -> tuple[dict[int, str], int]:
    """Reasons, by pair, why a mechanism that keeps its noise or has spent a budget cannot be judged; the calls taken.

    `moved` says, by input, whether its first calls took randomness.
    """
    found: dict[int, str] = {}
    calls = 0
    firsts = [dict(zip(pair.inputs, game.first_outcomes(pair), strict=False)) for pair in game.pairs]
    # Those that can show that noise is kept come first: it counts for all of them.
    for place in sorted(range(len(firsts)), key=lambda place: not any(moved.get(i) for i in firsts[place])):
        first = firsts[place]
        reason, more = why_one_draw(subject, root, first, data, moved)
        calls += more
        if reason := spent(list(first.values())) or reason:
            found[place] = reason
    return found, calls


def note_unused(subject: Subject, games: Sequence[PairGame], moved: Mapping[int, bool]) -> None:
    """Note in each game that no first call has drawn from the generator that it was given, unless all outputs are one.

    What an isolated subject draws is seen in its process alone.
    """
    if subject.replayable and not subject.is_contained and moved and not any(moved.values()):
        for game in games:
            if not any(remark.endswith(IS_RETURNED) for remark in game.remarks):
                game.remarks = (NOTHING_DRAWN, *game.remarks)


def why_one_draw(
    subject: Subject, root: int, first: Mapping[int, Outcomes], data: Sequence[Any], moved: Mapping[int, bool]
) -> tuple[str, int]:
    """Reason why the first outcomes of each input are one draw, which is kept; empty where none is seen; the calls."""
    calls = 0
    if any(len(outcomes) < 2 or others_of(outcomes).any() for outcomes in first.values()):
        return "", calls
    for i, outcomes in first.items():
        if subject.is_contained:
            streams = [stream(root, KEPT_DRAWS, i, k) for k in range(OTHERS)]
            (is_kept, more), reason = differs_in_others(subject, data[i], outcomes, streams), SHARED_NOISE
        elif moved.get(i):
            is_kept, reason = keeps_noise(subject, data[i], stream(root, KEPT_DRAWS, i)), KEPT_NOISE
            more = 1
        else:
            continue
        calls += more
        if is_kept:
            subject.history.keeps_noise = True
            return reason, calls
    is_kept = subject.history.keeps_noise and not any(moved.get(i) for i in first)
    return KEPT_NOISE if is_kept else "", calls


def keeps_noise(subject: Subject, x: Any, rng: np.random.Generator) -> bool:
    """Tell whether one call more on an input that has moved its randomness before takes none now."""
    moved = randomness_moved(subject, rng)
    try:
        read_outputs(subject.observe(x, 1, rng), 1)
    except SubjectError:
        return False
    return not moved()


def differs_in_others(
    subject: Subject, x: Any, outcomes: Outcomes, streams: Sequence[np.random.Generator]
) -> tuple[bool, int]:
    """Tell if fresh processes of an isolated subject give another output on an input than all `outcomes`; the calls.

    One process a stream. A call that raises or does not come back says nothing.
    """
    if not len(outcomes) or others_of(outcomes).any():
        return False, 0
    known = last_token(outcomes)
    for count, rng in enumerate(streams, 1):
        try:
            subject.recycle()
            one = read_outputs(subject.observe(x, 1, rng), 1)
        except SubjectError:
            return False, count
        if not isinstance(one.raw[0] if one.raw else None, Failed) and last_token(one) != known:
            return True, count
    return False, len(streams)


def others_of(outcomes: Outcomes) -> NDArray[np.bool_]:
    """Mask of the outcomes other than the last one, shape (draws,). NaN is equal to NaN."""
    if outcomes.tokens is not None:
        return np.asarray(outcomes.tokens != outcomes.tokens[-1], dtype=bool)
    last = outcomes.numbers[-1]
    return np.asarray(~((outcomes.numbers == last) | (np.isnan(outcomes.numbers) & np.isnan(last))).all(axis=1))


def last_token(outcomes: Outcomes) -> str:
    """The last outcome as a text that equal ones share."""
    tokens = outcomes.rows(slice(len(outcomes) - 1, len(outcomes))).as_objects().tokens
    return "" if tokens is None else str(tokens[0])


def spent(inputs: Sequence[Outcomes]) -> str:
    """Sentence that calls on all inputs were refused behind the first few; empty where they were not.

    `inputs` has the first outcomes of each input of a pair, in the order of the calls.

    Examples
    --------
    >>> answers = read_outputs([0.5, *["spent"] * 400], 401)
    >>> spent([answers, read_outputs(["spent"] * 400, 400)])[:54]
    'Nothing was learnt: of the outcomes on the two inputs '
    >>> spent([read_outputs(["spent"] * 400, 400)] * 2)
    ''
    """
    if not inputs or min(map(len, inputs)) < 1.0 / RARE_SHARE:
        return ""
    others = []
    for outcomes in inputs:
        is_other = others_of(outcomes)
        count = int(np.count_nonzero(is_other))
        if count > RARE_SHARE * len(outcomes) or not np.all(is_other[:count]):
            return ""
        others.append(count)
    refusals = {last_token(outcomes) for outcomes in inputs} if sum(others) else set()
    if len(refusals) != 1:
        return ""
    (refusal,) = refusals
    first, size = " and ".join(f"{count:,}" for count in others), sum(map(len, inputs))
    return (
        f"Nothing was learnt: of the outcomes on the two inputs the first {first} are others, and all the rest of "
        f"{size:,} are {refusal[:60]}, on either input. The mechanism seems to answer a few calls and to refuse "
        "all later ones; the few before that are too few to say anything. Audit it with a fresh object a call: "
        "fresh=True (--fresh), where the mechanism is a factory."
    )
