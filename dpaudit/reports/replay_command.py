"""Line of code that runs a finding again on fresh draws, the same in every report.

It is a command where one can work. None can where the result names no target, where its claim cannot be read back from
its text, or where the inputs are neither in the file nor known by a name: then it is a call from Python, and it is said
what has to be given.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from typing import Any

from dpaudit.audits.replaying import why_not_held
from dpaudit.conformance.bindings import ERROR_RATE, SAMPLES
from dpaudit.conformance.result import CheckResult
from dpaudit.errors import UsageError
from dpaudit.privacy.parsing import parse_claim
from dpaudit.reports.wording import clean, printable
from dpaudit.results.model import AuditResult

STAND_IN = "audit.json"  # for the file of a result, where it is not known


@dataclasses.dataclass(frozen=True)
class Again:
    """A line to copy, and of a call from Python what has to be given for it; empty of a command."""

    line: str
    needs: str = ""


def again(result: AuditResult, pair: str, path: str = STAND_IN, low_bits: bool = False) -> Again:
    """Say how the witness of the pair of this id is run again, of a result that is or will be saved at `path`.

    `low_bits`: the witness is that of the floating-point finding, whose budget is the saved one: no claim is needed.
    """
    pairs, claim = (_text(result, name) for name in ("pairs", "claim"))
    is_held, own = holds_inputs(result, pair, saved=True), result.subject.get("states")
    states = own if isinstance(own, list | tuple) else ("claim", "pairs")  # older files do not say: as they hoped
    needs_claim = not (low_bits or "claim" in states or is_readable(result.claim))
    missing = []
    if not result.subject.get("target"):
        missing.append("the result names no target")
    if needs_claim and not claim:
        missing.append(f"its claim, {clean(result.claim, 120)}, cannot be read back")
    if not (is_held or pairs or "pairs" in states):
        missing.append("it does not hold the inputs of this pair")
    if missing:
        return _from_python(result, pair, path, low_bits, missing, is_held)
    line = f"dpaudit replay {shlex.quote(path)} --pair {_word(pair)} --target {_word(str(result.subject['target']))}"
    line += f" --claim {_word(claim)}" if needs_claim else ""
    line += " --floating-point" if low_bits else ""
    return Again(line + (f" --pairs {_word(pairs)}" if pairs else ""))


def low_bits_again(result: AuditResult, path: str = STAND_IN) -> Again | None:
    """Say how the rule of the worst leak in low bits is run on fresh draws; None if there is none."""
    leaks = result.floating_point.pairs[:1] if result.floating_point is not None else ()
    lines = [again(result, one.id, path, low_bits=True) for one in leaks if one.verdict == "leaks" and one.rule]
    return lines[0] if lines else None


def check_again(result: CheckResult, mechanism: Mapping[str, Any]) -> Again | None:
    """Say how the checks that a mechanism of a check.json failed are run again, all of them; None if none failed."""
    failed = [record.name for record in result.of_status("violated") if record.mechanism == mechanism["name"]]
    if not failed:
        return None
    stated, states = mechanism.get("claim"), result.options.get("states", ("pairs",))
    claim, pairs = (_text(result, name) for name in ("claim", "pairs"))
    if not claim and "claim" not in states and isinstance(stated, str) and is_readable(stated):
        claim = stated
    missing = [] if mechanism.get("target") else ["the result names no target"]
    if not (claim or "claim" in states or stated is None or "states" not in result.options):
        missing.append(f"its claim, {clean(stated, 120)}, cannot be read back")
    if not (pairs or "pairs" in states):
        missing.append("it does not hold the pairs of inputs")
    options = {"samples": result.samples, "error_rate": result.error_rate, "seed": result.seed}
    usual = {"samples": SAMPLES, "error_rate": ERROR_RATE}
    options = {name: value for name, value in options.items() if usual.get(name) != value}
    if missing:
        given = "".join(f", {name}={value!r}" for name, value in options.items())
        needs = f"No command can do it: {' and '.join(missing)}. Give the mechanism, its claim and its pairs."
        return Again(f"dpaudit.check(mechanism, claim, pairs, only={failed!r}{given})", needs)
    line = f"dpaudit check {_word(str(mechanism['target']))}"
    line += (f" --claim {_word(claim)}" if claim else "") + (f" --pairs {_word(pairs)}" if pairs else "")
    line += f" --only {','.join(failed)}"
    return Again(line + "".join(f" --{name.replace('_', '-')} {value}" for name, value in options.items()))


def _from_python(result: AuditResult, pair: str, path: str, low_bits: bool, missing: list[str], is_held: bool) -> Again:
    """The call, with the reasons why no command can do it."""
    function = "dpaudit.replay_floating_point" if low_bits else "dpaudit.replay"
    arguments, given = [f"dpaudit.load({path!r})", "mechanism"], ["the mechanism that was audited"]
    if not low_bits and is_readable(result.claim):
        arguments.append(f"dpaudit.parse_claim({result.claim!r})")
    elif not low_bits:
        arguments.append("claim")
        given.append("its claim")
    arguments.append(f"pair={pair!r}")
    if not is_held:
        arguments.append("inputs=dpaudit.Pair(x, x_prime)")
        given.append("the two inputs of the pair")
    needs = f"No command can do it: {' and '.join(missing)}. Give {', and '.join(given)}."
    return Again(f"{function}({', '.join(arguments)})", needs)


def holds_inputs(result: AuditResult, pair: str | None, saved: bool = False) -> bool:
    """Tell whether a result holds the inputs of a pair; `saved`: whether its file does or will."""
    finding = next((finding for finding in result.findings if finding.id == pair), None)
    return finding is not None and not any(why_not_held(finding, name, saved) for name in ("x", "x_prime"))


def _text(result: AuditResult | CheckResult, name: str) -> str:
    """Say what the command line was given as --claim or --pairs, as the result keeps it; empty if it was not."""
    given = result.options.get(name)
    return given if isinstance(given, str) else ""


def is_readable(claim: str) -> bool:
    """Tell whether the command line can read the text of a claim; a metric has a name there, which is no file."""
    if claim.strip().startswith("metric="):
        return False
    try:
        parse_claim(claim)
    except UsageError:
        return False
    return True


def _word(text: str) -> str:
    """A word of a command line; what cannot be printed is written as the escapes of a shell."""
    if text.isprintable():
        return shlex.quote(text)
    shown = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{printable(shown)}'"
