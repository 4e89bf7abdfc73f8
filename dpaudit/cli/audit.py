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

from dpaudit.arguments import EFFORTS, MODES, MONOTONE, check_options
from dpaudit.cli.group import (
    GroupedCommand,
    command,
    list_option,
    note,
    plain,
    report_error,
    report_traceback,
    say,
    tell,
)
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
from dpaudit.cli.searching import chosen_search, guessed_searches, with_search
from dpaudit.cli.subjects import check_complete, given_pairs
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

GROUPS = {
    "First": ("claim", "pairs", "search", "samples", "mode", "confidence", "seed", "out", "report", "quiet"),
    "What to audit": (
        "examples", "adjacency", "search_budget", "search_pairs", "pool", "floating_point", "grey_box", "fresh",
    ),
    "How hard": ("power", "seconds", "event_mass", "inconclusive_factor", "store"),
    "Where it runs": ("jobs", "backend", "cluster", "isolation", "checkpoint", "resume"),
    "Output": ("progress", "debug", "help"),
}  # fmt: skip
# Options that the command reads itself; all others go to `dpaudit.audit` as they are.
OF_COMMAND = {
    "targets", "claim", "pairs", "out", "report", "checkpoint", "resume", "progress", "quiet", "search", "example",
    "user", "examples", "adjacency", "search_budget", "search_pairs", "grey_box", "seconds", "fresh",
}  # fmt: skip
MAX_PAIRS = 10  # that a warning names, of those that are stated more than once
STATUSES = (1, 3, 2, 5, 0)  # of several targets the first of these is the command's
MAX_BROKEN = 3  # messages of pairs that broke


@command("audit", quiet="No progress and no notes on stderr.", cls=GroupedCommand, groups=GROUPS)
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option("--claim", help="The promise: eps=1; eps=1,delta=1e-6; rho=0.5; mu=1; order=2,rdp=0.3; metric=FILE.")
@click.option("--pairs", help="Pairs of inputs: x,x' as JSON, several with ';'; a JSON file; or module:function.")
@with_search
@click.option("--samples", type=int, help="About this many runs on each input of a pair, at most.  [default: 100000]")
@click.option(
    "--mode",
    type=click.Choice(MODES),
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
    help="Draws after a violation, for a bound that says how bad it is: half of what remains of the samples, at least "
    "2,000 if so many remain; or none.  [default: four times as many as the verdict took, within the same limits]",
)
@click.option(
    "--band/--no-band",
    default=None,
    help="Draw a confidence band for the trade-off function of the clearest pair.  [default: --no-band]",
)
@click.option(
    "--monotone",
    type=click.Choice(MONOTONE),
    help="With --band: the number that the likelihood ratio is assumed to rise or fall with, for upper limits on the "
    "loss: the mechanism's own log density ratio, or the output's number.  [default: density, where there is one]",
)
@click.option(
    "--power",
    type=click.Choice(EFFORTS),
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
def audit_command(ctx: click.Context, given: Any) -> None:
    """Audit mechanisms against the promise they make for each pair of inputs.

    TARGET is package.module:attribute, path/file.py:attribute, or exec:COMMAND for a program in any language
    (docs/exec-protocol.md). The claim and the pairs are the mechanism's own, unless they are given here. Defaults of
    options can be set in [tool.dpaudit] of pyproject.toml.
    """
    from dpaudit.privacy.parsing import as_claim
    from dpaudit.results.verdicts import EXIT_STATUS
    from dpaudit.subjects.call_limits import until
    from dpaudit.subjects.isolation import as_isolation
    from dpaudit.subjects.targets import fresh_target, names_pairs, resolve_target

    config, seconds = read_config(), given.seconds
    options = {name: value for name, value in vars(given).items() if name not in OF_COMMAND}
    stated = {name: value for name, value in options.items() if value is not None}
    check_options(**stated)
    try:
        as_isolation(config.audit_options(stated).get("isolation"))
    except UsageError as error:
        raise config.located(error, stated) from error
    chosen, folder = chosen_outputs(config, given.report, given.out, None)
    promise = as_claim(given.claim)
    with subject_output():
        sought = chosen_search(given)
        listed = given_pairs(given.pairs)
        subjects = [(fresh_target if given.fresh else resolve_target)(target) for target in given.targets]
        if listed is None and sought is None:
            searched = guessed_searches(subjects, given)
        else:
            for name in ("example", "user"):
                if (value := getattr(given, name)) is not None:
                    raise UsageError(f"{name} must be given without --pairs, --search and --examples, got {value!r}.")
            searched = [sought] * len(subjects)
        for subject, search in zip(subjects, searched, strict=True):
            check_complete(subject, promise, listed if search is None else ())
    if len(subjects) > 1 and given.progress is not None:
        raise UsageError(f"progress must be of one target, got {given.progress!r} for {len(subjects)}.")
    _warn_of_repeated(listed or ())
    if seconds is not None:
        check_options(seconds=seconds)
    started, cut = time.monotonic(), dict[int, int]()
    if seconds is not None and not any(searched):
        cut = _cut_to_time(seconds, subjects, promise, listed, config.audit_options(options))
    results: list[AuditResult] = []
    statuses: list[int] = []
    console = output_console()
    # What a replay has to be given again. Inputs in the text itself are in the result.
    texts = {"claim": given.claim} if given.claim is not None else {}
    texts |= {"pairs": given.pairs} if given.pairs is not None and names_pairs(given.pairs) else {}
    limit = {} if seconds is None else {"seconds": seconds}
    all_places = places(folder, [subject.name for subject in subjects])
    for number, (subject, place) in enumerate(zip(subjects, all_places, strict=True)):
        where, source = subject.target or subject.name, searched[number]
        checkpoint = own_checkpoint(given.checkpoint, number, len(subjects))
        run = RunInTerminal(given.quiet, checkpoint, given.resume, given.progress)
        asked: Any = listed if source is None else source
        if source is not None and seconds is not None:
            from dpaudit.audits.time_limits import Sought

            asked = Sought(source, seconds / len(subjects), subject, promise, config.audit_options(options))
        try:
            now = {**options, "samples": cut.get(number, options["samples"])}
            share = (number + 1) / len(subjects)
            with contextlib.nullcontext() if seconds is None else until(started + share * seconds):
                result = _run(subject, promise, asked, given.grey_box, config, now, run)
        except UsageError:
            raise
        except KeyboardInterrupt as interrupt:
            run.say_interrupted(ctx, interrupt, given.targets[number], given.targets[number + 1 :], place)
            ctx.exit(interrupt_status(interrupt))
        except BaseException as error:  # this subject broke; the others are audited all the same
            report_error(ctx, error, where)
            statuses.append(SubjectError.exit_status)
            continue
        result = dataclasses.replace(result, options={**result.options, **texts, **limit})
        write = functools.partial(write_reports, result, place, chosen)
        written, status = written_or_reported(ctx, write, EXIT_STATUS[result.verdict], where)
        try:
            _show(console, result, written)
        except Exception as error:  # what was found is known, and written
            report_error(ctx, error, where)
        _warn_of_earlier(place, written)
        results.append(result)
        statuses.append(status)
    if len(subjects) > 1 and results:
        from dpaudit.reports import brief, terminal

        if chosen:
            _warn_of_earlier(folder, all_places)  # of one subject, where there are folders now
        console.print(terminal.show([brief.summary(results)]))
    ctx.exit(min(statuses, key=STATUSES.index))


def _cut_to_time(
    seconds: float,
    subjects: Sequence[Subject],
    claim: Claim | None,
    pairs: Sequence[Pair] | None,
    options: dict[str, Any],
) -> dict[int, int]:
    """The samples that fit into each subject's share of the time, by its position, where not all of them do.

    Validity: the number is a function of a few timed calls, on streams that no audit draws.

    `TooSlowError` if a subject is too slow for any audit in its time; its plan is printed.
    """
    from dpaudit.audits.time_limits import TooSlowError, check_time, cut_text
    from dpaudit.reports import terminal
    from dpaudit.reports.plan import plan_blocks

    cut: dict[int, int] = {}
    for number, subject in enumerate(subjects):
        try:
            with subject_output():
                check_time(seconds / len(subjects), subject, claim, pairs, **options)
        except TooSlowError as error:
            if not error.fits:
                output_console().print(terminal.show(plan_blocks(error.plan)))
                raise
            cut[number] = error.plan.samples
            tell(f"{subject.target}: {cut_text(error.plan)}")
    return cut


def own_checkpoint(path: str | None, number: int, targets: int) -> str | None:
    """The checkpoint of one of several targets: of the first `session.checkpoint` is `session-1.checkpoint`."""
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
    note(f"Auditing {subject.target}, seed {stated['seed']}")
    try:
        with subject_output(), run.progress() as on_progress:
            more: dict[str, Any] = {"on_progress": on_progress}
            if stated.get("store"):
                run.keeps = (
                    f"Finished rounds are kept in {plain(str(stated['store']))}: the next audit goes on from them."
                )
            if run.checkpoint is not None or not run.keeps:
                more["checkpoint"] = plan
            # Sessions would shrink each anew, and an isolated subject has to stay where it is.
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
        shown = "; ".join(" = ".join(plain(pair.id) for pair in same[:MAX_PAIRS]) for same in repeated[:MAX_PAIRS])
        more = f"; and {plural(len(repeated) - MAX_PAIRS, 'more pair')}" if len(repeated) > MAX_PAIRS else ""
        text = "A pair is tested in both directions: these are the same, and each takes a share of the error rate"
        note(f"Warning: {text}: {shown}{more}. State each once.")


def _warn_of_earlier(folder: Path, written: Sequence[Path]) -> None:
    """Say on stderr which reports beside those that were written are of an earlier audit."""
    from dpaudit.reports import other_reports

    earlier = other_reports(folder, written) if written else []
    if earlier:
        names = ", ".join(plain(str(path)) for path in earlier)
        note(f"Warning: of an earlier audit, not of this one: {names}")


def _broken_text(broken: Sequence[Finding]) -> str:
    """Errors of the broken pairs, each message once."""
    from dpaudit.reports.wording import plural, some

    messages = [*dict.fromkeys(plain(finding.message) for finding in broken)]
    more = len(messages) - MAX_BROKEN
    shown = [*messages[:MAX_BROKEN], *([f"And {plural(more, 'more message')}."] if more > 0 else [])]
    return f"{' '.join(shown)} (pairs: {some([plain(finding.id) for finding in broken], MAX_BROKEN)})"
