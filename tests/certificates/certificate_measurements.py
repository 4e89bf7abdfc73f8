"""The figures of docs/measurements/certificates.md: python tests/certificates/certificate_measurements.py

`--only traced`, `--only mechanisms` or `--only programs` makes one part anew and leaves the others as they are. Exit
status 1 where anything is wrong. Only the programs and the real runs are sampled, by their seeds; times are of the
processor.
"""

from __future__ import annotations

import argparse
import itertools
import math
import re
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import traced_programs
from brute_force import cases, wrong
from random_programs import is_endless, kinds
from test_exact_losses import CLOSED_FORMS, SOUND, TWINS

import dpaudit

PAGE = Path(__file__).resolve().parents[2] / "docs" / "measurements" / "certificates.md"
HEAD = """# Certificates

`python tests/certificates/certificate_measurements.py` makes this page. `reports/certificates` has the table of our own
discrete mechanisms on all pairs of a domain (`make certificates`).
"""
BATCH = 50  # programs of one certificate, at most
PART = 250
FIRST_SEED = 10_000_000
SECONDS = 600.0


def row(*cells: Any) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def certified(mechanism: Any, claim: str, pairs: list[Any]) -> tuple[Any, str]:
    """A certificate, and the seconds of the processor that it took."""
    start = time.process_time()
    result = dpaudit.certify(mechanism, claim, pairs, seconds=SECONDS)
    return result, f"{time.process_time() - start:.2f}"


def shown(losses: Iterable[Fraction | None]) -> str:
    return ", ".join(dict.fromkeys("inf" if loss is None else str(loss) for loss in losses))


def mechanisms(*_: int) -> tuple[list[str], bool]:
    """The sound mechanisms against their closed forms, and each faulty twin at the claim that it breaks."""
    lines = [
        "Losses are e^epsilon, as fractions; closed forms are computed without certificates (tests/certificates).",
        "",
        row("mechanism", "pairs", "decided", "e^epsilon", "equals the closed form", "runs", "seconds"),
        row(*["---"] * 7),
    ]
    is_right = True
    for mechanism, pairs, expected in CLOSED_FORMS:
        # At a claim just above the closed form: kept only if every pair's fraction is right.
        claim = f"eps={math.log(max(expected)) + 1e-9!r}"
        result, seconds = certified(mechanism, claim, pairs)
        losses = [pair.exact for pair in result.pairs]
        is_right &= losses == expected and result.verdict == "kept"
        same = "yes" if losses == expected else f"no: {shown(expected)}"
        name = mechanism.__name__.replace("_", " ")
        lines.append(row(name, len(pairs), result.verdict, shown(losses), same, f"{result.runs:,}", seconds))
        print(lines[-1], flush=True)
    columns = row("faulty twin", "claimed", "decided", "e^epsilon", "its event: probabilities", "runs", "seconds")
    lines += ["", columns, row(*["---"] * 7)]
    for twin, pairs, claim, expected in TWINS:
        result, seconds = certified(twin, claim, pairs)
        worst = result.worst
        is_right &= result.verdict == "violated"
        exact = "inf" if worst.epsilon_lower == math.inf else worst.exact or f"> {math.exp(worst.epsilon_lower):.6g}"
        if expected is not ... and expected is not None:
            is_right &= worst.exact == expected
        event = f"{short(worst.event.probability)}, {short(worst.event.other_probability)}"
        name = twin.__name__.replace("_", " ")
        claimed = f"{float(claim.removeprefix('eps=')):.4g}"
        lines.append(row(name, claimed, result.verdict, exact, event, f"{result.runs:,}", seconds))
        print(lines[-1], flush=True)
    kept = [certified(mechanism, claim, pairs)[0].verdict for mechanism, pairs, claim in SOUND]
    is_right &= set(kept) == {"kept"}
    lines += [
        "",
        f"Sound mechanisms at the claims that their twins break: {kept.count('kept')} of {len(kept)} are kept.",
    ]
    return lines, is_right


def short(number: Fraction) -> str:
    text = str(number)
    return text if len(text) <= 24 else f"about {float(number):.6g}"


def checked(first_seed: int, count: int) -> tuple[list[str], Counter[str], float]:
    """What is wrong of so many programs, what they were, and the seconds that they took."""
    start = time.process_time()
    listed = cases(first_seed)
    found: list[str] = []
    seen: Counter[str] = Counter()
    while seen["programs"] < count:
        batch = list(itertools.islice(listed, min(BATCH, count - seen["programs"])))
        found += wrong(batch)
        for case in batch:
            seen.update(["programs", case.verdict, *(f"kind {kind}" for kind in kinds(case.program))])
            seen["endless"] += is_endless(case.program)
            seen["delta"] += case.delta > 0.0
            seen["infinite"] += case.expected is None
    return found, seen, time.process_time() - start


def programs(count: int, jobs: int) -> tuple[list[str], bool]:
    """Random small programs against brute force, in parts of 250; which job does a part does not matter."""
    parts = [(FIRST_SEED + 1_000_000 * k, min(PART, count - PART * k)) for k in range(-(-count // PART))]
    found: list[str] = []
    seen: Counter[str] = Counter()
    seconds = 0.0
    with ProcessPoolExecutor(jobs) as pool:
        for told, counts, took in pool.map(checked, *zip(*parts, strict=True)):
            found += told
            seen += counts
            seconds += took
            print(f"{seen['programs']:,} programs, {len(found)} wrong, {seconds:.0f} s", *told, sep="\n", flush=True)
    used = ", ".join(f"{name.removeprefix('kind ')} {n:,}" for name, n in sorted(seen.items()) if name[:5] == "kind ")
    lines = [
        f"Seeds from {FIRST_SEED:,} on; programs that are too large for a brute force over all events are passed over.",
        "",
        row("programs", "wrong", "kept", "violated", "of infinite loss", "with a delta", "without an end"),
        row(*["---"] * 7),
        row(*(f"{n:,}" for n in (
            seen["programs"], len(found), seen["kept"], seen["violated"], seen["infinite"], seen["delta"],
            seen["endless"],
        ))),
        "",
        textwrap.fill(f"Programs with a kind of draw or loop: {used}. All took {seconds:.0f} s of the processor.", 120),
        *(["", *found[:20]] if found else []),
    ]  # fmt: skip
    return lines, not found


def traced(count: int, jobs: int) -> tuple[list[str], bool]:
    """Random traced programs against a thousand real runs each."""
    parts = [(FIRST_SEED + PART * k, min(PART, count - PART * k)) for k in range(-(-count // PART))]
    wrong: list[str] = []
    seen: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    with ProcessPoolExecutor(jobs) as pool:
        for told, kinds_of, why in pool.map(traced_programs.checked, *zip(*parts, strict=True)):
            wrong, seen, reasons = wrong + told, seen + kinds_of, reasons + why
            print(f"{seen.total():,} programs, {len(wrong)} wrong", *told, sep="\n", flush=True)
    lines = [
        *textwrap.wrap(
            "Source texts of numpy's scalars, arrays of one, `try`, `match`, conversions and draws used twice. "
            f"Each is explored in at most {traced_programs.MAX_TRACED} runs, and compared with "
            f"{traced_programs.RUNS:,} real runs; a right law is called wrong with probability "
            f"{traced_programs.LEVEL:g}. Seeds from {FIRST_SEED:,} on.",
            120,
        ),
        "",
        row("programs", "wrong laws", "compared", "refused", "left open"),
        row(*["---"] * 5),
        row(*(f"{n:,}" for n in (seen.total(), len(wrong), seen["compared"], seen["refused"], seen["left open"]))),
        "",
        textwrap.fill("Why they were refused, most often: " + "; ".join(
            f"{reason} ({n:,})" for reason, n in reasons.most_common(5)) + ".", 120),
        *(["", *wrong[:20]] if wrong else []),
    ]  # fmt: skip
    return lines, not wrong


PARTS = {
    "traced": ("Random traced programs against real runs", traced),
    "mechanisms": ("Mechanisms and their faulty twins", mechanisms),
    "programs": ("Random small programs against brute force", programs),
}


def main() -> int:
    """Make the parts that are asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    made, is_right = {}, True
    for name, (title, make) in PARTS.items():
        if options.only in (None, name):
            lines, right = make(options.programs, options.jobs)
            is_right &= right
            made[title] = "\n".join(lines) + "\n"
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    old = dict(re.findall(r"^## (.+?)\n\n(.*?)(?=\n## |\Z)", page, flags=re.DOTALL | re.MULTILINE))
    parts = [f"\n## {title}\n\n{made.get(title) or old.get(title, '')}" for title, _ in PARTS.values()]
    PAGE.write_text(HEAD + "".join(parts), encoding="utf-8")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
