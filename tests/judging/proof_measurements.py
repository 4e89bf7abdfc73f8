"""The figures of docs/measurements/proofs.md: python tests/judging/proof_measurements.py [page]

Every example of `proof_examples` is judged on its pairs, which takes half an hour, and the programs of
`continuous_programs` are checked, which takes as long. Each is saved in `reports/judge`, goes on where it was ended,
and the page is made of what is there.
"""

import json
import sys
import textwrap
import time
import warnings
from pathlib import Path

from proof_examples import EXAMPLES
from test_continuous_programs import FIRST, MANY, checked

from dpaudit import judge

ROOT = Path(__file__).resolve().parents[2]
SAVED = ROOT / "reports" / "judge" / "proofs.jsonl"
CONTINUOUS = ROOT / "reports" / "judge" / "continuous.jsonl"
PAGE = ROOT / "docs" / "measurements" / "proofs.md"
SEED, SECONDS = 1, 60.0
SAYS = {
    ("refuted", "recorded noise"): "refuted, by proof",
    ("refuted", "certificate"): "refuted, by proof",
    ("refuted", "statistics"): "refuted, by draws",
    ("proved", "certificate"): "proved",
    ("not_refuted", "recorded noise"): "kept, by a bound",
    ("not_refuted", "statistics"): "undecided: audited, not refuted",
}
INTRODUCTION = """\
# Proofs: the examples of other provers

`python tests/judging/proof_measurements.py` makes this page: seed 1, 60 s each, on one core of a machine on which
several other programs ran, so that seconds are an upper end. The examples are those of CheckDP and DiPApprox, the
sparse vectors of Lyu, Su and Li, and the subjects of StatDP and DP-Sniper, as plain Python
(`tests/judging/proof_examples.py`). Most have five numbers, and are judged on the eight patterns of neighbours of
those tools, with nothing but the function, the claim and the pairs.

*Proved* is a certificate for these pairs: every path, with its probability as a fraction or between proved bounds.
*Kept, by a bound* is an upper bound on the loss that is computed in doubles with a slack of 1e-6: the
noise is given out, so that there is no list of outcomes. A bound needs no time for each path, so that it is there where
a certificate had no time. *Undecided* is the end of proofs, and what an audit of draws says then. *Truth* is what is
known of the claim on all inputs, or on these where it is refuted; a question mark is a claim that is false for some
inputs, and of which nobody says whether these are among them.

CheckDP proves or refutes each of its own examples in at most 70 s, for all inputs, of programs in a language of its
own with noise that is compared or added; nothing here is said of other inputs than those that were run.

| example | from | claim | truth | verdict | seconds |
| --- | --- | --- | --- | --- | --- |
"""
OF_PROGRAMS = f"""
## Random programs

`tests/judging/test_continuous_programs.py`, which runs the first {MANY} of them: 1,000 programs (seeds {FIRST:,} on)
that add, compare, round, clip and log Laplace, exponential, Gumbel and normal noise, or take the largest, up to two
tests deep, against a quadrature that has nothing of the prover. Each claim is 1% below or above the loss, or the
delta, of its pair.

"""


def main(parts):
    """Judge what is not saved yet, and write the page."""
    warnings.simplefilter("ignore")
    SAVED.parent.mkdir(parents=True, exist_ok=True)
    if "page" not in parts:
        known = {record["number"] for record in _saved()}
        for number, example in enumerate(EXAMPLES):
            if number not in known:
                started = time.perf_counter()
                found = judge(example.mechanism, example.claim, pairs=example.pairs, seed=SEED, seconds=SECONDS)
                record = {"number": number, "name": example.name, "verdict": found.verdict, "by": found.by}
                record["seconds"] = round(time.perf_counter() - started, 1)
                with SAVED.open("a") as file:
                    file.write(json.dumps(record) + "\n")
        _check()
    PAGE.write_text(_page() + _programs(), encoding="utf-8")


def _saved():
    return [json.loads(line) for line in SAVED.read_text().splitlines()] if SAVED.is_file() else []


def _page():
    records = {record["number"]: record for record in _saved()}
    text, wrong = INTRODUCTION, []
    counts = dict.fromkeys(SAYS.values(), 0)
    for number, example in enumerate(EXAMPLES):
        record = records.get(number)
        said, seconds = "not measured yet", ""
        if record is not None:
            said = SAYS.get((record["verdict"], record["by"]), record["verdict"])
            counts[said] = counts.get(said, 0) + 1
            seconds = f"{record['seconds']:.0f}" if record["seconds"] >= 1 else f"{record['seconds']:.1f}"
            if (example.is_right, record["verdict"]) in ((True, "refuted"), (False, "proved")):
                wrong.append(example.name)
        truth = {True: "right", False: "wrong", None: "?"}[example.is_right]
        text += f"| {example.name} | {example.source} | {example.claim} | {truth} | {said} | {seconds} |\n"
    listed = ", ".join(f"{count} {said}" for said, count in counts.items() if count)
    said = f"{len(records)} of {len(EXAMPLES)} examples: {listed}. Wrong verdicts: {', '.join(wrong) or 'none'}."
    return f"{text}\n{textwrap.fill(said, 120)}\n"


def _checks():
    return [json.loads(line) for line in CONTINUOUS.read_text().splitlines()] if CONTINUOUS.is_file() else []


def _check():
    """Check the programs that are not saved yet; a wrong verdict ends it."""
    known = {record["seed"] for record in _checks()}
    for seed in range(FIRST, FIRST + MANY):
        if seed not in known:
            said = checked(seed)
            with CONTINUOUS.open("a") as file:
                file.write(json.dumps({"seed": seed, "said": said}) + "\n")


def _programs():
    said = [record["said"] for record in _checks()]
    if not said:
        return ""
    records, certificates = [], []
    for text in said:
        record, _, certificate = text.partition("; certificate ")
        records.append(record.removeprefix("record ").split(", "))
        certificates += [certificate] if certificate else []
    whole, none = sum("undecided" not in one for one in records), sum({*one} == {"undecided"} for one in records)
    proved, disproved = (certificates.count(verdict) for verdict in ("kept", "violated"))
    text = (
        f"Of {len(said):,} programs records decide every claim of {whole:,} ({records.count(['kept']):,} of them lose "
        f"nothing), some of {len(said) - whole - none:,} and none of {none:,}. Of {len(certificates):,} programs that "
        f"draw noise and give none out certificates prove {proved:,}, disprove {disproved:,} and leave "
        f"{len(certificates) - proved - disproved:,} open. Wrong verdicts: none; losses and probabilities are those of "
        "the quadrature to 1e-7."
    )
    return f"{OF_PROGRAMS}{textwrap.fill(text, 120)}\n"


if __name__ == "__main__":
    main(sys.argv[1:])
