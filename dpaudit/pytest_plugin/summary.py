"""Summary at the end of a session: its lines, and one report of all its audits."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dpaudit.errors import DpauditError, UsageError
from dpaudit.pytest_plugin import checks
from dpaudit.pytest_plugin.marks import LIST, listed_violation
from dpaudit.pytest_plugin.options import Settings
from dpaudit.reports.words import plural, some

if TYPE_CHECKING:
    from dpaudit.results.model import AuditResult

SCHEMA = "dpaudit.session/1"
ORDER = ("violated", "error", "inconclusive", "not_refuted")
NAMED = 10  # lines of one kind in the summary
NAMED_IN_LINE = 3  # tests that one line names
EARLIER_SHOWN = 4  # reports of an earlier session that are named
PUBLIC = (
    "call", "verdict", "subject", "claim", "share", "confidence", "seed", "epsilon_lower", "ratio_lower", "known",
    "replay", "witness", "leaks", "side", "cut",
)  # fmt: skip

WITNESS = "saved witness"  # whose fate is told of each test
# What may be said of several tests of a session: texts of the record of each audit.
OF_TESTS: Mapping[str, Callable[[Mapping[str, Any]], Sequence[str]]] = {
    "low bits leak": lambda record: [""] * bool(record.get("leaks")),
    "cut to fit into its time": lambda record: [record["cut"]] if "cut" in record else [],
    "beside": lambda record: record.get("side_texts", ()),
    WITNESS: lambda record: [record["witness_text"]] if "witness_text" in record else [],
    "note (a mistake of the test?)": lambda record: record.get("notes", ()),
}


class Summary:
    """Everything that the tests of a session reported, in the process that says it; a plugin of pytest."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.plan: Mapping[str, Any] | None = None
        self.found: dict[str, dict[int, dict[str, Any]]] = {}  # by node id and number of the call
        self.checks: dict[str, dict[str, Any]] = {}  # conformance checks, by node id
        self.problem = ""
        self.collected: list[Mapping[str, Any]] = []  # what each process that collected found of known violations
        self.unmatched: list[tuple[str, bool]] = []  # what is said of those of no test, and whether it is a failure
        self.written: list[Path] = []
        self.earlier: list[Path] = []  # reports in the same folder that this session has not written
        if settings.formats:
            try:
                self._check_report()
            except UsageError as error:
                raise pytest.UsageError(str(error)) from error

    def _check_report(self) -> None:
        """Tell before anything runs of a format that cannot be written, and of a folder that nothing fits in."""
        from dpaudit.reports.formats import check_formats
        from dpaudit.results.saving import check_folder

        check_formats("dp_report", self.settings.formats)
        check_folder("dp_out", self.settings.out)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add what a phase of a test reports, whichever process ran it; each phase repeats what those before it did."""
        for record in getattr(report, "dpaudit", ()):
            self.found.setdefault(report.nodeid, {})[record["call"]] = record
        if (check := getattr(report, checks.ATTRIBUTE, None)) is not None:
            self.checks[report.nodeid] = check

    def receive(self, found: Mapping[str, Any]) -> None:
        """Add the account that a process gives at its end (`Plan.account`)."""
        self.plan = found["plan"] or self.plan
        self.collected += [found["collected"]] if found["collected"] else []

    @property
    def records(self) -> list[tuple[str, dict[str, Any]]]:
        """Every audit with the node id of its test, in order of node ids."""
        return [(node_id, calls[number]) for node_id, calls in sorted(self.found.items()) for number in sorted(calls)]

    def lines(self, is_short: bool = False) -> list[str]:
        """List what was found, what the session promises, and what was written; nothing where nothing was audited.

        What may concern many tests has one line where `is_short`, else a line for each of them.
        """
        lines = []
        counts = Counter(record["verdict"] for _, record in self.records)
        if counts:
            known = sum(bool(record["known"]) for _, record in self.records)
            leaks = sum(bool(record.get("leaks")) for _, record in self.records)
            parts = [f"{counts[verdict]} {verdict.replace('_', ' ')}" for verdict in ORDER if counts[verdict]]
            text = f"; {known} of them known" if known else ""
            text += f"; floating point: {leaks} with a leak" if leaks else ""
            lines.append(f"{plural(counts.total(), 'audit')}: {', '.join(parts)}{text}")
            for name, texts_of in OF_TESTS.items():
                tests = [(test, text) for test, record in self.records for text in texts_of(record)]
                lines += _lines_of(name, tests, is_short and name != WITNESS)
        if self.checks:
            lines.append(checks.counted(self.ordered_checks))
        if self.plan is not None:
            lines += filter(None, (promise_text(self.plan), self.beside_text()))
        if counts and self.settings.store is not None:
            lines.append(self.store_text())
        lines += [f"{'FAILED: ' * is_failure}known violation of {text}" for text, is_failure in self.unmatched]
        lines += [f"written {path}" for path in self.written]
        if self.earlier:
            shown = some(list(map(str, self.earlier)), EARLIER_SHOWN)
            lines.append(f"of an earlier session, not of this one: {shown}")
        return [*lines, self.problem] if self.problem else lines

    @property
    def ordered_checks(self) -> list[dict[str, Any]]:
        """The record of every conformance check, in order of node ids."""
        return [self.checks[node_id] for node_id in sorted(self.checks)]

    def store_text(self) -> str:
        """Number of audits that add to the evidence that accumulates, and what keeps the others from it."""
        kept = sum(bool(record.get("accumulates")) for _, record in self.records)
        text = f"the evidence of {kept:,} of {plural(len(self.records), 'audit')} accumulates in {self.settings.store}"
        if kept == len(self.records):
            return text
        return f"{text}; a test must state its confidence for that: @pytest.mark.dp_audit(confidence=0.999, calls=1)"

    def beside_text(self) -> str:
        """The error rates that do not come out of the session's confidence: what warns, and draws that depend."""
        strict = self.plan is not None and self.plan["strict"]
        low_bits = [record.get("low_bits_rate", 0.0) for _, record in self.records]
        side = [rate for _, record in self.records for _, _, rate in record.get("side", ())]
        kinds = dict.fromkeys(kind.replace("_", " ") for _, one in self.records for kind, _, _ in one.get("side", ()))
        parts = []
        if any(low_bits):
            looked = plural(sum(rate > 0 for rate in low_bits), "audit")
            text = f"low bits were looked at in {looked}: a false warning in at most {_rate(sum(low_bits))} of sessions"
            parts.append(text + (" (failures are within the confidence above)" if strict else ""))
        if side:
            fails = "of which a call order alone fails its test" if "call order" in kinds else "which fail no test"
            text = f"{plural(len(side), 'side finding')} ({', '.join(kinds)}), {fails}: "
            parts.append(text + f"a false one in at most {_rate(sum(side))} of sessions")
        return "Beside it " + "; ".join(parts) if parts else ""

    def finish(self) -> None:
        """Judge known violations of no test, and write the report where one is asked for; the summary tells both."""
        self.unmatched = judged(self.settings.config, self.settings.known_violations, self.collected)
        if not self.settings.formats or not (self.records or self.checks):
            return
        try:
            results = [(node_id, record, _result(record)) for node_id, record in self.records]
            whole = [(node_id, record, result) for node_id, record, result in results if result is not None]
            self.written = self._write(whole)
        except (DpauditError, OSError) as error:
            self.problem = f"the report was not written: {error}"

    @property
    def fails(self) -> bool:
        """Tell if the session fails, whatever its tests did: a known violation of no test, a report not written."""
        return bool(self.problem) or any(is_failure for _, is_failure in self.unmatched)

    def session_record(self) -> dict[str, Any]:
        """The session as strict JSON values: the content of session.json."""
        audits = [
            {"test": node_id, "file": record["place"][0], "line": (record["place"][1] or 0) + 1}
            | {name: record[name] for name in PUBLIC if name in record}
            for node_id, record in self.records
        ]
        session = {"schema": SCHEMA, "session": dict(self.plan or {}), "audits": audits}
        return session | {"checks": [checks.public(one) for one in self.ordered_checks]} if self.checks else session

    def _write(self, results: list[tuple[str, dict[str, Any], AuditResult]]) -> list[Path]:
        """A folder an audit, and what is of the whole session; the paths of the latter.

        Each file is written complete or not at all, those of the session last: they name only what is there.
        """
        from dpaudit.reports import file_name, render
        from dpaudit.results.model import to_json
        from dpaudit.results.saving import json_text, utf8, write_whole

        out, logs, made = self.settings.out, [], set()
        lists = checks.results(self.ordered_checks)
        places = {name: _slug(name, 1) for name in lists}
        folders = {(node_id, record["call"]): _slug(node_id, record["call"]) for node_id, record, _ in results}
        whole: list[tuple[str, str, Any]] = [
            *((folders[node_id, record["call"]], "audit", result) for node_id, record, result in results),
            *((places[name], "check", checked) for name, checked in lists.items()),
        ]
        for folder, stem, result in whole:
            for format in self.settings.formats:
                content = render(result, format)
                write_whole(path := out / folder / file_name(stem, format), content)
                made.add(path)
                logs += [str(content)] if format == "sarif" else []
        session = to_json(self.session_record())
        for entry, record in zip(session.get("checks", ()), self.ordered_checks, strict=True):
            entry["folder"] = places[record["list"]]
        for audit in session["audits"]:
            audit["folder"] = folders.get((audit["test"], audit["call"]))
        files = {"session.json": json_text(session), "session.md": markdown(self.lines(), session)}
        if logs:
            files["session.sarif"] = one_log(logs)
        for name, content in files.items():
            write_whole(out / name, utf8(content))
        self.earlier = _earlier(out, {*made, *(out / name for name in files)})
        return [out / name for name in files]


def markdown(lines: Sequence[str], session: Mapping[str, Any]) -> str:
    """The session as Markdown, for a job summary: below 900 kB, whatever the number of audits."""
    from dpaudit.environment import __version__
    from dpaudit.reports.attachments import session_attachment
    from dpaudit.reports.document import Document, Paragraph, Section
    from dpaudit.reports.markdown import render
    from dpaudit.results.verdicts import gravest

    shown = session_attachment("session.json", "", session, ())
    told = Section("told", "Summary", tuple(map(Paragraph, lines)))
    verdict = gravest({one["verdict"] for one in session["audits"]})
    whole = (told, Section("session", shown.title, shown.blocks))
    return render(Document("A session of tests", "dpaudit", verdict, whole, f"Written by dpaudit {__version__}."))


def _lines_of(name: str, tests: Sequence[tuple[str, str]], is_short: bool) -> list[str]:
    """Notes on some tests: a line for each of the first, or one line that names a few and says how to see all.

    `tests` are node ids, each with the details; one test has its details in its one line.
    """
    names = list(dict.fromkeys(node_id for node_id, _ in tests))
    if not names:
        return []
    if is_short and len(names) > 1:
        shown = some(names, NAMED_IN_LINE)
        return [f"  {name}: {plural(len(names), 'test')} ({shown}); pytest -v has the details"]
    found = [f"  {name}: {node_id}" + (f": {details}" if details else "") for node_id, details in tests]
    found = list(dict.fromkeys(found))
    more = len(found) - NAMED
    return found[:NAMED] + ([f"  {name}: and {more:,} more"] if more > 0 else [])


def promise_text(plan: Mapping[str, Any]) -> str:
    """Promise of the session and split of the error rate, in one line."""
    parts = []
    if plan["tests"]:
        parts.append(f"{plural(plan['tests'], 'test')} with {_rate(plan['test_error'])} each")
    if plan["reserving"]:
        own = plural(plan["reserving"], "test")
        whose = "its" if plan["reserving"] == 1 else "their"
        parts.append(f"{own} with a confidence of {whose} own, {_rate(plan['reserved'])} in all")
    if plan["lists"]:
        kept = plan["stated_list_error"] * plan["list_factor"]
        scaled = f" (scaled down from {_rate(plan['stated_list_error'])})" if plan["list_factor"] < 1.0 else ""
        parts.append(f"{plural(plan['lists'], 'list')} of checks with {_rate(kept)} in all{scaled}")
    seeds = "fixed seeds" if plan["seed"] is None else f"seed {plan['seed']} for each audit that states none"
    if plan["session_seed"] is not None:
        seeds = f"repeated by --dp-session-seed {plan['session_seed']}"
    return (
        f"{plan['confidence']:.12g} confidence for the session: a false alarm, in whichever audit, replay or check, in "
        f"at most {_rate(plan['error_rate'])} of sessions ({', '.join(parts)}); profile {plan['profile']}, {seeds}"
    )


def one_log(logs: list[str]) -> str:
    """SARIF logs of several audits as one with one run: code scanning takes one run of a tool.

    Logs of one version of dpaudit have the same driver, so that indices into its rules keep their meaning.
    """
    from dpaudit.results.saving import json_text

    first, *others = [json.loads(log) for log in logs]
    run = first["runs"][0]
    run.pop("properties", None)
    for log in others:
        for other in log["runs"]:
            if other["tool"] != run["tool"]:
                raise UsageError("report must be SARIF logs of one version of dpaudit, got several.")
            run["results"] += other["results"]
    return json_text(first)


def _result(record: dict[str, Any]) -> AuditResult | None:
    """The result that a record carries; None where the audit broke, or its saved witness was enough."""
    from dpaudit.results.model import AuditResult

    text = record.get("result")
    return AuditResult.from_dict(json.loads(text)) if text is not None else None


def _earlier(out: Path, now: set[Path]) -> list[Path]:
    """Reports of audits and sessions in a folder of reports that were not written now."""
    from dpaudit.reports import other_reports

    folders = sorted(folder for folder in out.iterdir() if folder.is_dir())
    stems = ("audit", "check")
    found = [path for folder in folders for stem in stems for path in other_reports(folder, now, stem)]
    return [*other_reports(out, now, "session"), *other_reports(out, now), *found]


def _slug(node_id: str, call: int) -> str:
    """A folder's name: readable, different for different calls, the same in every session."""
    digest = hashlib.sha256(f"{node_id}\n{call}".encode("utf-8", "replace")).hexdigest()[:8]
    readable = re.sub(r"[^\w.-]+", "-", node_id.rpartition("/")[2], flags=re.ASCII).strip("-.")[:80]
    return f"{readable or 'test'}-{digest}"


def _rate(value: float) -> str:
    return f"{value:.3g}"


def judged(
    config: pytest.Config, listed: Sequence[Mapping[str, Any]], processes: Sequence[Mapping[str, Any]]
) -> list[tuple[str, bool]]:
    """Line on each known violation that `[tool.dpaudit]` lists and no collected test has; whether it fails the session.

    It does from its date on. A test that was renamed, deleted, or has no audit any more cannot judge its own entry. No
    entry is judged where tests were deselected (other than by `--dp-only`), files ignored or nothing run; nor one whose
    file lies outside of what the command line names, or could not be collected. `processes` are those that collected
    (with pytest-xdist each worker collects everything), by what `Plan.account` says of it.
    """
    option = config.option
    chosen = any(getattr(option, name, None) for name in ("lf", "ignore", "ignore_glob", "collectonly"))
    if not processes or chosen or any(one["is_selected"] for one in processes):
        return []
    unread = {node_id for one in processes for node_id in one["unread"]}
    lines = []
    for position in sorted(set.intersection(*(set(one["missing"]) for one in processes))):
        entry = listed[position]
        test = str(entry["test"])
        if not _is_below(config, test) or any(test.startswith(node_id) for node_id in unread):
            continue
        known = listed_violation(entry)  # one that makes no sense has stopped the session
        expired = f" and expired on {known.expires.isoformat()}" if known.is_expired else ""
        text = f"{test!r} ({known.reason}) belongs to no test that audits{expired}: correct or remove it in {LIST}"
        lines.append((text, known.is_expired))
    return lines


def _is_below(config: pytest.Config, test: str) -> bool:
    """Tell whether the session was to collect the file of a node id."""
    if config.args_source is config.ArgsSource.TESTPATHS:
        return True
    file = config.rootpath / test.partition("::")[0]
    for argument in config.args:
        place = Path(config.invocation_params.dir / argument)
        if "::" not in argument and (place == file or place in file.parents):
            return True
    return False
