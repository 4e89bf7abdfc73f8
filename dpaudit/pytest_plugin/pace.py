"""Long audits in a session: where they stand, a limit of time, and what an interrupt keeps.

Lines go to the terminal past pytest's capture; workers of pytest-xdist have none and stay silent.

Validity: the number of samples depends on a few calls that are timed, on streams that no audit draws, and on nothing
else. What an interrupt keeps is a checkpoint (`dpaudit.running.checkpoint`): the audit that goes on from it is the one
that was interrupted, with its seed, its share of the error rate and its draws, or it begins anew.
"""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dpaudit.audits.time_limits import TooSlowError, check_time, cut_text
from dpaudit.campaign.campaign import Progress
from dpaudit.errors import DpauditError, UsageError
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.pairs import Pair
from dpaudit.pytest_plugin import witnesses
from dpaudit.reports.progress import Clock, throttled
from dpaudit.results.model import AuditResult
from dpaudit.running.checkpoint import CheckpointPlan
from dpaudit.subjects.callables import Subject

SECONDS = 10.0  # between two lines of progress: people wait so long without a sign of life
FASTER = "--dp-seconds 60 takes as many samples as fit, --dp-profile quick takes fewer"


def say(config: pytest.Config, line: str) -> None:
    """Write a line to the terminal, past pytest's capture; nothing where there is no terminal, or with -qq."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    capture = config.pluginmanager.getplugin("capturemanager")
    if reporter is None or config.getoption("verbose", 0) < -1:
        return
    with contextlib.nullcontext() if capture is None else capture.global_and_fixture_disabled():
        reporter.ensure_newline()
        width = config.get_terminal_writer().fullwidth if reporter.isatty else max(len(line), 1)
        for part in textwrap.wrap(line, width, subsequent_indent="  ", break_on_hyphens=False):
            reporter.write_line(part)
        reporter.flush()


def samples_within(
    seconds: float, subject: Subject, claim: Claim, pairs: Sequence[Pair], options: dict[str, Any]
) -> tuple[int, str]:
    """The samples that fit into the time, and what an audit that is cut says of itself; (0, "") where all of them fit.

    `UsageError` if no audit fits.
    """
    try:
        check_time(seconds, subject, claim, pairs, **options)
    except TooSlowError as error:
        if not error.fits:
            raise
        return error.plan.samples, cut_text(error.plan)
    return 0, ""


class LongAudit:
    """One audit of a session as it runs, of the call of this number in its test.

    `cache` is the folder that keeps what was drawn, None for none, and `on_progress` the caller's own.
    """

    def __init__(
        self,
        config: pytest.Config,
        node_id: str,
        number: int,
        cache: Path | None,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self.config, self.node_id, self.cache, self.own = config, node_id, cache, on_progress
        self.place = None if cache is None else witnesses.cached_path(cache, node_id, number, witnesses.INTERRUPTED)

    def run(self, audit: Callable[..., AuditResult], options: dict[str, Any]) -> AuditResult:
        """The audit; it goes on from what an interrupted session kept of it."""
        stated = any(options.get(name) is not None for name in ("checkpoint", "store", "isolation"))
        options = {**options, "on_progress": self.progress()}
        if stated or self.place is None:
            return audit(**options)
        if self.place.exists():
            plan = CheckpointPlan(self.place, True, on_resume=lambda said: say(self.config, f"dpaudit: {said}"))
            try:
                return self._kept(audit, options, plan)
            except UsageError as error:
                if not str(error).startswith("checkpoint must"):
                    raise
                with contextlib.suppress(OSError):  # of another audit: this one begins anew
                    self.place.unlink()
        return self._kept(audit, options, CheckpointPlan())

    def _kept(self, audit: Callable[..., AuditResult], options: dict[str, Any], plan: CheckpointPlan) -> AuditResult:
        try:
            return audit(**options, checkpoint=plan)
        except KeyboardInterrupt:
            self._say_interrupted(plan)
            raise

    def _say_interrupted(self, plan: CheckpointPlan) -> None:
        kept = plan.checkpoint
        if kept is None or not len(kept) or self.place is None or self.cache is None:
            return
        try:
            kept.save(self.place)
            witnesses.keep_out(self.cache)
        except DpauditError as error:
            say(self.config, f"dpaudit: {self.node_id}: nothing is kept: {error}")
            return
        finally:
            kept.close()
        say(self.config, f"dpaudit: {self.node_id}: what was drawn is kept; the next run of this test goes on from it.")

    def progress(self) -> Callable[[Progress], None] | None:
        """The audit's `on_progress`: lines for people, the first with what takes less time, and the caller's own."""
        if self.config.pluginmanager.getplugin("terminalreporter") is None:
            return self.own
        clock, width = Clock(), self.config.get_terminal_writer().fullwidth - len("dpaudit: ")
        advice = [f"; {FASTER}"]

        def write(_: Progress, text: str) -> None:
            say(self.config, f"dpaudit: {text}{advice.pop() if advice else ''}")

        show = throttled(self.node_id.rpartition("/")[2], clock, width, SECONDS, write)

        def tell(state: Progress) -> None:
            clock.see(state)
            show(state)
            if self.own is not None:
                self.own(state)

        return tell
