"""One call of `dp_audit`: its options and share, the replay of what is saved, the audit, and how the test ends."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import inspect
import json
import os
import sysconfig
import warnings
from collections.abc import Sequence
from typing import Any

import pytest

from dpaudit.arguments import check_names, check_options, seed_from
from dpaudit.audits import auditing
from dpaudit.audits.replaying import Replay
from dpaudit.errors import (
    DpauditFloatingPointWarning,
    DpauditInconclusiveWarning,
    DpauditNoteWarning,
    MechanismTraceback,
    SubjectError,
    UsageError,
)
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.inputs import identity_of
from dpaudit.privacy.pairs import Pair
from dpaudit.pytest_plugin import pace, witnesses
from dpaudit.pytest_plugin.budget import AUDIT, LOW_BITS, REPLAY, confidence_of
from dpaudit.pytest_plugin.planning import FLOATING_POINT_PROPERTY, PROPERTY, Plan, TestState
from dpaudit.pytest_plugin.texts import (
    INCONCLUSIVE,
    LEAKING,
    confirmed_text,
    failure_text,
    floating_point_text,
    notes_text,
    replay_line,
    share_text,
    weakness_text,
    witness_text,
)
from dpaudit.reports import side_texts, wording
from dpaudit.results.model import AuditResult
from dpaudit.subjects.callables import Subject, as_subject
from dpaudit.subjects.fresh import fresh_subject
from dpaudit.subjects.stated import stated_claim, stated_pairs
from dpaudit.subjects.tracebacks import OWN_FOLDER

FRAME = 4  # of the test that called dp_audit, as warnings count
MAX_COMPARED = 2_000  # pairs of a call that a rerun is compared by; one with more pays again
STDLIB = sysconfig.get_path("stdlib") + os.sep
DEFAULT_SAMPLES = 100_000  # that a replay takes at most where no number is stated


def audit_in_test(
    item: pytest.Item, plan: Plan, position: int, mechanism: Any, claim: Any, pairs: Any, options: dict[str, Any]
) -> AuditResult:
    """Audit a mechanism inside a test, as the `position`-th call of this run of it."""
    __tracebackhide__ = True
    try:
        call = _Call(item, plan, position, mechanism, claim, pairs, options)
    except UsageError as error:  # without the traceback, which leads through dpaudit only
        given = {name for name, value in options.items() if value is not None}
        raise plan.settings.project.located(error, given).with_traceback(None) from cause(error)
    call.replay()
    return call.audit()


class _Call:
    """Call of `dp_audit`, settled before anything is drawn: subject, claim, pairs, options, number, share and seed."""

    def __init__(
        self,
        item: pytest.Item,
        plan: Plan,
        position: int,
        mechanism: Any,
        claim: Any,
        pairs: Any,
        options: dict[str, Any],
    ) -> None:
        settings = [
            one.name for one in inspect.signature(auditing.audit).parameters.values() if one.kind is one.KEYWORD_ONLY
        ]
        check_names("dp_audit", options, ["claim", "pairs", "seconds", *settings])
        self.item, self.plan, self.settings = item, plan, plan.settings
        self.state: TestState = plan.state(item)
        call = {name: value for name, value in options.items() if value is not None}
        names = {name: call.pop(name, None) for name in ("target", "name")}
        confidence = call.pop("confidence", None)
        if "rng" in call:
            call["seed"] = seed_from(call.get("seed"), call.pop("rng"))
        self.subject: Subject = (fresh_subject if call.pop("fresh", False) else as_subject)(mechanism, **names)
        self.claim: Claim = stated_claim(self.subject, claim)
        self.pairs: Sequence[Pair] = stated_pairs(self.subject, pairs, self.claim)
        self.given = self.settings.audit_options(call, self.state.mark.options)
        self.repeats = self.settings.from_command_line("seed") is not None
        seconds = self.given.pop("seconds", None)
        self.long = pace.LongAudit(
            item.config, item.nodeid, position, self.settings.cache, self.given.pop("on_progress", None)
        )
        self.options = self.settings.project.audit_options(self.given)
        if self.settings.is_worker and "jobs" not in self.given:
            self.options["jobs"] = 1
        if self.settings.profile.seeds == "fresh" and "seed" not in self.given:
            self.options.pop("seed", None)
        if confidence is not None:
            check_options(confidence=confidence)
            confidence = float(confidence)  # a fraction, or a number of numpy's, is in no file
        self.accumulates = self._accumulates(confidence)
        key = self._key((confidence, seconds))
        self.number, self.spent = self.state.charge(key, position, confidence, self._may_repeat)
        self.options["confidence"] = self.spent.confidence or confidence_of(self.spent.share * AUDIT)
        if self.accumulates and self.settings.store is not None and self.options.get("store") is None:
            with contextlib.suppress(OSError, UsageError):  # told by the audit, which cannot open the file
                self.settings.store.parent.mkdir(parents=True, exist_ok=True)
                if self.settings.store.parent == self.settings.cache:
                    witnesses.keep_out(self.settings.cache)
            self.options["store"] = self.settings.store
        self.options.setdefault("seed", self.settings.seed_of(item.nodeid, self.number))
        self.confirmed: Replay | None = None  # a saved witness that broke the promise again
        self.record: dict[str, Any] = {
            "call": self.number,
            "subject": wording.clean(self.subject.name, 200),
            "claim": wording.clean(str(self.claim), 200),
            "share": float(self.spent.share),
            "seed": self.options["seed"],
            "accumulates": self.accumulates,
        }
        if seconds is not None:
            self._cut(seconds)

    def _cut(self, seconds: float) -> None:
        """Take as many samples as fit into the time; a rerun takes as many as the run before it."""
        if self.spent.cut is None:
            self.spent.cut = pace.samples_within(seconds, self.subject, self.claim, self.pairs, self.options)
        samples, text = self.spent.cut
        if samples:
            self.options["samples"] = samples
            self.record["cut"] = text

    def _accumulates(self, confidence: float | None) -> bool:
        """Tell whether the audit goes on from the evidence of earlier sessions (`--dp-store`).

        Only where the test says its confidence, so that it is the same in every session: the store's is for all
        sessions together. Then no session raises a false alarm with more than the call's share. Not in modes that keep
        no evidence, nor isolated.
        """
        stated = confidence is not None or self.state.mark.confidence is not None
        if self.options.get("store") is not None:
            if not stated:
                raise UsageError(
                    "confidence must be stated by a test that keeps evidence (@pytest.mark.dp_audit(confidence=...)), "
                    f"the same in every session, got store={os.fspath(self.options['store'])!r} and none."
                )
            return True
        can = self._may_repeat and self.options.get("mode", "sequential") == "sequential"
        can = can and self.options.get("isolation") in (None, False, "off") and self.options.get("checkpoint") is None
        return self.settings.store is not None and stated and can

    @property
    def _may_repeat(self) -> bool:
        """Tell whether the same seed gives the same bits."""
        return self.subject.replayable and len(self.pairs) <= MAX_COMPARED

    def _key(self, stated: tuple[float | None, float | None]) -> Any:
        """Key of all calls that draw the same bits from the same seed, as far as can be seen.

        `stated` is the confidence and the limit of time that the call states.
        """
        if not self._may_repeat:
            return None
        pairs = [(pair.id, identity_of(pair.x), identity_of(pair.x_prime)) for pair in self.pairs]
        options = sorted((name, repr(value)) for name, value in self.options.items())
        return (self.subject.name, self.subject.fingerprint, str(self.claim), pairs, options, stated)

    def replay(self) -> None:
        """Fail at once if the witness that an earlier run saved breaks the promise on fresh draws.

        Not where a seed of the command line repeats a run, nor where the violation is known, nor in a rerun: the share
        of the replay is spent once. Where a report is asked for, which is of audits, the audit runs all the same.
        """
        __tracebackhide__ = True
        saved = self._saved()
        pair = saved.asked_of(self.claim, self.pairs) if saved is not None else None
        if saved is None or self.repeats or self.state.known is not None or self.state.runs > 1:
            return
        # Validity: the rule is of an earlier run. Its draws are of streams that no audit reads (REPLAY_DRAWS).
        confidence = confidence_of(self.spent.share * REPLAY)
        found = None
        if pair is not None:
            found = witnesses.replay_saved(
                saved.result, self.subject, self.claim, pair, confidence, self.options["seed"], self.samples
            )
        self.record["replay"] = "not run" if found is None else "confirmed" if found.confirmed else "not confirmed"
        if found is not None and found.confirmed:
            self.confirmed = found
            if not self.settings.formats:
                self.record |= {"confidence": found.confidence, "epsilon_lower": None, "ratio_lower": None}
                self._report("violated")
                self._fail_again()

    def audit(self) -> AuditResult:
        """Audit, record what was found, and let the test fail, warn or go on."""
        __tracebackhide__ = True
        try:
            audit = functools.partial(auditing.audit, self.subject, self.claim, self.pairs)
            result = self.long.run(audit, self.options)
        except UsageError as error:
            raise self.settings.project.located(error, self.given).with_traceback(None) from cause(error)
        except SubjectError as error:
            self._report("error")
            raise error.with_traceback(None) from cause(error)
        self._check_repeated(result)
        low_bits = result.floating_point
        leaks = low_bits is not None and low_bits.verdict == "leaks"
        self.record |= {
            "leaks": leaks,
            "low_bits_rate": float(low_bits.error_rate) if low_bits is not None and low_bits.pairs else 0.0,
            "side": [[one.kind, one.status, float(one.error_rate or 0.0)] for one in result.side_findings],
            "side_texts": [side_texts.line(one) for one in result.side_findings],
            "seed": int(result.seed),
            "confidence": float(result.confidence),
            "epsilon_lower": float(result.epsilon_lower),
            "ratio_lower": float(result.ratio_lower),
        }
        if self.settings.formats:
            self.record["result"] = _located(result, self.item).to_bytes().decode("utf-8")
        if result.verdict == "violated":
            self._fail_unless_known(result)
        self._report("violated" if self.confirmed is not None else result.verdict)
        if self.confirmed is not None:
            self._fail_again()
        self._settle(result)
        # More samples would not mend draws that depend on each other: that is a mistake, here or in the mechanism.
        if result.verdict == "inconclusive" and not (self.settings.strict or wording.unjudged_count(result)):
            line = INCONCLUSIVE if wording.is_weak(result) else wording.settling_sentence(result)
            self._warn(DpauditInconclusiveWarning, line, weakness_text(result))
        elif result.verdict != "not_refuted":
            pytest.fail(failure_text(result, self._line(result.seed)), pytrace=False)
        notes = notes_text(result)
        if notes:
            self.record["notes"] = wording.notes(result)
        if leaks:  # before the notes: where the warning of a note is an error, nothing is said behind it
            text = floating_point_text(result)
            if self.settings.strict and _leak_at(result, self.spent.share * LOW_BITS):
                pytest.fail(f"{text}\n  replay   {self._line(result.seed)}", pytrace=False)
            self._warn(DpauditFloatingPointWarning, LEAKING, text)
        if notes:
            warnings.warn(notes, DpauditNoteWarning, stacklevel=FRAME)
        return result

    def _warn(self, kind: type[Warning], line: str, details: str) -> None:
        """Warn of what may concern many tests: one line for all of them, which pytest shows once; details with -v.

        Where the warning is an error the details are notes of the exception.
        """
        if self.item.config.getoption("verbose", 0) > 0:
            warnings.warn(details, kind, stacklevel=FRAME + 1)
            return
        warning = kind(line)
        warning.add_note(details)
        warnings.warn_explicit(warning, kind, "<dpaudit>", 1, module="dpaudit")  # no file, whose first line is shown

    @property
    def samples(self) -> int:
        """Runs on each input that the audit takes at most."""
        return int(self.options.get("samples", DEFAULT_SAMPLES))

    def _saved(self) -> witnesses.Saved | None:
        cache = self.settings.cache
        return witnesses.saved(cache, self.item.nodeid, self.number) if cache is not None else None

    def _settle(self, result: AuditResult) -> None:
        """Keep or drop the saved witness, which neither its replay nor the audit confirmed; the summary says which."""
        saved, cache = self._saved(), self.settings.cache
        if saved is None or cache is None:
            return
        pair = saved.asked_of(self.claim, self.pairs)
        now = None if pair is None else witnesses.Power.of(result, pair.id, self.samples, self.accumulates)
        is_same_code = saved.is_of(self.subject.fingerprint)
        fate = witnesses.fate(saved, now, is_same_code, result.verdict, wording.unjudged_count(result) > 0)
        self.record["witness"] = fate
        if now is not None:
            self.record["witness_text"] = witness_text(saved, fate, now, self.subject.name)
        if fate.startswith("dropped"):
            witnesses.forget(cache, self.item.nodeid, self.number)

    def _fail_unless_known(self, result: AuditResult) -> None:
        """A violation: where it is known an expected failure, else a failure, with its witness saved."""
        __tracebackhide__ = True
        known, cache = self.state.known, self.settings.cache
        if cache is not None:
            witnesses.save(cache, self.item.nodeid, self.number, result, self.samples, self.accumulates)
        if known is not None and known.covers([finding.id for finding in result.violated]):
            self._report("violated", known.reason.encode("utf-8", "backslashreplace").decode("utf-8"))
            pytest.xfail(f"{known.reason} (known until {known.expires.isoformat()})")  # returns under --runxfail
        else:
            self._report("violated")
        unknown = known.unknown_text([pair.id for pair in self.pairs]) if known is not None else ""
        text = failure_text(result, self._line(result.seed)) + (f"\n  known    {unknown}" if unknown else "")
        pytest.fail(f"{text}\n{share_text(result.confidence, self.plan, self.spent.confidence)}", pytrace=False)

    def _fail_again(self) -> None:
        __tracebackhide__ = True
        assert self.confirmed is not None
        text = confirmed_text(self.confirmed, self.subject.name, self._line(None))
        pytest.fail(f"{text}\n{share_text(self.confirmed.confidence, self.plan, 0.0)}", pytrace=False)

    def _check_repeated(self, result: AuditResult) -> None:
        """Refuse a second look: a rerun that had the same share must have found the same."""
        if self.accumulates:
            return  # another session of the same evidence, which has one error rate for all of them
        record = {name: value for name, value in result.to_dict().items() if name != "seconds"}
        outcome = hashlib.sha256(json.dumps(record, sort_keys=True).encode("utf-8", "replace")).hexdigest()
        if self.spent.outcome and self.spent.outcome != outcome:
            raise UsageError(
                f"mechanism must draw the same in a rerun of the test, got other results from {self.subject.name} and "
                f"seed {result.seed}. It would be a second look at one share of the session's error rate."
            )
        self.spent.outcome = outcome

    def _report(self, verdict: str, known: str = "") -> None:
        self.record |= {"verdict": verdict, "known": known}
        self.state.records.append(self.record)
        self.item.user_properties.append((PROPERTY, verdict))
        if self.record.get("leaks"):
            self.item.user_properties.append((FLOATING_POINT_PROPERTY, "leaks"))

    def _line(self, seed: int | None) -> str:
        cut = self.spent.cut[0] if self.spent.cut is not None else 0
        return replay_line(self.settings, self.plan.budget, self.item.nodeid, seed, self.accumulates, cut)


def _located(result: AuditResult, item: pytest.Item) -> AuditResult:
    """The result with the place of its test, which is what a code scanner shows."""
    file, line, _ = item.location
    return dataclasses.replace(result, subject={**result.subject, "location": f"{file}:{(line or 0) + 1}"})


def _leak_at(result: AuditResult, share: float) -> bool:
    """Tell whether low bits leak at an error rate of `share` over the pairs, and not only at that of the check.

    Validity: each pair's p-value is that of an exact test; the check divides its rate over the pairs beforehand, and
    `share` is divided alike.
    """
    found = result.floating_point
    assert found is not None
    return any(
        pair.verdict == "leaks" and pair.p_value <= share * pair.error_share / found.error_rate for pair in found.pairs
    )


def cause(error: BaseException) -> BaseException | None:
    """The exception of the user's code that led to `error`, from where their code begins; None if it is of dpaudit."""

    def is_inside(file: str) -> bool:
        return file.startswith((OWN_FOLDER, "<")) or (file.startswith(STDLIB) and "-packages" not in file)

    found = error.__cause__
    if found is None or isinstance(found, UsageError):
        return None
    if isinstance(found, MechanismTraceback):  # of another process
        return found
    place = found.__traceback__
    while place is not None and is_inside(place.tb_frame.f_code.co_filename):
        place = place.tb_next
    return None if place is None else found.with_traceback(place)
