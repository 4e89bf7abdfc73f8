"""No report states the confidence of an audit whose draws depend on each other without saying so."""

import dataclasses
import io
import re

import pytest
from rich.console import Console

from dpaudit import reports
from dpaudit.cli import audit as command
from dpaudit.pytest_plugin.texts import failure_text
from dpaudit.reports import wording


@pytest.fixture(params=["call_order", "independence"])
def dependent(synthetic, request):
    return synthetic.dependent(request.param)


def confidences(text):
    """Say what stands behind every statement of 95% confidence."""
    return re.findall(r"95%(?: confidence| \|)?(.{0,80})", re.sub(r"\s+", " ", text.replace("\\", "")))


@pytest.mark.parametrize("format", ["md", "junit", "sarif"])
@pytest.mark.parametrize("profile", reports.PROFILES)
def test_every_report_that_states_the_confidence_says_that_it_is_not_to_be_relied_on(dependent, format, profile):
    content = reports.render(dependent, format, profile)
    found = confidences(content.decode() if isinstance(content, bytes) else content)
    assert found and all(wording.UNRELIABLE in after for after in found)


def test_the_terminal_and_the_messages_of_tests_say_it_too(dependent, monkeypatch):
    console = Console(file=io.StringIO(), width=200, color_system=None)
    command._show(console, dependent, ())
    for text in (console.file.getvalue(), failure_text(dependent, "")):
        found = confidences(text)
        assert found and all(wording.UNRELIABLE in after for after in found)


def test_of_independent_draws_nothing_is_said(dependent):
    sound = dataclasses.replace(dependent, side_findings=())
    assert wording.confidence_text(sound) == "95% confidence"
    assert wording.UNRELIABLE not in str(reports.render(sound, "md"))
