"""The compact table of all pairs of an all-pairs table: what an audit of many pairs found, a few numbers a pair.

Pairs are rows of arrays; inputs are named by position and id. Verdicts are codes: positions in `VERDICTS`, and
`NOT_ASKED` for a pair of which the claim asks nothing. Conventions on units as in `dpaudit.results.model`.

Saved (`universe` in audit.json) as flat lists in the order of the pairs: bounds and p-values rounded towards saying
less (5 significant digits, 3 decimals), budgets to 8 digits; of violated pairs in full, so that what is violated reads
so. Verdicts are one letter a pair.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import FloatArray
from dpaudit.results.codec import Form, to_json
from dpaudit.results.verdicts import VERDICTS, Verdict, check_verdict, gravest

NOT_ASKED = -1
LETTERS: Mapping[str, int] = {
    **{verdict[0]: code for code, verdict in enumerate(VERDICTS)},  # v, e, i, n
    "-": NOT_ASKED,
}
ROUNDED = 1e-7  # of a budget: more than the rounding of what is saved


@dataclasses.dataclass(frozen=True)
class PairRow:
    """One row of the table; `ratio_lower` is inf for a violated pair of budget 0, None for another of budget 0.

    `budget` and `lower` are of the claim's own parameter.
    """

    id: str
    x_id: str
    x_prime_id: str
    budget: float
    lower: float
    epsilon_lower: float
    ratio_lower: float | None
    log10_p_value: float
    verdict: Verdict | None  # None: not asked
    detectable: float


@dataclasses.dataclass(frozen=True, eq=False)
class AllPairsTable(Form):
    """All pairs of a table.

    Attributes
    ----------
    ids : tuple of str
        Names of the inputs.
    first, second : array of int, shape (pairs,)
        Positions of x and x_prime.
    budget : array of float, shape (pairs,)
        What is promised of the claim's parameter, an epsilon in nats as a rule; inf where the claim asks nothing.
    epsilon_lower : array of float, shape (pairs,)
        Lower confidence bounds on epsilon at `delta`, simultaneous with all others of the result. Of a pair that was
        also examined in depth the larger of its two.
    log10_p_value : array of float, shape (pairs,)
        Of the one exact test of each pair on the shared draws, before the error rate is divided; at most 0.
    verdict : array of int, shape (pairs,)
        Codes; the final verdict of each pair.
    detectable : array of float, shape (pairs,)
        The loss of randomised-response type that would have been found (`results.Power`), in nats.
    delta : float
        Of every epsilon.
    labelled : int
        Labelled draws that each pair was tested on.
    draws : int
        Runs of the mechanism on each input for the table, the pilot included.
    partition : dict or None
        The cells that the rules of table findings are made of, as data.
    pair_ids : tuple of str or None
        Names of the pairs, where they are not 'x_id|x_prime_id'.
    parameter : str
        Of the claim.
    parameter_lower : array of float, shape (pairs,), or None
        Lower confidence bounds on it, simultaneous with all others. None where it is epsilon at `delta`.
    """

    ids: tuple[str, ...] = dataclasses.field(metadata={"name": "inputs"})
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    budget: FloatArray
    epsilon_lower: FloatArray
    log10_p_value: FloatArray
    verdict: NDArray[np.int8]
    detectable: FloatArray
    delta: float
    labelled: int
    draws: int
    partition: dict[str, Any] | None = None
    pair_ids: tuple[str, ...] | None = None
    parameter: str = "epsilon"
    parameter_lower: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.first)

    @property
    def lower(self) -> FloatArray:
        """Lower bounds on the claim's parameter, which stand beside `budget`: the array itself, shape (pairs,)."""
        return self.epsilon_lower if self.parameter_lower is None else self.parameter_lower

    @property
    def ratio_lower(self) -> FloatArray:
        """Lower bound over budget, shape (pairs,); at a budget of 0 inf if violated, else NaN; NaN if not asked."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.lower / self.budget
        ratio = np.where(self.budget == 0.0, np.where(self.verdict == 0, np.inf, np.nan), ratio)
        return np.where(self.verdict == NOT_ASKED, np.nan, ratio)

    def having(self, verdict: Verdict | None) -> NDArray[np.bool_]:
        """Say which pairs have this verdict, shape (pairs,); None: those of which the claim asks nothing."""
        if verdict is not None and verdict not in VERDICTS:
            raise UsageError(f"verdict must be one of {', '.join(VERDICTS)} or None, got {verdict!r}.")
        return np.asarray(self.verdict == (NOT_ASKED if verdict is None else VERDICTS.index(verdict)))

    def count(self, verdict: Verdict | None) -> int:
        """Say how many pairs have this verdict; None counts those of which the claim asks nothing."""
        return int(np.count_nonzero(self.having(verdict)))

    @property
    def asked(self) -> int:
        """Say how many pairs the claim asks something of."""
        return len(self) - self.count(None)

    @property
    def overall(self) -> Verdict:
        """The first of `VERDICTS` that any pair has; "inconclusive" if there was nothing to ask."""
        return gravest([verdict for verdict in VERDICTS if self.count(verdict)])

    def order(self) -> NDArray[np.int64]:
        """Positions of the asked pairs, the worst first: by verdict, then ratio, then p-value."""
        asked = np.flatnonzero(self.verdict != NOT_ASKED)
        ratio = np.nan_to_num(self.ratio_lower[asked], nan=-1.0, posinf=np.inf)
        return asked[np.lexsort((self.log10_p_value[asked], -ratio, self.verdict[asked]))]

    def worst(self, k: int = 10) -> tuple[PairRow, ...]:
        """The k worst pairs, the worst first."""
        return tuple(self.row(int(position)) for position in self.order()[:k])

    def row(self, position: int) -> PairRow:
        """One row."""
        ratio, code = float(self.ratio_lower[position]), int(self.verdict[position])
        return PairRow(
            id=self.pair_id(position),
            x_id=self.ids[self.first[position]],
            x_prime_id=self.ids[self.second[position]],
            budget=float(self.budget[position]),
            lower=float(self.lower[position]),
            epsilon_lower=float(self.epsilon_lower[position]),
            ratio_lower=None if math.isnan(ratio) else ratio,
            log10_p_value=float(self.log10_p_value[position]),
            verdict=None if code == NOT_ASKED else VERDICTS[code],
            detectable=float(self.detectable[position]),
        )

    def pair_id(self, position: int) -> str:
        """The name of one pair."""
        if self.pair_ids is not None:
            return self.pair_ids[position]
        return f"{self.ids[self.first[position]]}|{self.ids[self.second[position]]}"

    def finding(self, i: int | str, j: int | str) -> PairRow:
        """The row of two inputs, in either order, by position or id.

        `UsageError` if there is no such pair.
        """
        names = {name: position for position, name in enumerate(self.ids)}
        a, b = (names.get(value, -1) if isinstance(value, str) else value for value in (i, j))
        matches = ((self.first == a) & (self.second == b)) | ((self.first == b) & (self.second == a))
        if not matches.any():
            raise UsageError(f"i and j must be the two inputs of a pair of the all-pairs table, got {i!r} and {j!r}.")
        return self.row(int(np.flatnonzero(matches)[0]))

    def _to_saved(self, record: dict[str, Any]) -> dict[str, Any]:
        """Bounds and p-values rounded towards saying less, of violated pairs in full; pairs as two lists, or "all"."""
        violated, columns = self.verdict == 0, [record.pop("first"), record.pop("second")]
        complete = all(map(np.array_equal, columns, np.triu_indices(len(self.ids), 1)))
        p_values = np.minimum(np.round(np.ceil(self.log10_p_value * 1e3 - 1e-6) / 1e3, 3), 0.0) + 0.0
        budget = np.where(violated, self.budget, _significant(self.budget, 8))
        rounded: dict[str, Any] = {"budget": budget, "log10_p_value": p_values, "detectable": -_down(-self.detectable)}
        for name in ("epsilon_lower", "parameter_lower"):
            values = getattr(self, name)
            rounded[name] = None if values is None else np.where(violated, values, _down(values)) + 0.0
        letters = {code: letter for letter, code in LETTERS.items()}
        verdict = "".join(letters[code] for code in record["verdict"])
        return {**record, **to_json(rounded), "pairs": "all" if complete else columns, "verdict": verdict}

    @classmethod
    def _of_saved(cls, record: Mapping[str, Any]) -> Mapping[str, Any]:
        pairs, letters = record["pairs"], record["verdict"]
        first, second = (
            pairs if pairs != "all" else (side.tolist() for side in np.triu_indices(len(record["inputs"]), 1))
        )
        return {**record, "first": first, "second": second, "verdict": [LETTERS[letter] for letter in letters]}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> AllPairsTable:
        """The table that `to_dict` wrote.

        `UsageError` if its lists are not as long as its pairs, or a verdict is not that of its bound: "violated"
        exactly where the bound is above the budget.
        """
        table = super().from_dict(record)
        names = ("budget", "epsilon_lower", "log10_p_value", "verdict", "detectable", "pair_ids", "parameter_lower")
        for name in names:
            values = getattr(table, name)
            if values is not None and len(values) != len(table):
                raise UsageError(f"universe.{name} must have {len(table)} entries, got {len(values)}.")
        # Violated pairs are saved with all digits, the budgets of others rounded to 8.
        is_violated, lower, budget = table.verdict == 0, table.lower, table.budget
        is_right = np.where(is_violated, lower > budget, lower <= budget * (1.0 + ROUNDED))
        is_judged = (table.verdict != LETTERS["e"]) & (table.verdict != NOT_ASKED)
        for k in np.flatnonzero(~is_right & is_judged)[:1].tolist():
            bounds = float(lower[k]), float(budget[k])
            check_verdict(table.pair_id(k), VERDICTS[table.verdict[k]], table.parameter, *bounds)
        return table


def _down(values: FloatArray, digits: int = 5) -> FloatArray:
    """Rounded down to significant digits; the rounding of a rounded number is itself (up to 1e-12 of it)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** (digits - 1.0 - np.floor(np.log10(np.abs(values))))
        rounded = np.floor(values * scale * (1.0 + np.sign(values) * 1e-12)) / scale
    return np.where(np.isfinite(values) & (values != 0.0), _significant(rounded, digits + 1), values)


def _significant(values: FloatArray, digits: int) -> FloatArray:
    return np.array([float(f"{value:.{digits}g}") for value in values.tolist()])
