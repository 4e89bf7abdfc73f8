"""A dossier as JUnit XML: a test suite a subject, a test case for each thing that was tested.

JUnit knows failures, errors and skipped tests. A violation is a failure; a broken audit an error; an inconclusive case
and a known failure are skipped, with the reason in the message. What was found apart from the verdict (low bits that
leak, a side finding) is none of these: it was looked at, and fails nothing. Its name says that something was found,
which lists of passed tests show, and its output says what.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

from dpaudit.reports.cases import Case, cases
from dpaudit.reports.dossier import Dossier

SKIPPED = {
    "inconclusive": "inconclusive: ",
    "xfail": "known failure: ",
    "skipped": "does not apply: ",
}
FOUND = "found, apart from the verdict"


def render(dossier: Dossier) -> bytes:
    """The file, in UTF-8 with an XML declaration."""
    suites: dict[str, list[Case]] = {}
    for case in cases(dossier):
        suites.setdefault(case.subject_name, []).append(case)
    root = ElementTree.Element(
        "testsuites", {"name": "dpaudit", **_totals([c for part in suites.values() for c in part])}
    )
    for name, found in suites.items():
        suite = ElementTree.SubElement(root, "testsuite", {"name": name, **_totals(found)})
        for case in found:
            place = f"{name} ({case.claim})" if case.claim else name
            case_name = f"{case.name}: {FOUND}" if case.status == "warning" else case.name
            facts = {"classname": place, "name": case_name, "time": f"{case.seconds:.3f}"}
            element = ElementTree.SubElement(suite, "testcase", facts)
            if case.status in ("violated", "error"):
                kind = "failure" if case.status == "violated" else "error"
                message = f"{case.status.capitalize()}: {case.message}"
                ElementTree.SubElement(element, kind, {"type": case.status, "message": message[:300]}).text = message
            elif case.status in SKIPPED:
                ElementTree.SubElement(element, "skipped", {"message": SKIPPED[case.status] + case.message})
            elif case.status == "warning":
                ElementTree.SubElement(element, "system-out").text = f"{FOUND.capitalize()}: {case.message}"
            elif case.message:
                ElementTree.SubElement(element, "system-out").text = case.message
    ElementTree.indent(root, " ")
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _totals(found: Sequence[Case]) -> dict[str, str]:
    status = [case.status for case in found]
    return {
        "tests": str(len(found)),
        "failures": str(status.count("violated")),
        "errors": str(status.count("error")),
        "skipped": str(sum(one in SKIPPED for one in status)),
        "time": f"{sum(case.seconds for case in found):.3f}",
    }
