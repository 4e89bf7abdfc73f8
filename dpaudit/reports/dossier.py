"""Saved results that are reported together: audits, checks of the conformance suite and tests of error bounds.

A dossier is what every format but the pages of a single audit is rendered from. It knows the files it was read from by
their SHA-256, and what the deployment declares about itself (`dpaudit.reports.deployment`).
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpaudit.conformance.result import CheckResult
from dpaudit.reports.deployment import Deployment
from dpaudit.reports.document import Block
from dpaudit.reports.severity import Severity
from dpaudit.reports.words import words
from dpaudit.results.model import AuditResult, Verdict
from dpaudit.results.saving import Saved
from dpaudit.results.utility_result import UtilityResult
from dpaudit.results.verdicts import gravest

if TYPE_CHECKING:
    from dpaudit.scores.result import ScoresResult
    from dpaudit.symbolic.certificate import Certificate

Result = AuditResult | CheckResult | UtilityResult
SYMBOLS: Mapping[Verdict, str] = {"violated": "✗", "error": "!", "inconclusive": "?", "not_refuted": "✓"}
FAILED: str = words("row.failed")  # of checks that are no promise of privacy
WORDS: Mapping[Verdict, str] = words("row.verdicts")
LOW_BITS: str = words("release.bits")  # found beside a verdict


@dataclasses.dataclass(frozen=True)
class Source:
    """One result of a dossier with the file it came from.

    `name` is the path as the caller wrote it; `digest` the file's SHA-256 in hexadecimal, or of the result's own JSON
    where it came from no file; `is_keyed` says that a secret key went into it (`dpaudit.reports.redaction`).
    """

    name: str
    digest: str
    result: Result
    is_keyed: bool = False

    def named(self, name: str) -> Source:
        """The same result, of a file of this name."""
        return dataclasses.replace(self, name=name)


@dataclasses.dataclass(frozen=True)
class Line:
    """Statement of one result on one promise: a row of page one.

    `low` is a proven lower bound over the promise, `high` an upper one, `blind` the least excess that would have been
    noticed with 90% probability, of an event of the hardest form (of one that is known, in older results): all as
    multiples of the promise, None where there is none. `tried` says what is found of that form, None for a known event.
    `word` stands in the place of the word of the verdict, `settles` is what would settle it, `sentence` what was found,
    for running text, `tested` what it was found on, `remark` what is odd about the outputs, `rarest` which leaks are
    too rare to be found, or of forms that are not, and `headline` all of it as a title. `is_boundless`: the claim sets
    no limit here. `beside` names what was found beside the verdict, such as low bits that break the promise.
    """

    subject: str
    kind: str
    promised: str
    measured: str
    verdict: Verdict
    sure: str
    missed: str
    severity: Severity | None = None
    low: float | None = None
    high: float | None = None
    blind: float | None = None
    tried: Mapping[str, str] | None = None
    word: str = ""
    settles: str = ""
    sentence: str = ""
    tested: str = ""
    remark: str = ""
    rarest: str = ""
    is_boundless: bool = False
    headline: str = ""
    beside: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The subject with the kind of its promise."""
        return f"{self.subject}: {self.kind}"

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells beside its name on page one."""
        return self.promised, self.measured, self.words, self.sure, self.missed

    @property
    def words(self) -> str:
        """The verdict with its symbol and, of a broken promise of privacy, how plainly that shows."""
        plain = f"{self.symbol} {self.word or WORDS[self.verdict]}"
        return plain if self.severity is None else f"{plain}: {self.severity.meaning} (grade {self.severity.place})"

    @property
    def leaks(self) -> bool:
        """True where low bits of the outputs break the promise, whatever the verdict, which reads real numbers."""
        return LOW_BITS in self.beside

    @property
    def mark(self) -> Verdict:
        """The verdict whose colour it has: low bits that break a promise leave it as open as an inconclusive test."""
        return "inconclusive" if self.leaks and self.verdict == "not_refuted" else self.verdict

    @property
    def symbol(self) -> str:
        """The sign of the verdict; of low bits that break a promise never a tick."""
        return SYMBOLS["violated" if self.leaks else self.verdict]

    @property
    def is_broken(self) -> bool:
        """True where a promise of privacy or errors is broken, and not only checks of how the code behaves."""
        return self.verdict == "violated" and self.word != FAILED


@dataclasses.dataclass(frozen=True)
class Attachment:
    """A file that is reported beside the results.

    `name` is the path as the caller wrote it, `digest` the SHA-256 of the file, `kind` a word, and `blocks` what the
    report says of it under `title`.
    """

    name: str
    digest: str
    kind: str
    title: str
    blocks: tuple[Block, ...]


@dataclasses.dataclass(frozen=True)
class Judged(Attachment):
    """A certificate or an audit of scores, which judges a promise: what it says of it is `line`.

    `subject` is as results keep it (`name`, `target`, `fingerprint`); `error_rate` is the probability of a false alarm,
    at most: 0 of a proof. `result` is what the file holds; `is_keyed` says that a secret key went into the digest
    (`dpaudit.reports.redaction`).
    """

    line: Line
    subject: Mapping[str, Any]
    error_rate: float
    result: Certificate | ScoresResult
    is_keyed: bool = False


@dataclasses.dataclass(frozen=True)
class Decision:
    """Decision about one mechanism. `conditions` is empty unless it was accepted with conditions."""

    mechanism: str
    decision: str
    conditions: str = ""


@dataclasses.dataclass(frozen=True)
class SignOff:
    """A signed block of decisions.

    `date` is ISO 8601; `decision` is that of all mechanisms that `mechanisms` does not name, or empty where it names
    every one; `results` is the digest of the results it was made on, or empty.
    """

    name: str
    role: str
    date: str
    decision: str
    conditions: str = ""
    results: str = ""
    mechanisms: tuple[Decision, ...] = ()

    def about(self, mechanism: str) -> Decision:
        """Say what was decided about this mechanism."""
        own = next((one for one in self.mechanisms if one.mechanism == mechanism), None)
        return own or Decision(mechanism, self.decision, self.conditions)


@dataclasses.dataclass(frozen=True)
class Dossier:
    """Results that are reported together, in the order given; there may be none where an attachment judges a promise.

    `deployment` is what the user declares, `sign_off` what somebody decided on these results. `is_redacted`: records
    were taken out (`dpaudit.reports.redaction`), and attachments that judge no promise.
    """

    sources: tuple[Source, ...]
    deployment: Deployment | None = None
    is_redacted: bool = False
    sign_off: SignOff | None = None
    attachments: tuple[Attachment, ...] = ()

    @classmethod
    def of(cls, *results: Result) -> Dossier:
        """The dossier of results in memory."""
        return cls(tuple(Source(kind_of(result) + ".json", digest_of(result), result) for result in results))

    @classmethod
    def alone(cls, result: Result, name: str = "") -> Dossier:
        """The dossier of one result for its own page, without its digest, which takes as long as to write its file."""
        return cls((Source(name, "", result),))

    @property
    def results(self) -> list[Result]:
        """The results, in their order."""
        return [source.result for source in self.sources]

    @property
    def audits(self) -> tuple[AuditResult, ...]:
        """The audits among the results."""
        return tuple(one for one in self.results if isinstance(one, AuditResult))

    @property
    def checks(self) -> tuple[CheckResult, ...]:
        """The runs of the conformance suite among the results."""
        return tuple(one for one in self.results if isinstance(one, CheckResult))

    @property
    def utilities(self) -> tuple[UtilityResult, ...]:
        """The tests of error bounds among the results."""
        return tuple(one for one in self.results if isinstance(one, UtilityResult))

    @property
    def judged(self) -> tuple[Judged, ...]:
        """The certificates and audits of scores among the attachments."""
        return tuple(one for one in self.attachments if isinstance(one, Judged))

    @property
    def verdict(self) -> Verdict:
        """The first of violated, error, inconclusive and not_refuted that any result has."""
        found = set(map(status_of, self.results)) | {one.line.verdict for one in self.judged}
        return gravest(found)

    @property
    def subjects(self) -> tuple[str, ...]:
        """The names of what was audited, checked or measured, each once, in the order of the results."""
        every = [subject_of(one) for result in self.results for one in subjects_of(result)]
        return tuple(dict.fromkeys([*every, *(subject_of(one.subject) for one in self.judged)]))

    def without(self, results: Iterable[Result]) -> tuple[str, ...]:
        """The names of the subjects that none of these results is about; the same code is the same subject."""
        seen = {_identity(one) for result in results for one in subjects_of(result)}
        every = [one for result in self.results for one in subjects_of(result)]
        return tuple(dict.fromkeys(subject_of(one) for one in every if _identity(one) not in seen))


def status_of(result: Result) -> Verdict:
    """The verdict of a result as reports show it: of error bounds one that is not settled is told as such."""
    return result.status if isinstance(result, UtilityResult) else result.verdict


def subjects_of(result: Result) -> Sequence[Mapping[str, Any]]:
    """Say what a result is about, as it keeps it."""
    return result.mechanisms if isinstance(result, CheckResult) else (result.subject,)


def _identity(subject: Mapping[str, Any]) -> str:
    return str(subject.get("fingerprint") or subject_of(subject))


def subject_of(subject: Mapping[str, Any]) -> str:
    """The name of a subject, as results keep it."""
    return str(subject.get("name") or subject.get("target") or "unnamed subject")


def kind_of(result: Result) -> str:
    """The kind of a result, which is also the name of its file: audit, check or utility."""
    return "audit" if isinstance(result, AuditResult) else "check" if isinstance(result, CheckResult) else "utility"


def digest_of(result: Saved) -> str:
    """SHA-256 of the file that the result is saved as."""
    return hashlib.sha256(result.to_bytes()).hexdigest()
