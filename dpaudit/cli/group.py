"""The group of commands: one message and an exit status for whatever a command raises."""

from __future__ import annotations

import contextlib
import errno
import shutil
import sys
import textwrap
import traceback
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TextIO, TypeVar

import click

from dpaudit.cli.ending import why_lost
from dpaudit.cli.terminating import heard_terminations, interrupt_status
from dpaudit.environment import __version__
from dpaudit.errors import DpauditError, OutputError, SubjectError, UsageError
from dpaudit.reports.words import printable

BROKEN_PIPE = 141  # as a shell has it: 128 and the number of the signal
DEBUG = "dpaudit.debug"  # a key of click's context
UNPRINTED = "dpaudit.unprinted"  # another: of what was printed nothing arrived, and that was said
QUIET = "No notes on stderr, and no word of what was written."
WHOLE = ("  ", "Written: ")  # how lines begin that are copied or opened

REST = "Other options"  # the title of those in no group

Command = TypeVar("Command", bound=Callable[..., Any])


class StatedOnce(click.Command):
    """A command that refuses an option given twice, of which click would take the last and drop the others."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, once no option is repeated that has room for one value."""
        if not ctx.resilient_parsing:
            _, _, given = self.make_parser(ctx).parse_args(list(args))
            for option, count in Counter(one for one in given if isinstance(one, click.Option)).items():
                is_same = option.is_flag and not option.secondary_opts  # a flag that is there twice says nothing else
                if count > 1 and not (option.multiple or option.count or is_same):
                    name = "/".join((*option.opts, *option.secondary_opts))
                    raise UsageError(f"{name} must be given once, got it {count} times.")
        with _help_is_printed(ctx):
            return super().parse_args(ctx, args)


class GroupedCommand(StatedOnce):
    """A command whose help lists its options in groups.

    `groups` has the titles in their order, with the long names of options, `_` for `-`; the others stand at the end.
    """

    def __init__(self, *arguments: Any, groups: Mapping[str, Sequence[str]], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each group with the options that it has."""
        left = {
            max(parameter.opts, key=len).lstrip("-").replace("-", "_"): record
            for parameter in self.get_params(ctx)
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)) is not None
        }
        for title, names in self.groups.items():
            records = [left.pop(name) for name in names if name in left]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
        if left:
            with formatter.section(REST):
                formatter.write_dl(list(left.values()))


class Subcommands(StatedOnce, click.Group):
    """A command with commands of its own."""

    command_class = StatedOnce


class Commands(Subcommands):
    """The group: turns what a command raises into one message and an exit status."""

    group_class = Subcommands

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # a name that the terminal's encoding lacks is shown as an escape
                stream.reconfigure(errors="backslashreplace")
        try:
            with heard_terminations():
                super().invoke(ctx)
        except click.exceptions.Exit:  # the command knows its status, whether or not anybody could read it
            if UNPRINTED not in ctx.meta and (error := why_lost()) is not None and not _has_left(error):
                say(plain(f"Error: standard output could not be written ({error}). The exit status stands."))
            raise
        except click.ClickException as error:
            if error.exit_code == 1:  # that is the status of a violation
                vars(error)["exit_code"] = UsageError.exit_status
            raise
        except (KeyboardInterrupt, click.Abort) as interrupt:
            if isinstance(interrupt.__context__, EOFError):  # click aborts where a question gets no answer
                ctx.exit(report_error(ctx, UsageError("standard input must answer every question, got its end.")))
            known = [plain(text) for text in getattr(interrupt, "__notes__", ())]  # by whoever was at work
            say("\n".join([f"Interrupted.{where_it_hung(interrupt)}", *known]))
            ctx.exit(interrupt_status(interrupt))
        except BaseException as error:  # nothing but a verdict may end with the status of a violation
            ctx.exit(BROKEN_PIPE if _has_left(error) else report_error(ctx, error))
        _check_printed(ctx)


@contextlib.contextmanager
def _help_is_printed(ctx: click.Context) -> Iterator[None]:
    """Fail where click prints --help or --version, and ends, and it could not be written."""
    try:
        yield
    except click.exceptions.Exit:
        _check_printed(ctx)
        raise


def _check_printed(ctx: click.Context) -> None:
    """End with an error where standard output, which is all that was asked for, could not be written."""
    if (lost := why_lost()) is not None:
        ctx.meta[UNPRINTED] = True
        text = f"standard output must be a place that can be written, got {lost}."
        ctx.exit(BROKEN_PIPE if _has_left(lost) else report_error(ctx, OutputError(text)))


def _has_left(error: BaseException) -> bool:
    """Tell whether the reader of a pipe left: a command ends quietly then."""
    return isinstance(error, OSError) and error.errno == errno.EPIPE


def command(
    name: str, of: click.Group | None = None, quiet: str = QUIET, **attributes: Any
) -> Callable[[Callable[[click.Context, Any], None]], click.Command]:
    """Make a command, with --quiet and --debug, of a function of the context and of what was given, by names."""

    def remember(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        ctx.meta[DEBUG] = value

    def made(function: Callable[[click.Context, Any], None]) -> click.Command:
        @click.option("--quiet", "-q", is_flag=True, help=quiet)
        @click.option(
            "--debug", is_flag=True, is_eager=True, expose_value=False, callback=remember,
            help="Show the traceback of an error.",
        )  # fmt: skip
        @click.pass_context
        def run(ctx: click.Context, /, **given: Any) -> None:
            from dpaudit.results.saving import NEW_FOLDERS

            NEW_FOLDERS.clear()
            try:
                function(ctx, types.SimpleNamespace(**given))
            finally:
                for folder in NEW_FOLDERS[:1]:  # the one that was asked for: its name may be misspelt
                    note(f"Note: the folder {plain(str(folder))} was not there, and was made.")

        run.__doc__ = function.__doc__
        vars(run)["__click_params__"] += vars(function).get("__click_params__", [])
        return (main if of is None else of).command(name, **attributes)(run)

    return made


def note(text: str, err: bool = True) -> None:
    """Say what is neither result nor error, on stderr or, with err=False, on stdout; nothing with --quiet."""
    ctx = click.get_current_context(silent=True)
    if ctx is None or not ctx.params.get("quiet"):
        say(text, err)


def tell(text: str) -> None:
    """Say where a command stands; nothing with --quiet."""
    note(plain(text))


def say(text: str, err: bool = True) -> None:
    """One message: in lines that fit a terminal, on one line for a file or a program that reads it.

    Lines to be copied stay whole: those that begin with two spaces, and where something was written.
    """
    click.echo(fitted(text, sys.stderr if err else sys.stdout), err=err)


def fitted(text: str, stream: TextIO | None) -> str:
    """The message as a stream shows it: a line that is too long in several, the later ones indented, words whole."""
    if stream is None or not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    fold = textwrap.TextWrapper(width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(line if line.startswith(WHOLE) else fold.fill(line) for line in text.split("\n"))


SHARED = {  # options of several commands
    "claim": click.option("--claim", help="The promise, as for `dpaudit audit`."),
    "pairs": click.option("--pairs", help="Pairs of inputs, as for `dpaudit audit`."),
    "seed": click.option("--seed", type=int, help="Non-negative; one is drawn and printed by default."),
    "table": click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True),
}


def shared(*names: str) -> Callable[[Command], Command]:
    """Give a command these of the options that several have."""

    def given(function: Command) -> Command:
        for name in reversed(names):
            function = SHARED[name](function)
        return function

    return given


def list_option(*names: str, **options: Any) -> Callable[[Command], Command]:
    """An option whose value is a list with commas; given several times, its lists are put together."""

    def joined(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> str | None:
        return ",".join(values) if values else None

    return click.option(*names, multiple=True, callback=joined, **options)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpaudit")
def main() -> None:
    """The test suite for differential privacy.

    Runs a mechanism, tries to break the promise that it makes for each pair of inputs, and says what was found with
    an error rate that holds.
    """


def report_error(ctx: click.Context, error: BaseException, where: str = "") -> int:
    """Say what went wrong, in one message on stderr; return the exit status for it."""
    if ctx.meta.get(DEBUG):
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    place = f"{where}: " if where else ""
    if isinstance(error, DpauditError):
        say(plain(f"Error: {place}{error}"))
        return error.exit_status
    from dpaudit.subjects.targets import what_raised

    say(plain(f"Error: {place}unexpected {what_raised(error)}. Use --debug for the traceback."))
    return SubjectError.exit_status


def where_it_hung(interrupt: BaseException) -> str:
    """Say on a line of its own in which call of the user's code a command was interrupted; nothing elsewhere."""
    from dpaudit.subjects.tracebacks import is_users

    places = [frame for frame in traceback.extract_tb(interrupt.__traceback__) if is_users(frame.filename)]
    if not places:
        return ""
    place = plain(f"line {places[-1].lineno} of {places[-1].filename}")
    return f"\nIt was in a call, at {place}. `dpaudit audit --isolation seconds=10` stops calls that hang."


def report_traceback(ctx: click.Context, traceback: str) -> None:
    """Show the traceback of what a mechanism raised on stderr, with --debug, without control characters."""
    if traceback and ctx.meta.get(DEBUG):
        for line in traceback.splitlines():
            indent = len(line) - len(line.lstrip(" "))
            click.echo(" " * indent + plain(line), err=True)


def plain(text: str) -> str:
    """One line without control characters, whatever the subject put into its message."""
    return printable(" ".join(text.split()))
