"""`make certificates`: our own discrete mechanisms, proved for all pairs of a small domain.

Each row of the table is one `dpaudit.certify` call on every pair of a domain, against the claim that the mechanism
states itself. The faulty mechanisms below it are disproved. --all saves a certificate for each row.
Exit status 0 where every row has the verdict that is expected of it, else 1.
"""

import argparse
import dataclasses
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dpaudit
from dpaudit.privacy.claims import Claim
from dpaudit.symbolic.certificate import Certificate
from dpaudit_mechanisms.constrained.finite import FiniteLaw
from dpaudit_mechanisms.dx_exponential import DxExponential
from dpaudit_mechanisms.exponential import Exponential
from dpaudit_mechanisms.faulty.exponential import ExponentialWithoutTheTwo
from dpaudit_mechanisms.faulty.geometric import GeometricCountsZeroTwice, GeometricTooLittleNoise
from dpaudit_mechanisms.faulty.randomised_response import RandomisedResponseWrongNormaliser
from dpaudit_mechanisms.geometric import Geometric
from dpaudit_mechanisms.histograms import all_histograms
from dpaudit_mechanisms.randomised_response import RandomisedResponse
from dpaudit_mechanisms.two_metrics.finite import Ladder, Staircase
from dpaudit_mechanisms.two_metrics.spaces import FiniteSpaces

SECONDS = 300.0
SCORES = [[0.0, 1.0, 2.0, 1.0], [1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 1.0, 2.0], [0.0, 2.0, 1.0, 1.0]]
PATH = np.abs(np.subtract.outer(range(5), range(5))).astype(float)
SPACES = FiniteSpaces(PATH, range(5), PATH)


@dataclasses.dataclass(frozen=True)
class Row:
    """A mechanism, the inputs whose pairs are proved, and its claim where it states none for all of them."""

    name: str
    mechanism: Any
    inputs: Sequence[Any]
    claim: Claim | None = None
    is_asked: Callable[[Any, Any], bool] = lambda x, y: True


def per_unit(epsilon: float) -> Claim:
    """d_X-privacy with epsilon times the difference of two integers."""
    return dpaudit.MetricDP(lambda x, y: epsilon * abs(x - y))


def adjacent(x: int, y: int) -> bool:
    """Tell whether two integers are neighbours."""
    return abs(x - y) == 1


def rows() -> list[Row]:
    """The sound mechanisms."""
    histograms = [tuple(int(count) for count in row) for row in all_histograms(3, 2)]
    return [
        Row("randomised response, 2 answers", RandomisedResponse(1.0), range(2)),
        Row("randomised response, 10 answers", RandomisedResponse(1.0, 10), range(10)),
        Row("geometric", Geometric(1.0), range(10), per_unit(1.0)),
        Row("geometric, adjacent", Geometric(1.0), range(10), None, adjacent),
        Row("geometric, clamped to 0..9", Geometric(1.0, bounds=(0, 9)), range(10), per_unit(1.0)),
        Row("geometric, sensitivity 3", Geometric(1.0, 3), range(10), is_asked=lambda x, y: abs(x - y) <= 3),
        Row("exponential", Exponential(SCORES, metric=1.0), range(4)),
        Row("exponential on histograms", DxExponential(lambda x: x, metric=1.0 - np.eye(3), records=2), histograms),
        Row("staircase, adjacent", Staircase(SPACES, epsilon=1.0), range(5), None, adjacent),
        Row("ladder, adjacent", Ladder(SPACES, epsilon=1.0), range(5), None, adjacent),
        Row("finite law", FiniteLaw([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]]), range(3)),
    ]


def faulty_rows() -> list[Row]:
    """Mechanisms with a planted fault."""
    poor = [[1.0, *[0.0] * 20], [0.0, *[1.0] * 20]]
    return [
        Row("geometric, too little noise", GeometricTooLittleNoise(1.0), range(10), per_unit(1.0)),
        Row("geometric, counts zero twice", GeometricCountsZeroTwice(1.0), range(4), per_unit(1.0)),
        Row("randomised response, normaliser", RandomisedResponseWrongNormaliser(1.0, 5), range(5)),
        Row("exponential without the two", ExponentialWithoutTheTwo(poor, metric=1.0), range(2)),
    ]


def certified(row: Row) -> Certificate:
    """The certificate of a row, for all pairs that its claim is asked of."""
    pairs = [pair for pair in dpaudit.all_pairs(list(row.inputs)) if row.is_asked(pair.x, pair.x_prime)]
    return dpaudit.certify(row.mechanism, row.claim, pairs, seconds=SECONDS)


def line(name: str, result: Certificate) -> str:
    """A row of the table."""
    asked = [pair for pair in result.pairs if pair.claimed < float("inf")]
    pair = max(asked, key=lambda one: one.epsilon_upper)
    loss = f"[{pair.epsilon_lower!r}, {pair.epsilon_upper!r}]"
    cells = [name, result.verdict, f"{len(asked)}", pair.id, f"{pair.claimed:g}", loss, f"{result.mass_left:g}"]
    return "| " + " | ".join([*(cell.replace("|", "\\|") for cell in cells), f"{result.runs:,}"]) + " |"


def main() -> int:
    """Certify every row and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("reports/certificates"))
    parser.add_argument("--all", action="store_true", help="save the certificates too, half a megabyte")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    head = "| mechanism | verdict | pairs | pair of the largest loss | claimed | its loss is in | mass left | runs |"
    lines = [
        "# Certificates of our own discrete mechanisms",
        "",
        "Proved by running each mechanism through all outcomes of its draws (`make certificates`), for every pair of",
        "the domain, up to a rounding of 1e-12 nats. Losses in nats, between two doubles that are rounded outwards.",
    ]
    is_as_expected = True
    for title, listed, expected in (("Sound", rows(), "kept"), ("Faulty on purpose", faulty_rows(), "violated")):
        lines += ["", f"## {title}", "", head, "| --- " * 8 + "|"]
        for row in listed:
            result = certified(row)
            is_as_expected &= result.verdict == expected
            if options.all:
                result.save(options.out / f"{re.sub('[^a-z0-9]+', '-', row.name)}.json")
            lines.append(line(row.name, result))
            print(lines[-1], flush=True)
    (options.out / "certificates.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0 if is_as_expected else 1


if __name__ == "__main__":
    sys.exit(main())
