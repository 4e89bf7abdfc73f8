"""Texts for a test: why it fails or warns, and the line that repeats it."""

from __future__ import annotations

import os
import shlex
from typing import Any

from dpaudit.audits.replaying import Replay
from dpaudit.pytest_plugin.budget import SessionBudget
from dpaudit.pytest_plugin.options import AUDIT_OPTIONS, Settings
from dpaudit.pytest_plugin.planning import Plan
from dpaudit.pytest_plugin.witnesses import Fate, Power, Saved
from dpaudit.reports import document, rows, side_texts, wording
from dpaudit.results.model import AuditResult

MAX_BROKEN = 5  # messages of pairs that broke
LINES_SHOWN = 40  # of the traceback of what a mechanism raised, the innermost ones
REPEATED = ("confidence", "profile", "session-seed")  # options of the session that an audit depends on
INCONCLUSIVE = (
    "Inconclusive: nothing was found, and only losses far above what is allowed would have been. Take more samples "
    "(--dp-samples); pytest -v has the details, --dp-strict makes it a failure."
)
LEAKING = (
    "Low bits of the outputs break the promise, as those of continuous noise do on a computer; the verdict does not "
    "depend on them. pytest -v has the details, floating_point=False does not look."
)
CONFIRMED = "Violated: the witness that an earlier run saved breaks the promise again, on fresh draws"


def failure_text(result: AuditResult, replay_line: str) -> str:
    """Failure message for an audit, with the line that repeats it."""
    from dpaudit.reports import brief, terminal

    noted = tuple(("note", note) for note in wording.notes(result))
    notes = [terminal.plain([document.Facts(noted)])] if noted else []
    if result.violated:
        return "\n".join([terminal.plain(brief.violation(result, replay=replay_line)), *notes])
    if result.verdict == "inconclusive":
        return "\n".join([weakness_text(result), *notes, f"  replay   {replay_line}"])
    lines = [wording.verdict_sentence(result)]
    broken = [finding for finding in result.findings if finding.verdict == "error"]
    for finding in broken[:MAX_BROKEN]:
        lines.append(f"  {wording.clean(finding.id)}: {wording.clean(finding.message, 400)}")
    if len(broken) > MAX_BROKEN:
        lines.append(f"  and {wording.plural(len(broken) - MAX_BROKEN, 'more pair')}")
    traceback = next((finding.traceback for finding in broken if finding.traceback), "")
    lines += [f"  {line}" for line in traceback.splitlines()[-LINES_SHOWN:]]
    return "\n".join([*lines, *notes, f"  replay   {replay_line}"])


def share_text(confidence: float, plan: Plan, stated: float) -> str:
    """Source of the confidence of a failure, in one row of facts; `stated` is that of the call, 0 for none."""
    from dpaudit.reports import terminal

    own, left = wording.sure_text(confidence), wording.rate_text(1.0 - confidence)
    of_session = plan.settings.confidence
    session, alarms = wording.sure_text(of_session), wording.rate_text(1.0 - of_session)
    tests = wording.plural(plan.tests + len(plan.lists), "test")
    text = (
        f"The session's {session} leave {alarms} for false alarms, split over the calls of its {tests}: "
        f"this one may use {left}, so its confidence is {own}."
    )
    if stated:
        text = f"The test states {own} for this call, {left} out of the session's error rate."
    return terminal.plain([document.Facts((("share", text),))])


def notes_text(result: AuditResult) -> str:
    """The warnings about degenerate outputs of an audit that found nothing; empty without any."""
    notes = wording.notes(result)
    return f"{wording.about(result)}: {' '.join(notes)}" if notes else ""


def weakness_text(result: AuditResult) -> str:
    """Power of an inconclusive audit, and what to do about it."""
    said = wording.verdict_sentence(result)
    if not result.findings:
        return said
    advice = " Take more samples." if wording.is_weak(result) else ""
    return f"{said} {rows.missed_sentence(result)}{advice}"


def floating_point_text(result: AuditResult) -> str:
    """Leak in the low bits of the outputs, and what to do about it."""
    texts = (side_texts.line(one) for one in side_texts.beside(result) if one.kind == side_texts.LOW_BITS)
    return ": ".join((wording.about(result), *texts))


def witness_text(saved: Saved, fate: Fate, now: Power, name: str) -> str:
    """Fate of a saved witness that was not confirmed, in one line, and what would settle one that is kept."""
    then = saved.power
    if not saved.is_current:
        what = "kept; --cache-clear forgets it" if fate == "kept" else "dropped"
        return f"a witness of {saved.date} is of an earlier version and was not replayed; the audit ran instead; {what}"
    if fate == "dropped: code":
        return f"a witness of {saved.date} is dropped: the code of {wording.clean(name, 80)} has changed since"
    if fate == "dropped: power":
        return f"a witness of {saved.date} is dropped: a run as strong as the one that found it stayed silent"
    if then is not None and now.reaches(then):  # draws that depend on each other, or a mechanism that broke
        return f"a witness of {saved.date} was not confirmed by an audit that gave no answer; kept"
    text = f"a witness of {saved.date} was not confirmed at this size; kept"
    if then is None:
        return f"{text} (its file does not say the size that found it). --cache-clear forgets it"
    text += f" ({now.samples:,} samples; found with {then.samples:,})"
    if then.stored > now.stored:
        return f"{text}. Evidence of {then.stored:,} runs in the store settles it"
    how = f" in mode {wording.clean(then.mode, 40)}" if then.mode != now.mode else ""
    return f"{text}. {then.samples_at(now.error):,} samples{how} settle it"


def confirmed_text(found: Replay, name: str, replay_line: str) -> str:
    """Failure message of a test whose saved witness breaks the promise again, in the order of every failure."""
    bounds, sure = (found.parameter_lower, found.parameter_budget), f"{wording.sure_text(found.confidence)} confidence"
    rows = {
        "subject": wording.clean(name, 200),
        "claim": wording.clean(found.claim, 200),
        "pair": wording.clean(found.pair),
        "rule": wording.clean(found.description or "that of the file, which keeps no words of it", 400),
        "counts": f"The rule was right in {found.correct:,}, wrong in {found.wrong:,} draws, and abstained in "
        f"{found.abstained:,}.",
        "bound": wording.bound_line(found.parameter, *bounds, sure),
        "seed": str(found.seed),
        "replay": replay_line,
    }
    return "\n".join([CONFIRMED, *(f"  {key:<8} {text}" for key, text in rows.items())])


def replay_line(
    settings: Settings, budget: SessionBudget, node_id: str, seed: int | None, accumulates: bool = False, cut: int = 0
) -> str:
    """The command that repeats the test with the same draws, and the same share of the error rate.

    `cut` are the samples that fitted into a limit of time, which another run would measure anew; 0: all of them did.

    With a seed everything repeats itself and nothing saved is replayed; without one (None) what is saved comes first.
    What is found in the evidence of many sessions is found there again, and in no session alone. Paths are those of the
    folder where pytest was called, as in pytest's own lines.
    """
    options: dict[str, Any] = {name: settings.from_command_line(name) for name in (*AUDIT_OPTIONS, *REPEATED)}
    options["seconds"] = None
    options["samples"] = cut or options["samples"]
    options["test-error"] = settings.from_command_line("test-error")
    if options["test-error"] is None and budget.tests + budget.reserving + budget.lists > 1 and budget.tests:
        options["test-error"] = budget.test_error
    if seed is not None:
        options["seed"], options["session-seed"] = seed, None
    elif settings.session_seed is not None:
        options["session-seed"] = settings.session_seed
    if accumulates:
        options["store"] = settings.from_command_line("store")
    stated = [f"--dp-{name} {shlex.quote(str(value))}" for name, value in options.items() if value is not None]
    if settings.config.getoption("dp_strict"):
        stated.append("--dp-strict")
    return " ".join(["pytest", shlex.quote(_from_here(settings, node_id)), *stated])


def _from_here(settings: Settings, node_id: str) -> str:
    """A node id, whose path is that from pytest's root, with the path from the folder where pytest was called."""
    path, *rest = node_id.split("::")
    place = settings.config.rootpath / path
    try:
        path = os.path.relpath(place, settings.config.invocation_params.dir)
    except ValueError:  # on another drive
        path = str(place)
    return "::".join([path, *rest])
