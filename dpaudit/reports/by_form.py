"""What an audit would have found, by the form in which a leak shows: rows for tables in every format.

The pair is the one that was tested least well, as in `wording.power_sentence`. The first row is the best case, of a
test that knows which outputs give the input away; the others are of an audit that has to find them.
"""

from __future__ import annotations

import math

from rich import box
from rich.table import Table
from rich.text import Text

from dpaudit.reports import wording
from dpaudit.results.model import AuditResult, Power

BEST = "known beforehand (best case)"
COLUMNS = ("where the leak shows", "loss found (nats)", "times what is allowed")
NOTHING = "none"


def rows_of(power: Power) -> tuple[tuple[str, str, str], ...]:
    """Form, loss in nats and ratio to what the claim allows, as texts; the best case first.

    Examples
    --------
    >>> from dpaudit.results.model import LearnedLoss
    >>> rows_of(Power(0.1, 0.9, 1.25, 1.0, (LearnedLoss("one threshold", 1.5),)))
    (('known beforehand (best case)', '1.25', '1.25'), ('one threshold', '1.5', '1.5'))
    """
    figures = [(BEST, power.detectable), *((one.form, one.loss) for one in power.learned)]
    return tuple((form, *_texts(loss, power.at_budget)) for form, loss in figures)


def rows(result: AuditResult) -> tuple[tuple[str, str, str], ...]:
    """The rows of the pair that was tested least well; none where nothing is known of learned events."""
    if result.verdict not in ("not_refuted", "inconclusive"):
        return ()
    weakest = wording.least_powerful(result)
    if weakest is None or weakest.power is None or not weakest.power.learned:
        return ()
    return rows_of(weakest.power)


def table(result: AuditResult) -> Table | None:
    """The rows as a table of a terminal; None where there are none."""
    lines = rows(result)
    if not lines:
        return None
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False)
    for place, name in enumerate(COLUMNS):
        shown.add_column(name, justify="right" if place else "left")
    for line in lines:
        shown.add_row(*map(Text, line))
    return shown


def _texts(loss: float, allowed: float) -> tuple[str, str]:
    if math.isinf(loss):
        return NOTHING, wording.MISSING
    ratio = wording.number_text(loss / allowed, 3) if allowed > 0.0 else wording.MISSING
    return wording.number_text(loss, 3), ratio
