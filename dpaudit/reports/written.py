"""Date of a report. Its results carry no date, as the same seed gives the same result, bit for bit."""

from __future__ import annotations

import datetime
import os

from dpaudit.errors import UsageError

VARIABLE = "SOURCE_DATE_EPOCH"  # seconds since 1970 in UTC: reproducible-builds.org/specs/source-date-epoch
UNDATED = (
    "Results carry no date of their own, since the same seed gives the same result. A report that the command of the "
    "audit writes has the date of its end; one that is made later has its own."
)


def date_text() -> str:
    """The date of a report that is written now, such as "2026-11-24 20:15 UTC": that of SOURCE_DATE_EPOCH if it is set.

    `UsageError` if SOURCE_DATE_EPOCH is no whole number of seconds of a year up to 9999.
    """
    return _date().strftime("%Y-%m-%d %H:%M UTC")


def iso_text() -> str:
    """The same date in ISO 8601, such as "2026-11-24T20:15:00+00:00"; errors as of `date_text`."""
    return _date().isoformat(timespec="seconds")


def _date() -> datetime.datetime:
    stated = os.environ.get(VARIABLE, "")
    now = datetime.datetime.now(datetime.UTC)
    try:
        return datetime.datetime.fromtimestamp(int(stated), datetime.UTC) if stated else now
    except (OverflowError, OSError, ValueError) as error:
        raise UsageError(
            f"{VARIABLE} must be a whole number of seconds since 1970, in the years to 9999, got {stated!r}."
        ) from error
