"""`dpaudit audit`."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpaudit.arguments import check_options
from dpaudit.cli.group import list_option, main, plain, report_error, report_traceback, say, with_debug
from dpaudit.cli.help_groups import GroupedCommand
from dpaudit.cli.interrupting import RunInTerminal
from dpaudit.cli.outputs import (
    AUDIT_FORMATS,
    DEFAULT_OUT,
    chosen_outputs,
    output_console,
    places,
    subject_output,
    write_reports,
    written_or_reported,
)
from dpaudit.cli.searching import chosen_search, guessed_search, read_example, with_search
from dpaudit.cli.subjects import check_complete
from dpaudit.cli.terminating import interrupt_status
from dpaudit.config import Config, read_config
from dpaudit.errors import SubjectError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from dpaudit.audits.searching import Search
    from dpaudit.privacy.claims import Claim
    from dpaudit.privacy.pairs import Pair
    from dpaudit.results.model import AuditResult, Finding
    from dpaudit.subjects.callables import Subject
    from dpaudit.subjects.domains import Relation

GROUPS = {
    "First": ("claim", "pairs", "search", "samples", "mode", "confidence", "seed", "out", "report", "quiet"),
    "What to audit": (
        "examples", "adjacency", "search_budget", "search_pairs", "pool", "floating_point", "grey_box", "fresh",
    ),
    "How hard": ("power", "seconds", "event_mass", "inconclusive_factor", "store"),
    "Where it runs": ("jobs", "backend", "cluster", "isolation", "checkpoint", "resume"),
    "Output": ("progress", "debug", "help"),
}  # fmt: skip
PAIRS_SHOWN = 10
STATUSES = (1, 3, 2, 5, 0)  # of several targets the first of these is the command's
BROKEN_SHOWN = 3  # messages of pairs that broke


@main.command("audit", cls=GroupedCommand, groups=GROUPS)
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option("--claim", help="The promise: eps=1; eps=1,delta=1e-6; rho=0.5; mu=1; order=2,rdp=0.3; metric=FILE.")
@click.option("--pairs", help="Pairs of inputs: x,x' as JSON, several with ';'; a JSON file; or module:function.")
@with_search
@click.option("--samples", type=int, help="About this many runs on each input of a pair, at most.  [default: 100000]")
@click.option(
    "--mode",
    type=click.Choice(["sequential", "adaptive", "fixed"]),
    help="Stop as soon as the evidence is there; draw more where it grows; or use all draws for the tightest bound.  "
    "[default: sequential; fixed for more than 20 pairs]",
)
@click.option("--confidence", type=float, help="Of all verdicts and bounds of one audit.  [default: 0.95]")
@click.option("--seed", type=int, help="Non-negative; one is drawn and printed by default.")
@click.option("--jobs", type=int, help="Worker processes; -1 takes all processors.  [default: 1]")
@click.option("--backend", help="Where they are: loky (this machine), dask or ray (a cluster).  [default: loky]")
@click.option("--cluster", help="Address of the cluster's scheduler; else a cluster of this machine.")
@click.option("--checkpoint", help="File that notes finished draws, to go on from after an interruption or a crash.")
@click.option("--resume", is_flag=True, help="Go on from the checkpoint, if it is there.")
@click.option("--progress", help="File of JSON lines that say where the audit stands.")
@click.option(
    "--seconds",
    type=float,
    help="Take as many samples as fit into this time, stop when it is over, and say what was cut.",
)
@click.option("--event-mass", type=float, help="Mass of the event for which the power is stated.  [default: 0.1]")
@click.option(
    "--inconclusive-factor",
    type=float,
    help="A pair is inconclusive if only losses above this many budgets would have been found.  [default: 2]",
)
@click.option(
    "--floating-point/--no-floating-point",
    default=None,
    help="Ask too what the low bits of the outputs give away: a finding apart. By default not after a violation of a "
    "subject whose calls take over 1 ms.",
)
@click.option(
    "--severity/--no-severity",
    default=None,
    help="Draws after a violation, for a bound that says how bad it is: half of what remains of the samples; or none. "
    " [default: four times as many as the verdict took, at least 2,000, at most that half]",
)
@click.option(
    "--band/--no-band",
    default=None,
    help="Draw a confidence band for the trade-off function of the clearest pair.  [default: --no-band]",
)
@click.option(
    "--monotone",
    type=click.Choice(["density", "value"]),
    help="With --band: the number that the likelihood ratio is assumed to rise or fall with, for upper limits on the "
    "loss: the mechanism's own log density ratio, or the output's number.  [default: density, where there is one]",
)
@click.option(
    "--power",
    type=click.Choice(["off", "quick", "full"]),
    help="Plant leaks into the outputs of an audit that refutes nothing, and look for them again: what could have been "
    "missed. quick: 10 of each form, of the size that the verdict asks for; full: a map, which takes minutes.  "
    "[default: off]",
)
@click.option(
    "--fresh",
    is_flag=True,
    help="TARGET is a factory, a class or function without arguments: call each draw on an object of its own.",
)
@click.option(
    "--pool/--no-pool",
    default=None,
    help="Ask pairs of one shift in one game, for mechanisms that say they only move their noise.  "
    "[default: where that is possible]",
)
@click.option(
    "--store",
    help="File in which evidence accumulates: go on from earlier sessions, and save this one. The confidence is then "
    "for all sessions together: 0.999 is recommended.",
)
@click.option(
    "--grey-box/--no-grey-box",
    default=None,
    help="Run both inputs on the same randomness too: a finding apart.  [default: where pairs are searched for]",
)
@click.option(
    "--isolation",
    is_flag=False,
    flag_value="on",
    metavar="LIMITS",
    help="Call the subject in worker processes: on, or limits such as seconds=1,memory=512M,output=1M,patience=60; "
    "timing=2000 examines the time of so many calls of each pair. Without it a subject that ends its process "
    "(os._exit, a crash in C) ends dpaudit with its own status, and no message.  [default: off]",
)
@click.option(
    "--out",
    help="Folder for the reports, and for what was drawn when an audit is interrupted (audit.checkpoint).  "
    f"[default: {DEFAULT_OUT}, if --report is given or an audit interrupted]",
)
@list_option("--report", help=f"Formats to write.  [default: {','.join(AUDIT_FORMATS)}, if --out is given]")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no notes on stderr.")
@with_debug
@click.pass_context
def audit_command(
    ctx: click.Context,
    /,
    targets: tuple[str, ...],
    claim: str | None,
    pairs: str | None,
    out: str | None,
    report: str | None,
    checkpoint: str | None,
    resume: bool,
    progress: str | None,
    quiet: bool,
    search: str | None,
    example: str | None,
    user: str | None,
    examples: str | None,
    adjacency: Relation | None,
    search_budget: int | None,
    search_pairs: int | None,
    grey_box: bool | None,
    seconds: float | None,
    fresh: bool,
    **options: Any,
) -> None:
    """Audit mechanisms against the promise they make for each pair of inputs.

    TARGET is package.module:attribute, path/file.py:attribute, or exec:COMMAND for a program in any language
    (docs/exec-protocol.md). The claim and the pairs are the mechanism's own, unless they are given here. Defaults of
    options can be set in [tool.dpaudit] of pyproject.toml.
    """
    from dpaudit.privacy.parsing import as_claim
    from dpaudit.results.model import EXIT_STATUS
    from dpaudit.subjects.isolation import as_isolation
    from dpaudit.subjects.targets import fresh_target, names_pairs, resolve_pairs, resolve_target

    config = read_config()
    stated = {name: value for name, value in options.items() if value is not None}
    check_options(**stated)
    try:
        as_isolation(config.audit_options(stated).get("isolation"))
    except UsageError as error:
        raise config.located(error, stated) from error
    chosen, folder = chosen_outputs(config, report, out, None)
    promise = as_claim(claim)
    with subject_output():
        sought = chosen_search(pairs, search, examples, adjacency, search_budget, search_pairs, grey_box)
        listed = resolve_pairs(pairs) if pairs is not None else None
        subjects = [(fresh_target if fresh else resolve_target)(target) for target in targets]
        guessed = _guessed(
            subjects, pairs, sought, example, user, adjacency, search_budget, search_pairs, grey_box, quiet
        )
        for subject, guess in zip(subjects, guessed, strict=True):
            check_complete(subject, promise, listed if sought is None and guess is None else [])
    if len(subjects) > 1 and progress is not None:
        raise UsageError(f"progress must be of one target, got {progress!r} for {len(subjects)}.")
    if listed is not None and not quiet:
        _warn_of_repeated(listed)
    searched = [sought or guess for guess in guessed]
    if seconds is not None:
        from dpaudit.audits.time_limits import check_seconds

        check_seconds(seconds)
    started, cut = time.monotonic(), dict[int, int]()
    if seconds is not None and not any(searched):
        cut = _cut_to_time(seconds, subjects, promise, listed, config, options, quiet)
    results: list[AuditResult] = []
    statuses: list[int] = []
    console = output_console()
    # What a replay has to be given again. Inputs in the text itself are in the result.
    texts = {"claim": claim} if claim is not None else {}
    texts |= {"pairs": pairs} if pairs is not None and names_pairs(pairs) else {}
    all_places = places(folder, [subject.name for subject in subjects])
    for number, (subject, place) in enumerate(zip(subjects, all_places, strict=True)):
        run = RunInTerminal(quiet, own_checkpoint(checkpoint, number, len(subjects)), resume, progress)
        source = searched[number]
        asked: Any = listed if source is None else source
        if source is not None and seconds is not None:
            asked = _within(seconds / len(subjects), source, subject, promise, config, options)
        try:
            now = {**options, "samples": cut.get(number, options["samples"])}
            with _until(started, seconds, (number + 1) / len(subjects)):
                result = _run(subject, promise, asked, grey_box, config, now, run)
        except UsageError:
            raise
        except KeyboardInterrupt as interrupt:
            run.say_interrupted(ctx, targets[number], targets[number + 1 :], place)
            ctx.exit(interrupt_status(interrupt))
        except BaseException as error:  # this subject broke; the others are audited all the same
            report_error(ctx, error, subject.target or subject.name)
            statuses.append(SubjectError.exit_status)
            continue
        result = dataclasses.replace(result, options={**result.options, **texts})
        where = subject.target or subject.name
        write = functools.partial(write_reports, result, place, chosen)
        written, status = written_or_reported(ctx, write, EXIT_STATUS[result.verdict], where)
        try:
            _show(console, result, written)
        except Exception as error:  # what was found is known, and written
            report_error(ctx, error, where)
        if not quiet:
            _warn_of_controls(result)
            _warn_of_earlier(place, written)
        results.append(result)
        statuses.append(status)
    if len(subjects) > 1 and results and chosen and not quiet:
        _warn_of_earlier(folder, all_places)  # of one subject, where there are folders now
    if len(subjects) > 1 and results:
        from dpaudit.reports import brief, terminal

        console.print(terminal.show([brief.summary(results)]))
    ctx.exit(min(statuses, key=STATUSES.index))


def _guessed(
    subjects: Sequence[Subject],
    pairs: str | None,
    sought: Search | None,
    example: str | None,
    user: str | None,
    adjacency: Relation | None,
    budget: int | None,
    count: int | None,
    grey_box: bool | None,
    quiet: bool,
) -> list[Search | None]:
    """For each subject a search in a guessed domain, said on stderr; None where pairs or a search are given.

    Raises
    ------
    UsageError
        If an example is given beside them, or nothing can be guessed.
    """
    if pairs is not None or sought is not None:
        for name, value in (("example", example), ("user", user)):
            if value is not None:
                raise UsageError(f"{name} must be given without --pairs, --search and --examples, got {value!r}.")
        return [None] * len(subjects)
    value = read_example(example) if example is not None else None
    found: list[Search | None] = []
    for subject in subjects:
        if value is None and getattr(subject.mechanism, "pairs", None) is not None:
            if budget is not None or count is not None:
                given = "search must be given with --search-budget or --search-pairs, got none. Or --examples."
                raise UsageError(given)
            found.append(None)
            continue
        search, text = guessed_search(subject, value, adjacency, user, budget, count, grey_box)
        found.append(search)
        if not quiet:
            say(f"{plain(subject.target or subject.name)}: {plain(text)}")
    return found


def _cut_to_time(
    seconds: float,
    subjects: Sequence[Subject],
    claim: Claim | None,
    pairs: Sequence[Pair] | None,
    config: Config,
    options: dict[str, Any],
    quiet: bool,
) -> dict[int, int]:
    """The samples that fit into each subject's share of the time, by its position, where not all of them do.

    Validity: the number is a function of a few timed calls, on streams that no audit draws.

    Raises
    ------
    TooSlowError
        If a subject is too slow for any audit in its time; its plan is printed.
    """
    from dpaudit.audits.time_limits import TooSlowError, check_time, cut_text
    from dpaudit.reports import terminal
    from dpaudit.reports.plan import plan_blocks

    cut: dict[int, int] = {}
    for number, subject in enumerate(subjects):
        try:
            with subject_output():
                check_time(seconds / len(subjects), subject, claim, pairs, **config.audit_options(options))
        except TooSlowError as error:
            if not error.fits:
                output_console().print(terminal.show(plan_blocks(error.plan)))
                raise
            cut[number] = error.plan.samples
            if not quiet:
                say(plain(f"{subject.target}: {cut_text(error.plan)}"))
    return cut


def _within(
    seconds: float, sought: Search, subject: Subject, claim: Claim | None, config: Config, options: dict[str, Any]
) -> Any:
    """The search, with the audit of what it finds within these seconds."""
    from dpaudit.audits.time_limits import Sought

    return Sought(sought, seconds, subject, claim, config.audit_options(options))


def _until(started: float, seconds: float | None, share: float) -> contextlib.AbstractContextManager[None]:
    """The limit of one target's audit: its share of the time, with that of the targets before it."""
    from dpaudit.subjects.leaving import until

    return contextlib.nullcontext() if seconds is None else until(started + share * seconds)


def own_checkpoint(path: str | None, number: int, targets: int) -> str | None:
    """The checkpoint of one of several targets: of the first `night.checkpoint` is `night-1.checkpoint`."""
    if path is None or targets == 1:
        return path
    place = Path(path)
    return str(place.with_name(f"{place.stem}-{number + 1}{place.suffix}"))


def _run(
    subject: Subject,
    claim: Claim | None,
    pairs: Sequence[Pair] | Search | None,
    grey_box: bool | None,
    config: Config,
    options: dict[str, Any],
    run: RunInTerminal,
) -> AuditResult:
    """Audit one subject, with the progress on stderr."""
    from dpaudit.audits.auditing import audit
    from dpaudit.audits.searching import Search
    from dpaudit.running.streams import fresh_seed
    from dpaudit.search.shrinking import audit_and_shrink

    stated = config.audit_options(options)
    plan = run.plan()
    if "seed" not in stated:  # known before the run, so that an interrupted one can be repeated
        resumed = plan.seed()
        stated["seed"] = fresh_seed() if resumed is None else resumed
    given = [name for name, value in options.items() if value is not None]
    if not run.quiet:
        say(f"Auditing {subject.target}, seed {stated['seed']}")
    try:
        with subject_output(), run.progress() as on_progress:
            more: dict[str, Any] = {"on_progress": on_progress}
            if stated.get("store"):
                run.keeps = (
                    f"Finished rounds are kept in {plain(str(stated['store']))}: the next audit goes on from them."
                )
            if run.checkpoint is not None or not run.keeps:
                more["checkpoint"] = plan
            # Nights would shrink each anew, and an isolated subject has to stay where it is.
            if isinstance(pairs, Search) and not (stated.get("store") or stated.get("isolation")):
                return audit_and_shrink(subject, claim, pairs, grey_box=bool(grey_box), **more, **stated)
            return audit(subject, claim, pairs, grey_box=bool(grey_box), **more, **stated)
    except UsageError as error:
        raise config.located(error, given) from error


def _show(console: Console, result: AuditResult, written: Sequence[Path]) -> None:
    """The result of one audit on stdout; what broke on stderr."""
    from rich.text import Text

    from dpaudit.reports import brief, terminal, wording

    saved = next((path for path in written if path.name == "audit.json"), None)
    target = wording.clean(result.subject.get("target") or result.subject.get("name"))
    console.print(terminal.show(brief.page(result, saved)), crop=False)
    for path in written:
        console.print(Text(f"Written: {path}"), soft_wrap=True)
    broken = [finding for finding in result.findings if finding.verdict == "error"]
    if broken:
        report_traceback(click.get_current_context(), next((one.traceback for one in broken if one.traceback), ""))
        say(f"Error: {plain(target)}: {_broken_text(broken)}")


def _warn_of_repeated(pairs: Sequence[Pair]) -> None:
    """Say once on stderr which pairs are the same: each takes a share of the error rate, and finds no more."""
    from dpaudit.privacy.inputs import repeated_pairs
    from dpaudit.reports.wording import plural

    repeated = repeated_pairs(pairs)
    if repeated:
        shown = "; ".join(" = ".join(plain(pair.id) for pair in same[:PAIRS_SHOWN]) for same in repeated[:PAIRS_SHOWN])
        more = f"; and {plural(len(repeated) - PAIRS_SHOWN, 'more pair')}" if len(repeated) > PAIRS_SHOWN else ""
        text = "A pair is tested in both directions: these are the same, and each takes a share of the error rate"
        say(f"Warning: {text}: {shown}{more}. State each once.")


def _warn_of_controls(result: AuditResult) -> None:
    """Say on stderr which pairs are of an input with itself: most likely they were not meant to be."""
    from dpaudit.reports.wording import plural
    from dpaudit.results.model import SAME_INPUT

    names = [plain(finding.id) for finding in result.findings if SAME_INPUT in finding.notes]
    if names:
        more = f" and {plural(len(names) - PAIRS_SHOWN, 'more pair')}" if len(names) > PAIRS_SHOWN else ""
        say(f"Warning: {', '.join(names[:PAIRS_SHOWN])}{more}: {SAME_INPUT}")


def _warn_of_earlier(folder: Path, written: Sequence[Path]) -> None:
    """Say on stderr which reports beside those that were written are of an earlier audit."""
    from dpaudit.reports import other_reports

    earlier = other_reports(folder, written) if written else []
    if earlier:
        names = ", ".join(plain(str(path)) for path in earlier)
        say(f"Warning: of an earlier audit, not of this one: {names}")


def _broken_text(broken: Sequence[Finding]) -> str:
    """Errors of the broken pairs, each message once."""
    messages = list(dict.fromkeys(finding.message for finding in broken))
    shown = " ".join(plain(message) for message in messages[:BROKEN_SHOWN])
    more = len(messages) - BROKEN_SHOWN
    pairs = ", ".join(plain(finding.id) for finding in broken[:BROKEN_SHOWN])
    pairs += f" and {len(broken) - BROKEN_SHOWN} more" if len(broken) > BROKEN_SHOWN else ""
    return f"{shown}{f' And {more} more messages.' if more > 0 else ''} (pairs: {pairs})"
