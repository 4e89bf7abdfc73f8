"""One audit of the command line as it runs: its progress, its checkpoint, and what is said when it is interrupted."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from dpaudit.cli.group import plain, say, where_it_hung
from dpaudit.cli.outputs import DEFAULT_OUT
from dpaudit.errors import DpauditError, UsageError

if TYPE_CHECKING:
    from dpaudit.campaign.campaign import Progress
    from dpaudit.running.checkpoint import CheckpointPlan


@dataclasses.dataclass
class RunInTerminal:
    """Options of one run, and where it stands.

    Without `checkpoint` one is kept in a temporary file, and saved beside the reports when the run is interrupted; but
    not where the evidence is kept in a store (`keeps` then says what is kept).
    """

    quiet: bool
    checkpoint: str | None
    resume: bool
    progress_file: str | None
    keeps: str = ""
    state: Progress | None = None
    _plan: CheckpointPlan | None = None

    def plan(self) -> CheckpointPlan:
        """The plan of the run's checkpoint.

        `UsageError` if `--resume` is given alone.
        """
        from dpaudit.running.checkpoint import CheckpointPlan

        if self.resume and self.checkpoint is None:
            raise UsageError("checkpoint must be given where resume is, got none. It is the file to go on from.")
        path = Path(self.checkpoint) if self.checkpoint is not None else None
        # Of a temporary checkpoint nothing was promised: its trouble is told when it is asked for.
        self._plan = CheckpointPlan(
            path,
            self.resume,
            self._note if path is not None else None,
            on_resume=None if self.quiet else self._note,
        )
        return self._plan

    @contextlib.contextmanager
    def progress(self) -> Iterator[Callable[[Progress], None]]:
        """The run's `on_progress`."""
        from dpaudit.reports.progress import live_progress

        with live_progress(quiet=self.quiet, file=self.progress_file) as shown:

            def tell(state: Progress) -> None:
                self.state = state
                if shown is not None:
                    shown(state)

            yield tell

    def say_interrupted(
        self, ctx: click.Context, interrupt: BaseException, target: str, others: Sequence[str], place: Path
    ) -> None:
        """Save what was drawn, and say in one message where the audit stood and how to go on with it."""
        from dpaudit.reports.progress import state_text

        if self.state is not None:
            lines = [f"Interrupted: {state_text(self.state)}."]
        else:
            lines = ["Interrupted." if self.quiet else f"Interrupted.{where_it_hung(interrupt)}"]
        kept = self._plan.checkpoint if self._plan is not None else None
        if self.keeps:
            lines.append(self.keeps)
        elif kept is None or not len(kept):
            if kept is not None and kept.trouble:
                lines.append(f"Nothing is saved ({plain(kept.trouble)}).")
            elif self.state is not None:
                lines.append("Nothing is saved. State a file with --checkpoint to have it saved next time.")
        else:
            try:
                path = kept.save(_free(place if str(place) != "." else Path(DEFAULT_OUT)))
                lines.append(f"What was drawn is saved in {path}. Go on with:")
                lines.append(f"  {command_line(ctx, [target], checkpoint=str(path))}")
            except DpauditError as error:
                lines.append(f"Nothing is saved: {plain(str(error))}")
        if others:
            lines.append(f"Not audited: {', '.join(plain(other) for other in others)}.")
        say("\n".join(lines))

    def _note(self, said: str) -> None:
        say(f"Note: {plain(said)}")


def command_line(ctx: click.Context, targets: Sequence[str], checkpoint: str) -> str:
    """The command of the context, of these targets, going on from a checkpoint."""
    words: list[str] = ["dpaudit", str(ctx.info_name), *targets]
    for parameter in ctx.command.params:
        name = str(parameter.name)
        if name in ("targets", "checkpoint", "resume") or not isinstance(parameter, click.Option):
            continue
        if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE or name not in ctx.params:
            continue
        value: Any = ctx.params[name]
        if parameter.is_flag:
            words.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            words += [parameter.opts[0], str(value)]
    return shlex.join([*words, "--checkpoint", checkpoint, "--resume"])


def _free(folder: Path) -> Path:
    """A place for a checkpoint in the folder that holds nothing yet."""
    names = itertools.chain(["audit"], (f"audit-{count}" for count in itertools.count(2)))
    return next(path for name in names if not (path := folder / f"{name}.checkpoint").exists())
