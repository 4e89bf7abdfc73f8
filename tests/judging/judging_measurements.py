"""The figures of docs/measurements/judge.md: python tests/judging/judging_measurements.py [PART...]

Parts are "search", "bank", "museum", "again", "own" and "page"; without one all are run, which takes two hours. Each
part is saved in `reports/judge`, goes on where it was ended, and the page is made of what is there.
"""

import collections
import itertools
import json
import statistics
import sys
import textwrap
import time
import warnings
from pathlib import Path

from sensitive_functions import CLAIMS, FUNCTIONS, SIZES, TRACKS, domain, mechanism

from dpaudit import DpauditError, as_subject, judge, museum, parse_claim
from dpaudit.audits.climbing import climb
from dpaudit.audits.noise_free import NoiseFree

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "reports" / "judge"
PAGE = ROOT / "docs" / "measurements" / "judge.md"
SEED = 1
LOSS_AT_0 = 1.4338  # log((1 + e^2) / 2): of two answers by the exponential mechanism, with half of the noise
REACHED = 1.0 - 1e-6  # of the sensitivity
DEFAULT, SECONDS, OF_RIGHT = 60.0, 20.0, 8.0  # the default; of a judgement; of one of a mended or right version
JUDGED = 3  # the length of the vectors of all functions with Laplace noise; of the others every fourth
OTHER_SIZES, OF_OTHER_SIZES = (1, 10, 100), ("laplace", "gdp", "exponential")
EVERY = 4  # function of a track: one or two runs are one that is searched in ten


def main(parts):
    """Run some parts, and write the page."""
    warnings.simplefilter("ignore")
    if "search" in parts:
        _into("bank", _searches())
    if "bank" in parts:
        _into("bank", _bank())
    if "museum" in parts:
        _into("museum", _museum())
    if "again" in parts:
        _into("again", _missed())
    if "own" in parts:
        _into("own", _own())
    _, title, by_hand = PAGE.read_text(encoding="utf-8").partition("## Bugs mended by a reader")
    measured = _page(_read("bank"), _read("museum"), _read("again"), _read("own"))
    PAGE.write_text(f"{measured}\n{title}{by_hand}", encoding="utf-8")


def _path(name):
    return FOLDER / f"{name}.jsonl"


def _read(name):
    return [json.loads(line) for line in _path(name).read_text().splitlines()] if _path(name).is_file() else []


def _into(name, cases):
    """Run the cases that are not saved yet, one line each."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    known = {tuple(record["key"]) for record in _read(name)}
    for key, run in cases:
        if key not in known:
            started, before = time.perf_counter(), time.process_time()
            record = {"key": key, **run()}
            record |= {"seconds": time.perf_counter() - started, "processor": time.process_time() - before}
            with _path(name).open("a") as file:
                file.write(json.dumps(record) + "\n")


ADDED, DECIDED = ("laplace", "gdp", "zcdp"), ("exponential", "noisy_max", "permute_and_flip")
EVERY_AGAIN = 12  # function of a track, with the time of a judgement by default


def _searches():
    for track, n, (place, function) in itertools.product(TRACKS, SIZES, enumerate(FUNCTIONS)):
        if function.sensitivity(n) > 0.0 and (track == "laplace" or place % EVERY == 0):
            yield ("search", track, function.name, n), lambda f=function, t=track, n=n: _searched(f, t, n)


def _bank():
    for n, track, (place, function) in itertools.product((JUDGED, *OTHER_SIZES), TRACKS, enumerate(FUNCTIONS)):
        is_chosen = place % EVERY == 0 or (track == "laplace" and n == JUDGED)
        if function.sensitivity(n) > 0.0 and is_chosen and (n == JUDGED or track in OF_OTHER_SIZES):
            for share in (0.5, 1.0):
                run = lambda f=function, t=track, n=n, s=share: _judged(f, t, n, s)  # noqa: E731
                yield ("judge", track, function.name, n, share), run


def _searched(function, track, n):
    noise_free = NoiseFree(as_subject(mechanism(function, track, n, 0.5)), parse_claim(CLAIMS[track]), SEED)
    found = climb(noise_free, domain(n), SEED)
    share, loss = 0.0, 0.0
    if found.best:
        best = found.best[0]
        moved = abs(float(function.value(best.x) - function.value(best.x_prime)))
        share, loss = moved / function.sensitivity(n), best.distance
    return {"share": share, "loss": loss, "runs": found.runs}


def _judged(function, track, n, share, seconds=None):
    found = judge(
        mechanism(function, track, n, share),
        CLAIMS[track],
        domain=domain(n),
        seed=SEED,
        seconds=seconds or (SECONDS if share < 1.0 else OF_RIGHT),
    )
    return {"verdict": found.verdict, "by": found.by, "runs": found.runs}


def _museum():
    for version in ("faulty", "mended"):
        for exhibit in museum():
            yield (version, exhibit.name), lambda e=exhibit, v=version: _exhibited(e, v)


def _missed():
    """With the time of a judgement by default: right noise of decisions, and the bugs that were not refuted."""
    for (place, function), track in itertools.product(enumerate(FUNCTIONS), DECIDED):
        if place % EVERY_AGAIN == 0:
            run = lambda f=function, t=track: _judged(f, t, JUDGED, 1.0, DEFAULT)  # noqa: E731
            yield ("right", track, function.name, JUDGED), run
    missed = {r["key"][1] for r in _read("museum") if r["key"][0] == "faulty" and r["verdict"] != "refuted"}
    for exhibit in museum():
        if exhibit.name in missed and exhibit.channel != "low bits":
            yield ("again", exhibit.name), lambda e=exhibit: _exhibited(e, "faulty", DEFAULT)


def _own():
    from dpaudit_mechanisms.problems import problems

    for one in problems():
        yield ("sound" if one.sound else "faulty", one.id), lambda one=one: _judged_pair(one)


def _judged_pair(problem):
    found = judge(
        problem.mechanism,
        problem.claim,
        pairs=[problem.pair],
        seed=SEED,
        seconds=OF_RIGHT if problem.sound else SECONDS,
    )
    return {"verdict": found.verdict, "by": found.by, "runs": found.runs}


def _exhibited(exhibit, version, seconds=None):
    low_bits = exhibit.channel == "low bits"
    try:
        found = judge(
            getattr(exhibit, version),
            exhibit.claim,
            domain=exhibit.domain,
            seed=SEED,
            seconds=seconds or (SECONDS if version == "faulty" else OF_RIGHT),
        )
    except DpauditError as error:
        return {"verdict": "usage", "by": str(error)[:200], "runs": 0, "low_bits": low_bits}
    return {"verdict": found.verdict, "by": found.by, "runs": found.runs, "low_bits": low_bits}


INTRODUCTION = """\
# Judgements, and the search for sensitivities

`python tests/judging/judging_measurements.py` makes this page: seed 1, one core of a machine on which several other
programs ran. Seconds are those of the processor; how far a judgement comes in its time is that of a busy machine.

## Sensitivity found

The functions of `tests/judging/sensitive_functions.py` on [0, 1]^n with n = 1, 3, 10 and 100; one number may change
to any other. 25 are those of a public bank, 23 are ours. With Laplace noise all of them, in other tracks every fourth.
They are released with half of the noise that the claim needs, and searched with at most 1,000 runs.

*Reached* is the share of cases in which the pair that was found has the whole sensitivity. Where one of two answers
is released the worst pair need not have it: there *reached* counts, too, a pair whose loss is larger than that of
the pair with the whole sensitivity at 0.

The search was tuned on the first half. On the second half it first reached all in 86% of the cases of noise that is
added (99% of the sensitivity on average); it was mended then, so that no half is untouched. Other functions are
harder: of eight random sums of hills of two numbers (seeds 0 to 7 of the one in `tests/judging/test_sensitivity.py`),
whose sensitivity a grid tells, the search reaches 84% to 100%, 97% on average.

| track | functions | cases | reached | share of the sensitivity, mean | runs, median | seconds, median | most |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""
HEAD = """\
| {} | cases | refuted | by proof | proved | not refuted | inconclusive | seconds, median | most |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""
BANK = f"""
## The bank, judged

Half of the noise is wrong, and all of it is right; all functions with Laplace noise on {JUDGED} numbers, every fourth
in other tracks and of another length, as far as the time went; {SECONDS:.0f} s a wrong one, {OF_RIGHT:.0f} s a right
one. A right one is refuted by draws with a probability of at most .01. A mechanism that decides is not refuted where
the pairs that were found are proved to keep the claim. {OF_RIGHT:.0f} s of a busy machine, some 3 of its processor, are
too few for that: every twelfth function has {DEFAULT:.0f} s, too.

{HEAD.format("track, noise and length")}"""
MUSEUM = f"""
## The museum, judged

Each bug ({SECONDS:.0f} s) and its mended version ({OF_RIGHT:.0f} s), with the file, the claim and the domain of the
exhibit. What shows in the low bits of doubles alone is not judged, and has rows of its own. Draws refute a version
that sits on its claim at a rate of .01: with another order of pairs this seed once refuted
threshold-at-its-boundary, and real runs that were to confirm a proof, at a rate of .01 then and of one in a million
now, two-coordinates-one-epsilon.

{HEAD.format("versions")}"""
OWN = f"""
## The project's own mechanisms, judged

The reference mechanisms ({OF_RIGHT:.0f} s) and their faulty twins ({SECONDS:.0f} s), on the first pair that each lists.

{HEAD.format("mechanisms")}"""


def _page(bank, exhibits, again, own):
    public = {function.name: function.is_public for function in FUNCTIONS}
    text = INTRODUCTION
    for track in TRACKS:
        for is_public in (True, False):
            of_half = [r for r in bank if r["key"][:2] == ["search", track] and public[r["key"][2]] == is_public]
            text += _search_row(track, is_public, of_half)
    text += BANK
    for track, n, (share, name) in itertools.product(TRACKS, SIZES, ((0.5, "half"), (1.0, "right"))):
        records = [r for r in bank if [*r["key"][:2], *r["key"][3:]] == ["judge", track, n, share]]
        text += _verdict_row(f"{track}, {name}, {n}", records)
    for track in DECIDED:
        records = [r for r in again if r["key"][:2] == ["right", track]]
        text += _verdict_row(f"{track}, right, {JUDGED}, {DEFAULT:.0f} s", records)
    again = [r for r in again if r["key"][0] == "again"]
    text += MUSEUM
    for version in ("faulty", "mended"):
        for low_bits, name in ((False, version), (True, f"{version}, low bits")):
            records = [r for r in exhibits if r["key"][0] == version and r["low_bits"] == low_bits]
            text += _verdict_row(name, records)
    text += _verdict_row(f"faulty, the rest of the first row in {DEFAULT:.0f} s", again)
    found = {r["key"][1] for r in again if r["verdict"] == "refuted"}
    shown = [r for r in exhibits if not r["low_bits"] and (r["key"][0] == "mended" or r["key"][1] not in found)]
    text += f"\n{textwrap.fill(_exceptions(shown, 'mended'), 120)}\n"
    text += OWN
    for version in ("sound", "faulty"):
        text += _verdict_row(version, [r for r in own if r["key"][0] == version])
    return f"{text}\n{textwrap.fill(_exceptions(own, 'sound'), 120)}\n"


def _exceptions(records, right):
    """The wrong ones that are not refuted, and the right ones that are."""
    wrong = [r for r in records if r["key"][0] == "faulty"]
    missed = [f"{r['key'][1]} ({r['verdict'].replace('_', ' ')})" for r in wrong if r["verdict"] != "refuted"]
    accused = [r["key"][1] for r in records if r["key"][0] == right and r["verdict"] == "refuted"]
    return (
        f"Not refuted: {', '.join(missed) or 'none'}. {right.capitalize()} and refuted: {', '.join(accused) or 'none'}."
    )


def _search_row(track, is_public, records):
    if not records:
        return ""
    adds = track in ADDED
    reached = [r["share"] >= REACHED or (not adds and r["loss"] > LOSS_AT_0) for r in records]
    seconds = [r["processor"] for r in records]
    share = statistics.mean(min(r["share"], 1.0) for r in records)
    half, reached_share = "public" if is_public else "ours", f"{sum(reached) / len(reached):.1%}"
    cells = track, half, len(records), reached_share, f"{share:.4f}"
    runs = statistics.median(r["runs"] for r in records)
    return f"| {' | '.join(map(str, cells))} | {runs:.0f} | {statistics.median(seconds):.2f} | {max(seconds):.1f} |\n"


def _verdict_row(name, records):
    if not records:
        return ""
    verdicts = collections.Counter(r["verdict"] for r in records)
    proved = sum(r["verdict"] == "refuted" and r["by"] != "statistics" for r in records)
    counts = verdicts["refuted"], verdicts["proved"], verdicts["not_refuted"]
    cells = (name, len(records), counts[0], proved, *counts[1:], len(records) - sum(counts))
    seconds = [r["processor"] for r in records]
    return f"| {' | '.join(map(str, cells))} | {statistics.median(seconds):.1f} | {max(seconds):.1f} |\n"


if __name__ == "__main__":
    main(sys.argv[1:] or ["search", "bank", "museum", "again", "own", "page"])
