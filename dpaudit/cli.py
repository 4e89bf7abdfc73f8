"""The command line: `dpaudit audit`, `plan`, `check`, `replay`, `report`, `claims`, `bench` and `reproduce`.

Results go to stdout; progress, notes and errors go to stderr, an error as one message without a traceback (`--debug`
shows it). Exit status: 0 nothing refuted, 1 a violation (or a confirmed replay), 2 usage or configuration, 3 the audit
or its subject broke, 5 inconclusive, 130 interrupted. Only click is imported until a command runs.
`dpaudit claims` runs no mechanism: it shows what papers claim, and which tests check it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dpaudit.config import Config, formats, read_config
from dpaudit.errors import DpauditError, SubjectError, UsageError
from dpaudit.version import __version__

if TYPE_CHECKING:
    from rich.console import Console

    from dpaudit.privacy.claims import Claim
    from dpaudit.privacy.pairs import Pair
    from dpaudit.results import AuditResult, Finding, Verdict
    from dpaudit.subjects.callables import Subject

DEBUG = "dpaudit.debug"  # key of click's context
DEFAULT_OUT = "dpaudit-out"
AUDIT_FORMATS = ("json", "html", "md")  # where --out is given without --report
REPORT_FORMATS = ("html", "md")
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
PAIRS_SHOWN = 10
BROKEN_SHOWN = 3  # messages of pairs that broke

Command = TypeVar("Command", bound=Callable[..., Any])


class Commands(click.Group):
    """The group: turns what a command raises into one message and an exit status."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # a name that the terminal's encoding lacks is shown as an escape
                stream.reconfigure(errors="backslashreplace")
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(INTERRUPTED)
        except (Exception, SystemExit) as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # the reader of a pipe left: click ends quietly
            ctx.exit(_report_error(ctx, error))


def _with_debug(command: Command) -> Command:
    def remember(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        ctx.meta[DEBUG] = value

    text = "Show the traceback of an error."
    return click.option("--debug", is_flag=True, is_eager=True, expose_value=False, callback=remember, help=text)(
        command
    )


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpaudit")
def main() -> None:
    """The test suite for differential privacy.

    Runs a mechanism, tries to break the promise that it makes for each pair of inputs, and says what was found with
    an error rate that holds.
    """


@main.command("audit")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option("--claim", help="The promise: eps=1; eps=1,delta=1e-6; rho=0.5; mu=1; order=2,rdp=0.3; metric=FILE.")
@click.option("--pairs", help="Pairs of inputs: x,x' as JSON, several with ';'; a JSON file; or module:function.")
@click.option("--samples", type=int, help="About this many runs on each input of a pair, at most.  [default: 100000]")
@click.option(
    "--mode",
    type=click.Choice(["sequential", "fixed"]),
    help="Stop as soon as the evidence is there, or use all draws for the tightest bound.  [default: sequential]",
)
@click.option("--confidence", type=float, help="Of all verdicts and bounds of one audit.  [default: 0.95]")
@click.option("--seed", type=int, help="Non-negative; one is drawn and printed by default.")
@click.option("--jobs", type=int, help="Worker processes; -1 takes all processors.  [default: 1]")
@click.option("--backend", help="joblib's backend for them: loky, dask or ray.  [default: loky]")
@click.option("--event-mass", type=float, help="Mass of the event for which the power is stated.  [default: 0.1]")
@click.option(
    "--inconclusive-factor",
    type=float,
    help="A pair is inconclusive if only losses above this many budgets would have been found.  [default: 2]",
)
@click.option(
    "--floating-point/--no-floating-point",
    default=None,
    help="Ask too what the low bits of the outputs give away: a finding apart.  [default: --floating-point]",
)
@click.option("--out", help=f"Folder for the reports.  [default: {DEFAULT_OUT}, if --report is given]")
@click.option("--report", help=f"Formats to write.  [default: {','.join(AUDIT_FORMATS)}, if --out is given]")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no notes on stderr.")
@_with_debug
@click.pass_context
def audit_command(
    ctx: click.Context,
    /,
    targets: tuple[str, ...],
    claim: str | None,
    pairs: str | None,
    out: str | None,
    report: str | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Audit mechanisms against the promise they make for each pair of inputs.

    TARGET is package.module:attribute or path/file.py:attribute. The claim and the pairs are the mechanism's own,
    unless they are given here. Defaults of options can be set in [tool.dpaudit] of pyproject.toml.
    """
    from dpaudit.privacy.parsing import parse_claim
    from dpaudit.results import EXIT_STATUS, VERDICTS
    from dpaudit.subjects.targets import is_python_pairs, resolve_pairs, resolve_target

    config = read_config()
    chosen, folder = _outputs(config, report, out, None)
    promise = parse_claim(claim) if claim is not None else None
    listed = resolve_pairs(pairs) if pairs is not None else None
    subjects = [resolve_target(target) for target in targets]
    for subject in subjects:
        _check_complete(subject, promise, listed)
    results: list[AuditResult] = []
    verdicts: list[Verdict] = []
    console = _console()
    replay_options = f" --pairs {shlex.quote(pairs)}" if pairs is not None and is_python_pairs(pairs) else ""
    for subject, place in zip(subjects, _places(folder, [subject.name for subject in subjects]), strict=True):
        try:
            result = _run(subject, promise, listed, config, options, quiet)
        except UsageError:
            raise
        except (Exception, SystemExit) as error:  # this subject broke; the others are audited all the same
            _report_error(ctx, error, subject.target or subject.name)
            verdicts.append("error")
            continue
        try:
            written = _write(result, place, chosen)
        except Exception:
            _show(console, result, (), "")  # what was found is not lost with the place to write it to
            raise
        _show(console, result, written, replay_options)
        results.append(result)
        verdicts.append(result.verdict)
    if len(subjects) > 1 and results:
        from dpaudit.reports.terminal import summary_table

        console.print(summary_table(results))
    ctx.exit(EXIT_STATUS[min(verdicts, key=VERDICTS.index)])


@main.command("plan")
@click.argument("target", metavar="TARGET")
@click.option("--claim", help="The promise, as for `dpaudit audit`.")
@click.option("--pairs", help="Pairs of inputs, as for `dpaudit audit`.")
@click.option("--samples", type=int, help="Of the audit that is planned.  [default: 100000]")
@click.option("--mode", type=click.Choice(["sequential", "fixed"]), help="Of that audit.  [default: sequential]")
@click.option("--confidence", type=float, help="Of that audit.  [default: 0.95]")
@click.option("--over", default="10%", show_default=True, help="The excess over the claim that is to be found.")
@click.option("--power", default="90%", show_default=True, help="The probability with which it is to be found.")
@click.option(
    "--event-mass",
    default="0.5,0.1,0.01",
    show_default=True,
    help="Masses of the event that the excess may sit in, with commas.",
)
@click.option(
    "--pilot", type=int, default=0, help="Runs on each input to estimate an event mass from.  [default: none]"
)
@click.option("--seed", type=int, help="Of the pilot; one is drawn and printed by default.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@_with_debug
@click.pass_context
def plan_command(
    ctx: click.Context,
    /,
    target: str,
    claim: str | None,
    pairs: str | None,
    over: str,
    power: str,
    event_mass: str,
    pilot: int,
    form: str,
    **options: Any,
) -> None:
    """Say what an audit would cost and could find, before it runs.

    For several masses of the event that an excess may sit in: the smallest loss that the audit finds, and how many
    samples the excess needs. TARGET is run only to see how long a run takes. Exit status 0.
    """
    from dpaudit.planning import plan
    from dpaudit.privacy.parsing import parse_claim
    from dpaudit.reports.plan import plan_table, share, shares
    from dpaudit.subjects.targets import resolve_pairs, resolve_target

    config = read_config()
    promise = parse_claim(claim) if claim is not None else None
    listed = resolve_pairs(pairs) if pairs is not None else None
    subject = resolve_target(target)
    _check_complete(subject, promise, listed)
    sought: dict[str, Any] = {"over": share("over", over), "power": share("power", power)}
    known = config.audit_options(options)
    stated = {name: known[name] for name in ("samples", "mode", "confidence", "seed") if name in known}
    try:
        planned = plan(subject, promise, listed, event_masses=shares(event_mass), pilot=pilot, **sought, **stated)
    except UsageError as error:
        raise config.located(error, [name for name, value in options.items() if value is not None]) from error
    if form == "json":
        click.echo(planned.to_text(), nl=False)
    else:
        _console().print(plan_table(planned))


@main.command("check")
@click.argument("target", metavar="[TARGET]", required=False)
@click.option("--claim", help="The promise, as for `dpaudit audit`.")
@click.option("--pairs", help="Pairs of inputs, as for `dpaudit audit`.")
@click.option("--only", help="Names of checks to run, with commas.  [default: all]")
@click.option("--xfail", multiple=True, metavar="NAME=REASON", help="A known failure, with the reason; repeatable.")
@click.option("--samples", type=int, default=10_000, show_default=True, help="Of the audits among the checks.")
@click.option("--error-rate", type=float, default=0.001, show_default=True, help="Of the list of one mechanism.")
@click.option("--seed", type=int, help="Non-negative; one is drawn and printed by default.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--out", help="Folder to write check.json to.  [default: none]")
@click.option("--list", "listing", is_flag=True, help="Print the checks and stop.")
@_with_debug
@click.pass_context
def check_command(
    ctx: click.Context,
    /,
    target: str | None,
    claim: str | None,
    pairs: str | None,
    only: str | None,
    xfail: tuple[str, ...],
    form: str,
    out: str | None,
    listing: bool,
    **options: Any,
) -> None:
    """Run the conformance suite: every check that any mechanism must pass.

    TARGET is package.module:attribute or path/file.py:attribute: an instance, a function, or a class (its examples(),
    else the instance made without arguments). A check that does not apply is skipped, with the reason. Exit status as
    of `audit`: 1 if a check fails, 5 if one is inconclusive.
    """
    from dpaudit.conformance.running import check
    from dpaudit.privacy.parsing import parse_claim
    from dpaudit.reports.check import check_table
    from dpaudit.reports.check import listing as check_listing
    from dpaudit.subjects.targets import load_target, resolve_pairs

    console = _console()
    if listing:
        console.print(check_listing())
        return
    if target is None:
        raise UsageError("target must be given, got none. Name a mechanism, for example mymodule.py:release.")
    promise = parse_claim(claim) if claim is not None else None
    listed = resolve_pairs(pairs) if pairs is not None else None
    found = check(
        load_target(target),
        promise,
        listed,
        only=formats(only) if only is not None else None,
        expected_failures=_known_failures(xfail),
        target=target,
        **options,
    )
    written = Path(out) / "check.json" if out is not None else None
    if form == "json":
        click.echo(found.to_text(), nl=False)
    else:
        console.print(check_table(found))
    if written is not None:
        found.save(written)
        click.echo(f"Written: {written}", err=form == "json")
    ctx.exit(found.exit_status)


def _known_failures(texts: Sequence[str]) -> dict[str, str]:
    known = {}
    for text in texts:
        name, equals, reason = text.partition("=")
        if not equals or not name.strip() or not reason.strip():
            raise UsageError(f"xfail must be NAME=REASON, got {text!r}.")
        known[name.strip()] = reason.strip()
    return known


@main.command("replay")
@click.argument("result", metavar="RESULT")
@click.option("--pair", help="The id of the pair; the worst one by default.")
@click.option("--target", help="The mechanism; the one that the result names by default.")
@click.option("--claim", help="The promise; the one of the result by default.")
@click.option("--pairs", help="Where the pair's inputs are, if the result does not hold them: module:function.")
@click.option("--floating-point", is_flag=True, help="Run the witness on low bits, of a pair whose low bits leak.")
@click.option("--samples", type=click.IntRange(min=1), help="Runs on each input; as many as the audit by default.")
@click.option("--seed", type=click.IntRange(min=0), help="A fresh one by default.")
@_with_debug
@click.pass_context
def replay_command(
    ctx: click.Context,
    /,
    result: str,
    pair: str | None,
    target: str | None,
    claim: str | None,
    pairs: str | None,
    floating_point: bool,
    samples: int | None,
    seed: int | None,
) -> None:
    """Run the witness of one pair of a saved RESULT (audit.json) again, on fresh draws.

    The rule is fixed now, so this tests the one pair at the full confidence, without a search. Exit status 1 if the
    violation is confirmed, 0 if not.
    """
    from dpaudit.privacy.parsing import parse_claim
    from dpaudit.replaying import replay
    from dpaudit.reports.replay import replay_lines
    from dpaudit.results import load
    from dpaudit.subjects.targets import resolve_target

    saved = load(result)
    target = target or saved.subject.get("target")
    if not target:
        raise UsageError(f"target must be given with --target: {result!r} names none.")
    subject = resolve_target(target)
    before = saved.subject.get("fingerprint")
    if before and before != subject.fingerprint:
        click.echo(f"Note: the code of {target} is not what was audited (fingerprint {subject.fingerprint}).", err=True)
    console = _console()
    if floating_point:
        from dpaudit.doubles_replaying import replay_floating_point
        from dpaudit.reports import doubles

        if claim is not None:
            raise UsageError(
                f"claim must not be given with --floating-point, got {claim!r}: the budget is the saved one."
            )
        leaks = saved.floating_point.pairs if saved.floating_point is not None else ()
        pair = pair if pair is not None or not leaks else leaks[0].id
        inputs = _inputs(subject, pairs, pair) if pair is not None else None
        again = replay_floating_point(saved, subject, pair=pair, inputs=inputs, samples=samples, seed=seed)
        for sentence in doubles.replay_lines(again):
            console.print(sentence)
        ctx.exit(1 if again.confirmed else 0)
    promise = parse_claim(claim) if claim is not None else _saved_claim(saved, subject)
    pair = pair if pair is not None else saved.worst.id if saved.worst is not None else None
    inputs = _inputs(subject, pairs, pair)
    outcome = replay(saved, subject, promise, pair=pair, inputs=inputs, samples=samples, seed=seed)
    for line in replay_lines(outcome):
        console.print(line)
    ctx.exit(1 if outcome.confirmed else 0)


@main.command("report")
@click.argument("results", nargs=-1, required=True, metavar="RESULT...")
@click.option("--report", help=f"Formats to write.  [default: {','.join(REPORT_FORMATS)}]")
@click.option("--out", help=f"Folder for the reports.  [default: {DEFAULT_OUT}]")
@_with_debug
def report_command(results: tuple[str, ...], report: str | None, out: str | None) -> None:
    """Render saved RESULTs (audit.json) as reports."""
    from dpaudit.results import load

    chosen, folder = _outputs(read_config(), report, out, REPORT_FORMATS)
    loaded = [load(path) for path in results]
    names = [str(result.subject.get("name", "")) for result in loaded]
    for result, place in zip(loaded, _places(folder, names), strict=True):
        for path in _write(result, place, chosen):
            click.echo(path)


@main.command("claims")
@click.option("--paper", help="Show the claims of this paper only.")
@click.option(
    "--verdict", type=click.Choice(["verified", "refuted as printed", "not checkable"]), help="Show these only."
)
@click.option("--tests", default="tests", show_default=True, help="Folder of the tests whose marks count.")
@click.option("--out", default="reports", show_default=True, help="Folder of claims.json and claims.html.")
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit status 1 if a claim has no test.")
@_with_debug
@click.pass_context
def claims_command(ctx: click.Context, /, only_check: bool, **options: Any) -> None:
    """Show the papers' claims with their verdicts and tests.

    The ledgers come from installed packages. Exit status 0; with --check 1 if a claim of a ledger has no test, or a
    test's mark names no claim.
    """
    from dpaudit.ledgers.command import claims

    shown, written, covered = claims(only_check=only_check, **options)
    console = _console()
    console.print(shown)
    for path in written:
        click.echo(f"Written: {path}")
    ctx.exit(1 if only_check and not covered else 0)


@main.command("bench")
@click.argument("problems", nargs=-1, metavar="[PROBLEM...]")
@click.option("--list", "listing", is_flag=True, help="Print the problems and stop.")
@click.option("--quick", is_flag=True, help="A few small audits of each: a smoke test, no measurement.")
@click.option("--seeds", type=int, help="Sequential audits of each faulty problem.  [default: 20]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the whole run.")
@click.option("--only", help="Parts to measure: draws,bounds,alarms,classics,overhead,floating_point,memory or others.")
@click.option("--memory", is_flag=True, help="Measure peak memory too (minutes).")
@click.option("--jobs", type=int, default=1, show_default=True, help="Worker processes; -1 takes all processors.")
@click.option("--out", default="dpaudit-bench", show_default=True, help="Folder of bench.json and the plot.")
@click.option("--resume", is_flag=True, help="Go on from the bench.json that is there.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
@_with_debug
@click.pass_context
def bench_command(ctx: click.Context, /, problems: tuple[str, ...], listing: bool, quiet: bool, **options: Any) -> None:
    """Measure the auditor against the optimum on a set of problems, or on the PROBLEMs that are named.

    The optimum is the best fixed test that is told the best event. Exit status 0 once everything is measured, whatever
    the figures are; 3 if a problem or a measurement broke.
    """
    from dpaudit.bench.command import bench, problem_table

    console = _console()
    if listing:
        console.print(problem_table(problems), soft_wrap=True)
        return
    tell = (lambda text: None) if quiet else (lambda text: click.echo(_plain(text), err=True))
    shown, written, broke = bench(problems, tell=tell, **options)
    console.print(shown)
    for path in written:
        click.echo(f"Written: {path}")
    ctx.exit(SubjectError.exit_status if broke else 0)


@main.command("reproduce")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--out", default="reproductions", show_default=True, help="Folder of the JSON files and the plots.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of everything random.")
@click.option("--quick", is_flag=True, help="Few repetitions: a smoke test.")
@click.option("--data", default="", metavar="FILE", help="A file of your own, for an experiment that reads one.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
@_with_debug
def reproduce_command(names: tuple[str, ...], out: str, seed: int, quick: bool, data: str, quiet: bool) -> None:
    """Run published experiments again, with the printed numbers beside ours.

    Without a NAME, list what can be reproduced. Each writes NAME.json and NAME.png.
    """
    from dpaudit.reproductions.command import chosen, listing, reproduce

    console = _console()
    if not names:
        console.print(listing())
    tell = (lambda text: None) if quiet else (lambda text: click.echo(_plain(text), err=True))
    for name, reproduction in chosen(names).items():
        shown, written = reproduce(name, reproduction, seed=seed, quick=quick, out=out, tell=tell, data=data)
        console.print(shown)
        for path in written:
            click.echo(f"Written: {path}")


def _run(
    subject: Subject,
    claim: Claim | None,
    pairs: Sequence[Pair] | None,
    config: Config,
    options: dict[str, Any],
    quiet: bool,
) -> AuditResult:
    """Audit one subject, with the progress on stderr."""
    from dpaudit.auditing import audit
    from dpaudit.reports import terminal
    from dpaudit.running.streams import fresh_seed

    stated = config.audit_options(options)
    stated.setdefault("seed", fresh_seed())  # known before the run, so that an interrupted one can be repeated
    given = [name for name, value in options.items() if value is not None]
    if not quiet:
        click.echo(f"Auditing {subject.target}, seed {stated['seed']}", err=True)
    try:
        with terminal.live_progress(quiet=quiet) as on_progress:
            return audit(subject, claim, pairs, on_progress=on_progress, **stated)
    except UsageError as error:
        raise config.located(error, given) from error


def _check_complete(subject: Subject, claim: Claim | None, pairs: Sequence[Pair] | None) -> None:
    """Fail before the first draw where a claim or pairs are missing."""
    if claim is None and subject.claim is None:
        raise UsageError(f"claim must be given: {subject.target} states none. For example --claim eps=1.")
    if pairs is None and getattr(subject.mechanism, "pairs", None) is None:
        raise UsageError(f"pairs must be given: {subject.target} has none. For example --pairs '0,1'.")


def _show(console: Console, result: AuditResult, written: Sequence[Path], replay_options: str) -> None:
    """The result of one audit on stdout; what broke on stderr."""
    from rich.text import Text

    from dpaudit.reports import terminal, wording

    target = wording.clean(result.subject.get("target") or result.subject.get("name"))
    console.print(Text(f"{target}, claim {wording.clean(result.claim)}"))
    if result.findings:
        console.print(terminal.finding_table(result, PAIRS_SHOWN))
    if result.universe is not None:
        console.print(terminal.universe_text(result.universe))
    if result.not_asked:
        pairs = wording.plural(len(result.not_asked), "pair")
        console.print(Text(f"{pairs} not asked: the claim sets no limit there."))
    confidence, seconds = wording.percent_text(result.confidence), wording.number_text(float(result.seconds), 3)
    runs = wording.plural(result.samples, "run")
    console.print(Text(f"{confidence} confidence, {runs} of the mechanism, {seconds} s, seed {result.seed}"))
    saved = next((path for path in written if path.suffix == ".json"), None)
    if result.violated:
        console.print(terminal.saved_violation_text(result, saved, replay_options), soft_wrap=True)
    else:
        console.print(Text(f"{wording.headline(result)}.", terminal.STYLES[result.verdict]))
        if result.verdict != "error" and result.findings:
            console.print(Text(wording.power_sentence(result)))
        if result.verdict == "inconclusive" and result.findings:
            console.print(Text("Take more samples with --samples."))
    doubles = terminal.floating_point_text(result)
    if doubles is not None:
        console.print(doubles)
    again = terminal.floating_point_replay(result, str(saved)) if saved is not None else None
    if again is not None:
        console.print(again.append(replay_options, "bold"), soft_wrap=True)
    for path in written:
        console.print(Text(f"Written: {path}"), soft_wrap=True)
    broken = [finding for finding in result.findings if finding.verdict == "error"]
    if broken:
        click.echo(f"Error: {_plain(target)}: {_broken_text(broken)}", err=True)


def _broken_text(broken: Sequence[Finding]) -> str:
    """What went wrong, each message once."""
    messages = list(dict.fromkeys(finding.message for finding in broken))
    shown = " ".join(_plain(message) for message in messages[:BROKEN_SHOWN])
    more = len(messages) - BROKEN_SHOWN
    pairs = ", ".join(_plain(finding.id) for finding in broken[:BROKEN_SHOWN])
    pairs += f" and {len(broken) - BROKEN_SHOWN} more" if len(broken) > BROKEN_SHOWN else ""
    return f"{shown}{f' And {more} more messages.' if more > 0 else ''} (pairs: {pairs})"


def _saved_claim(saved: AuditResult, subject: Subject) -> Claim:
    """The claim of a result: the subject's own if it prints the same, else what its text says."""
    from dpaudit.privacy.parsing import parse_claim

    if subject.claim is not None and str(subject.claim) == saved.claim:
        return subject.claim
    try:
        return parse_claim(saved.claim)
    except UsageError as error:
        own = f"that of {subject.target} is {subject.claim}" if subject.claim is not None else "the subject states none"
        raise UsageError(
            f"claim must be given with --claim: {saved.claim!r} cannot be read back from the result, and {own}."
        ) from error


def _inputs(subject: Subject, pairs: str | None, pair: str | None) -> Pair | None:
    """The pair of this id among those of --pairs, or among the subject's own; None if the result has to have it."""
    from dpaudit.privacy.pairs import as_pairs
    from dpaudit.subjects.targets import resolve_pairs

    own = subject.pairs() if pairs is None else resolve_pairs(pairs)
    known = {entry.id: entry for entry in as_pairs(own)} if own is not None else {}
    if pairs is not None and pair not in known:
        raise UsageError(f"pairs must hold the pair {pair!r}, got {pairs!r} without it.")
    return known.get(pair) if pair is not None else None


def _outputs(
    config: Config, report: str | None, out: str | None, default: Sequence[str] | None
) -> tuple[tuple[str, ...], Path]:
    """The formats to write and their folder, both checked; no format where neither was asked for."""
    from dpaudit.reports import FORMATS

    stated = formats(report) if report is not None else config.report
    folder = Path(out) if out is not None else Path(os.path.relpath(config.out)) if config.out is not None else None
    if stated is None and default is None and folder is None:
        return (), Path()
    chosen = stated if stated is not None else tuple(default or AUDIT_FORMATS)
    known = ", ".join(FORMATS)
    if not chosen:
        raise UsageError(f"report must name formats among {known}, got {report!r}.")
    for name in chosen:
        if name not in FORMATS:
            raise UsageError(f"report must name formats among {known}, got {name!r}.")
    folder = folder if folder is not None else Path(DEFAULT_OUT)
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        reason = f"{'no permission' if existing.is_dir() else 'a file is in the way'} at {str(existing)!r}"
        raise UsageError(f"out must be a folder that can be written, got {str(folder)!r} ({reason}).")
    return chosen, folder


def _places(folder: Path, names: Sequence[str]) -> list[Path]:
    """The folder itself for one subject, else a folder in it for each name."""
    if len(names) == 1:
        return [folder]
    taken: dict[str, Path] = {}  # by lower case, which some file systems do not tell from upper case
    for name in names:
        slug = re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII).strip("-.")[:80] or "subject"
        count = 1
        while (unique := slug if count == 1 else f"{slug}-{count}").lower() in taken:
            count += 1
        taken[unique.lower()] = folder / unique
    return list(taken.values())


def _write(result: AuditResult, folder: Path, chosen: Sequence[str]) -> list[Path]:
    from dpaudit.reports import write_report

    return [write_report(result, folder / f"audit.{suffix}") for suffix in chosen]


def _console() -> Console:
    """Where results are printed: plain text when stdout is not a terminal, nothing once its reader has left."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:  # rich would exit with 1, which says that something was violated
            with contextlib.suppress(SystemExit):
                super().on_broken_pipe()

    return Output(markup=False, highlight=False, emoji=False)


def _report_error(ctx: click.Context, error: BaseException, where: str = "") -> int:
    """Say what went wrong, in one message on stderr; return the exit status for it."""
    if ctx.meta.get(DEBUG):
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    place = f"{where}: " if where else ""
    if isinstance(error, DpauditError):
        click.echo(_plain(f"Error: {place}{error}"), err=True)
        return error.exit_status
    from dpaudit.subjects.targets import what_raised

    click.echo(_plain(f"Error: {place}unexpected {what_raised(error)}. Use --debug for the traceback."), err=True)
    return SubjectError.exit_status


def _plain(text: str) -> str:
    """One line without control characters, whatever the subject put into its message."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in " ".join(text.split())
    )
