"""Settings of a session: options of the command line and of ini files, the profile, `[tool.dpaudit]`, seeds.

An option of an audit comes from the call, else from the test's mark `dp_audit`, else from the command line, else from
the profile, else from pytest's ini file, else from `[tool.dpaudit]` of pyproject.toml, else it is the default of
`dpaudit.audit`.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from dpaudit.arguments import check_options, number, whole_number
from dpaudit.errors import UsageError
from dpaudit.profiles import Profile, profile_named
from dpaudit.pytest_plugin.marks import listed_violation

if TYPE_CHECKING:
    from dpaudit.config import Config

CONFIDENCE = 0.95  # of a session where nobody states one
CACHE = ".dpaudit"
PROJECT_FILE = "pyproject.toml"
OUT = "dpaudit-out"
SEED_INPUT = "dpaudit_session_seed"  # what the controller of xdist tells its workers
PROFILE_OPTIONS = ("samples", "mode", "floating_point", "event_mass", "inconclusive_factor")
AUDIT_OPTIONS: dict[str, tuple[type, str]] = {
    "samples": (int, "runs on each input of a pair, about and at most, for each dp_audit"),
    "seed": (int, "seed of each dp_audit, instead of one derived from the test's node id; nothing saved is replayed"),
    "mode": (str, "sequential (stop as soon as the evidence is there), adaptive (draw more where it grows) or fixed"),
    "seconds": (float, "time of each dp_audit, about: it takes as many samples as fit, and says what was cut"),
    "isolation": (str, "limits of the process that runs each mechanism, such as seconds=1,memory=2G; off: none"),
}
SESSION_OPTIONS: dict[str, tuple[type, str]] = {
    "confidence": (float, "confidence of the whole session, in (0, 1): its audits and checks share 1 - confidence"),
    "test-error": (float, "error rate of each test that audits, if below its even share (lines that replay say it)"),
    "profile": (str, "default, quick, ci, nightly, or one that dpaudit.register_profile made"),
    "session-seed": (int, "what seeds are derived from, with the test's node id: repeats a session of fresh seeds"),
    "report": (str, "formats of one report of the session, with commas or given several times: json,html,md,..."),
    "out": (str, f"folder of the report (default: that of [tool.dpaudit], else {OUT})"),
    "cache": (str, f"folder of saved witnesses, replayed first in the next run (default: {CACHE}; none: keep none)"),
    "store": (str, "file of evidence that accumulates from session to session, of tests that say their confidence"),
}
ONLY = "run only tests that audit, and checks of dpaudit.parametrize_with_checks"
STRICT = "fail a test whose audit is inconclusive, or whose low bits leak, instead of warning"


def add_options(parser: pytest.Parser) -> None:
    """Options `--dp-*`, and ini keys of the same names."""
    group = parser.getgroup("dpaudit", "differential privacy audits (dpaudit)")
    for name, (kind, text) in (AUDIT_OPTIONS | SESSION_OPTIONS).items():
        key = f"dp_{name.replace('-', '_')}"
        action = "append" if name == "report" else "store"
        group.addoption(f"--dp-{name}", dest=key, type=kind, action=action, default=None, help=text)
        parser.addini(key, text)
    group.addoption("--dp-strict", dest="dp_strict", action="store_true", default=None, help=STRICT)
    parser.addini("dp_strict", STRICT)
    group.addoption("--dp-only", dest="dp_only", action="store_true", default=False, help=ONLY)


class Settings:
    """The options of one session, each read where it is first asked for."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        try:
            if not self.is_worker:  # what workers are told has been looked at
                self._check()
            self.profile: Profile = profile_named(self._stated("profile") or "default")
            self._check_test_error()
            self.session_seed: int | None = self._session_seed()
        except UsageError as error:
            raise pytest.UsageError(str(error)) from error

    def _check(self) -> None:
        """`UsageError` if an option makes no sense, wherever it is stated, with the place; of numbers, words and flags.

        What a mark or a call states is told by its test.
        """
        # Of `addopts` and the command line the latter decides, by pytest's rule; within the command line nothing does.
        words = [str(word).partition("=")[0] for word in self.config.invocation_params.args]
        for name in AUDIT_OPTIONS | SESSION_OPTIONS:
            if name != "report" and words.count(f"--dp-{name}") > 1:
                raise UsageError(f"--dp-{name} must be given once, got it {words.count(f'--dp-{name}')} times.")
        for name in AUDIT_OPTIONS | SESSION_OPTIONS:
            key = name.replace("-", "_")
            for value, place in self._stated_at(name):
                try:
                    check_options(**{key: value})
                    if key == "test_error":
                        number(key, value, "in (0, 1)", lambda rate: 0.0 < rate < 1.0)
                    elif key == "session_seed":
                        whole_number(key, value, "a non-negative integer", 0)
                    elif key == "isolation":
                        from dpaudit.subjects.isolation import as_isolation

                        as_isolation(value)
                    elif key == "profile" and value:  # an empty text is the default
                        profile_named(value)
                except UsageError as error:
                    raise UsageError(f"{str(error).removesuffix('.')} at {place}.") from None
        self._ini_strict()
        self._check_places()
        if self._is_in_project_file:
            for entry in self.project.known_violations:
                listed_violation(entry)
            if self.project.isolation is not None:
                from dpaudit.subjects.isolation import as_isolation

                try:
                    as_isolation(self.project.isolation)
                except UsageError as error:
                    raise self.project.located(error, ()) from error

    def _check_test_error(self) -> None:
        """`UsageError` if each test is to have more than the session; what all have together is seen when collected."""
        error, place = next(self._stated_at("test-error"), (0.0, ""))
        if error and error > (rate := 1.0 - self.confidence) * (1 + 1e-9):  # without one no file is read here
            raise UsageError(
                f"test_error must be at most {rate:.3g}, the error rate of the session, got {error!r} at {place}."
            )

    def _check_places(self) -> None:
        """`UsageError` if nothing can be written where the command line says that witnesses and evidence go."""
        places = {"cache": self.cache, "store": self.store.parent if self.store is not None else None}
        for name, folder in places.items():
            if self.from_command_line(name) and folder is not None:
                from dpaudit.results.saving import check_folder  # with numpy: only where there is something to check

                check_folder(f"--dp-{name}", folder)
        if self.from_command_line("store") and self.store is not None and self.store.exists():
            from dpaudit.running.store import Store

            Store.at(self.store, create=False).close()

    @functools.cached_property
    def _is_in_project_file(self) -> bool:
        """Tell whether the nearest pyproject.toml speaks of dpaudit at all; one that does not is not read."""
        root = self.config.rootpath
        files = (folder / PROJECT_FILE for folder in (root, *root.parents))
        file = next((file for file in files if file.is_file()), None)
        return file is not None and b"dpaudit" in file.read_bytes()

    @property
    def is_worker(self) -> bool:
        """Tell whether this is a worker of pytest-xdist."""
        return hasattr(self.config, "workerinput")

    @functools.cached_property
    def project(self) -> Config:
        """`[tool.dpaudit]` of the nearest pyproject.toml above pytest's root."""
        from dpaudit.config import Config, read_config

        return read_config(self.config.rootpath) if self._is_in_project_file else Config()

    @property
    def known_violations(self) -> tuple[Mapping[str, Any], ...]:
        """The entries of that file; where it does not speak of dpaudit nothing is imported to read it."""
        return self.project.known_violations if self._is_in_project_file else ()

    @property
    def confidence(self) -> float:
        """Of the session."""
        return float(self._first("confidence", lambda: self.from_ini("confidence"), CONFIDENCE))

    @property
    def test_error(self) -> float | None:
        """Error rate of each test that audits, at most; None: its even share."""
        return cast("float | None", self._stated("test-error"))

    @property
    def strict(self) -> bool:
        """Tell whether what would warn fails."""
        return bool(self._first("strict", self._ini_strict, False))

    def _first(self, name: str, ini: Callable[[], Any], default: Any) -> Any:
        """The value that the command line states, else the profile, else the ini file, else the project's file."""
        if (value := self.from_command_line(name)) is None and (value := getattr(self.profile, name)) is None:
            value = ini()
        value = getattr(self.project, name) if value is None else value
        return default if value is None else value

    def _ini_strict(self) -> bool | None:
        text = str(self.config.getini("dp_strict") or "").strip().lower()
        if text not in ("", "0", "1", "false", "no", "true", "yes"):
            raise UsageError(f"dp_strict must be true or false, got {text!r} at {self._ini_place('dp_strict')}.")
        return text in ("1", "true", "yes") if text else None

    @property
    def formats(self) -> tuple[str, ...]:
        """Of the session's report; none: no report."""
        text = self._stated("report")
        if not text:
            return ()
        from dpaudit.config import formats

        return formats(text)

    @property
    def out(self) -> Path:
        """Folder of the report."""
        return self._folder("out") or self.project.out or self.config.rootpath / OUT

    @property
    def cache(self) -> Path | None:
        """Folder of saved witnesses; None where none are kept."""
        stated = self._folder("cache") or self.config.rootpath / CACHE
        return None if stated.name.lower() == "none" else stated

    @property
    def store(self) -> Path | None:
        """File of the evidence store; None where none is kept."""
        return self._folder("store")

    def audit_options(self, call: dict[str, Any], mark: dict[str, Any]) -> dict[str, Any]:
        """The options of one call as far as they are stated in the session; the rest is the project's."""
        stated = {name: self.from_ini(name) for name in AUDIT_OPTIONS}
        if self.profile.seeds == "fresh":
            stated["seed"] = None
        profile = {name: getattr(self.profile, name) for name in PROFILE_OPTIONS}
        command_line = {name: self.from_command_line(name) for name in AUDIT_OPTIONS}
        for source in (profile, command_line, mark, call):
            stated |= {name: value for name, value in source.items() if value is not None}
        return {name: value for name, value in stated.items() if value is not None}

    def seed_of(self, node_id: str, number: int) -> int:
        """A seed in [0, 2**32) for one call in one test: the same on every machine, and others for other tests."""
        root = "" if self.session_seed is None else f"\n{self.session_seed}"
        text = f"{node_id}\n{number}{root}"
        return int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:4], "big")

    @property
    def one_seed(self) -> tuple[int, str] | None:
        """The seed of every audit that states none, where the session says one, and the place that does."""
        given = self.from_command_line("seed")
        if given is not None:
            return int(given), "--dp-seed"
        if self.profile.seeds == "fresh":
            return None  # what files say is not read
        found = self.from_ini("seed")
        if found is not None:
            return int(found), self._ini_place("dp_seed")
        return (self.project.seed, "[tool.dpaudit]") if self.project.seed is not None else None

    def from_command_line(self, name: str) -> Any:
        """Value of `--dp-NAME`, lists that were given one by one as one; None where it is not given."""
        value = self.config.getoption(f"dp_{name.replace('-', '_')}")
        return ",".join(value) if isinstance(value, list) else value

    def from_ini(self, name: str) -> Any:
        """Value of the ini key `dp_NAME`; None where it is not given."""
        kind, _ = (AUDIT_OPTIONS | SESSION_OPTIONS)[name]
        key = f"dp_{name.replace('-', '_')}"
        text = str(self.config.getini(key) or "").strip()
        if not text:
            return None
        try:
            return kind(text)
        except ValueError as error:
            place = self._ini_place(key)
            raise UsageError(f"{key} must be of type {kind.__name__}, got {text!r} at {place}.") from error

    def _ini_place(self, key: str) -> str:
        file = self.config.inipath
        return f"the ini option {key}" + (f" of {str(file)!r}" if file is not None else "")

    def _stated_at(self, name: str) -> Iterator[tuple[Any, str]]:
        """The values that the command line and the ini file state, in this order, with their places."""
        if (value := self.from_command_line(name)) is not None:
            yield value, f"--dp-{name}"
        if (value := self.from_ini(name)) is not None:
            yield value, self._ini_place(f"dp_{name.replace('-', '_')}")

    def _stated(self, name: str) -> Any:
        return next(self._stated_at(name), (None, ""))[0]

    def _folder(self, name: str) -> Path | None:
        """A path: of the command line, from where pytest was called; of the ini file, from pytest's root."""
        stated = self.from_command_line(name)
        if stated:
            return self.config.invocation_params.dir / str(stated)
        found = self.from_ini(name)
        return self.config.rootpath / str(found) if found else None

    def _session_seed(self) -> int | None:
        """Seed that other seeds derive from, beside node ids; None where there is none, or all audits have the same."""
        stated: int | None = self._stated("session-seed")
        is_fresh = self.profile.seeds == "fresh"
        if stated is None and not is_fresh:  # then the files that may state a seed are not read
            return None
        one = self.one_seed
        given = self.from_command_line("session-seed")
        if one is not None and given is not None:
            raise UsageError(
                f"session_seed must not be given with one seed for all audits, got {given!r} at --dp-session-seed and "
                f"{one[0]!r} at {one[1]}."
            )
        if one is not None:
            return None
        if stated is None:
            seed = getattr(self.config, "workerinput", {}).get(SEED_INPUT)
            return int(seed) if seed is not None else int.from_bytes(os.urandom(4), "big")
        return stated
