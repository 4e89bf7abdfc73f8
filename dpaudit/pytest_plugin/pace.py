"""Long audits in a session: a word at the start, where they stand, a limit of time, and what an interrupt keeps.

Lines go to the terminal past pytest's capture; workers of pytest-xdist have none and stay silent.

Validity: a few calls are timed on streams that no audit draws, and the number of samples depends on nothing else. What
an interrupt keeps is a checkpoint (`dpaudit.running.checkpoint`): the audit that goes on from it is the audit that was
interrupted, with its seed, its share of the error rate and its draws, or it begins anew.
"""

from __future__ import annotations

import contextlib
import dataclasses
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dpaudit.audits.time_limits import TooSlowError, check_time, cut_text
from dpaudit.campaign.campaign import Progress
from dpaudit.errors import DpauditError, UsageError
from dpaudit.features.outcomes import read_outputs
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.inputs import distinct_inputs
from dpaudit.privacy.pairs import Pair
from dpaudit.profiles import profile_named
from dpaudit.pytest_plugin import witnesses
from dpaudit.reports.progress import Clock, throttled
from dpaudit.reports.wording import duration_text
from dpaudit.results.model import AuditResult
from dpaudit.running.checkpoint import CheckpointPlan
from dpaudit.running.streams import PLAN_DRAWS, stream
from dpaudit.subjects.callables import Subject

TIMED_APART = 3  # entry of a stream of `PLAN_DRAWS` that no plan draws


@dataclasses.dataclass(frozen=True)
class Patience:
    """Thresholds for notes on a long audit; a rule, no measurement: people wait ten seconds without a sign of life."""

    seconds: float = 10.0  # estimated time of an audit from which its start is told and its draws are noted
    slow_call: float = 0.002  # seconds of a call from which two calls are timed, not a batch
    batch: int = 16  # calls of a batch that is timed
    between: float = 15.0  # seconds between two lines of progress
    offered: int = 60  # seconds that the word at the start offers as a limit
    most_pairs: int = 20  # pairs of an audit up to which its time is estimated: more are drawn as tables


PATIENCE = Patience()


def seconds_a_run(subject: Subject, data: Any, seed: int) -> float:
    """Seconds of one run, reading of its output included, of at most 17 calls; 0 where a call raises."""
    size = 1
    try:
        for k in range(2):  # the first call pays for imports and caches
            started = time.perf_counter()
            read_outputs(subject.sample(data, size, stream(seed, PLAN_DRAWS, TIMED_APART, 0, k)), size)
            seconds = (time.perf_counter() - started) / size
            if k == 0:
                size = 2 if seconds > PATIENCE.slow_call else PATIENCE.batch
    except (Exception, SystemExit):  # the audit says what it is
        return 0.0
    return seconds


def start_text(node_id: str, per_run: float, inputs: int, samples: int, quick: int) -> str:
    """The word at the start of a slow audit: what it may take, and what takes less.

    A run takes `per_run` seconds, each input is drawn `samples` times at most, and `quick` are those of that profile.
    """
    runs = inputs * samples
    text = f"dpaudit: {node_id}: {duration_text(per_run)} a call, up to {runs:,} calls: about "
    text += f"{duration_text(per_run * runs)} at most."
    shorter = [f"--dp-seconds {PATIENCE.offered} takes as many samples as fit"]
    if samples > quick:
        shorter.insert(0, f"--dp-profile quick takes about {duration_text(per_run * inputs * quick)}")
    return f"{text} {'; '.join(shorter)}."


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
        self.is_long = False

    def begin(self, subject: Subject, pairs: Sequence[Pair], seed: int, samples: int) -> None:
        """Say what a slow audit may take; from here on it is noted."""
        if not 0 < len(pairs) <= PATIENCE.most_pairs or subject.is_contained:
            return
        per_run, inputs = seconds_a_run(subject, pairs[0].x, seed), len(distinct_inputs(pairs)[0])
        self.is_long = per_run * inputs * samples >= PATIENCE.seconds
        if self.is_long:
            quick = profile_named("quick").samples or samples
            say(self.config, start_text(self.node_id, per_run, inputs, samples, quick))

    def run(self, audit: Callable[..., AuditResult], options: dict[str, Any]) -> AuditResult:
        """The audit; it goes on from what an interrupted session kept of it."""
        stated = any(options.get(name) is not None for name in ("checkpoint", "store", "isolation"))
        options = {**options, "on_progress": self.progress()}
        if stated or self.place is None or not (self.is_long or self.place.exists()):
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
        """The audit's `on_progress`: lines for people, and the caller's own."""
        if self.config.pluginmanager.getplugin("terminalreporter") is None:
            return self.own
        clock, width = Clock(), self.config.get_terminal_writer().fullwidth - len("dpaudit: ")
        label, write = self.node_id.rpartition("/")[2], lambda _, text: say(self.config, f"dpaudit: {text}")
        show = throttled(label, clock, width, PATIENCE.between, write)

        def tell(state: Progress) -> None:
            clock.see(state)
            show(state)
            if self.own is not None:
                self.own(state)

        return tell
