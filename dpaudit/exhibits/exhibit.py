"""An exhibit of the museum: a bug that somebody shipped, re-created, with its mended version and all an audit needs.

Conventions
-----------
* The faulty and the mended version have the same interface and are audited against the same claim on the same domain.
* `domain` is all that a search is told. `pair` is the pair that an expert would choose; no search sees it.
* `source` names a repository with the number of an issue, a pull request or a commit (`owner/name#12`), an advisory, a
  paper (`arXiv:1234.56789`, or its title), or a page of this project's. Never a person.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from dpaudit.arguments import did_you_mean
from dpaudit.errors import UsageError
from dpaudit.extensions import extensions
from dpaudit.privacy.claims import Claim

Kind = Literal[
    "sensitivity",
    "neighbours",
    "noise",
    "selection",
    "accounting",
    "post-processing",
    "floating point",
    "not a number",
    "exceptions and sizes",
    "local and federated",
    "metric",
    "learning",
    "synthetic data",
    "delta and conversions",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
Channel = Literal["outputs", "low bits"]
CHANNELS: tuple[Channel, ...] = get_args(Channel)
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_DISTRIBUTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]*", re.ASCII)
_REPOSITORY = re.compile(r"([\w.-]+/[\w.-]+)#(\d+)")
_PAPER = re.compile(r"arXiv:(\d{4}\.\d{4,5})")


@dataclasses.dataclass(frozen=True, eq=False)
class Release:
    """A released library in which the bug is, was, or is mended.

    Parameters
    ----------
    package : str
        The name of the distribution that has to be installed.
    versions : str
        The version that is audited; of a release without a program, in which the bug is known to be.
    mechanism : callable, optional
        Takes nothing, imports the library from this environment, and returns the mechanism: same input and claim as the
        exhibit's.
    program : Path, optional
        In place of `mechanism`: a file with a function `mechanism` that returns a function of one input. It is served
        in an environment of its own (`dpaudit.exhibits.environments`), so it imports nothing of ours.
    needs : tuple of str
        What pip installs beside the package, which is installed without its own requirements: old pins seldom install.
    called : str
        What is called, as a user would write it.
    mended : bool
        Whether the bug is mended in this version, which the audit should not refute.

    Raises
    ------
    UsageError
        If not exactly one of `mechanism` and `program` is given, or the package or version of a program is no name.
    """

    package: str
    versions: str
    mechanism: Callable[[], Any] | None = None
    program: Path | None = None
    needs: tuple[str, ...] = ()
    called: str = ""
    mended: bool = False

    def __post_init__(self) -> None:
        if (self.mechanism is None) == (self.program is None):
            given = "neither" if self.mechanism is None else "both"
            raise UsageError(f"mechanism or program must be given, got {given} at {self.package!r}.")
        # Both name a folder, and are words of pip's command line.
        for name, text in (("package", self.package), ("versions", self.versions)):
            if self.program is not None and not _DISTRIBUTION.fullmatch(text):
                raise UsageError(f"{name} of a program must be letters, digits and .-_+!, got {text!r}.")
        for need in self.needs:
            if not need[:1].isalnum():
                raise UsageError(f"needs must be requirements, got {need!r} at {self.package!r}.")

    def installed(self) -> str | None:
        """The version that is installed; None where the library is absent."""
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return None


@dataclasses.dataclass(frozen=True, eq=False)
class Exhibit:
    """One bug of the museum; see the module.

    Parameters
    ----------
    name : str
        Lower-case words with hyphens between; unique in a museum.
    kind : str
        One of `KINDS`.
    source : str
        Where the bug was found.
    wrong : str
        What is wrong, as a sentence or two.
    claim : Claim or str
        What both versions promise.
    faulty, mended : mechanism
        Each what `dpaudit.audit` takes.
    domain : Domain or strategy
        What a search is told.
    pair : tuple (x, x_prime)
        What an expert would choose.
    channel : {"outputs", "low bits"}
        Where the bug shows: in the verdict, or in the finding about the low bits of floating-point outputs.
    out_of_reach : str
        Why no audit at default settings finds it, and what it would take; empty where one should.
    releases : tuple of Release
        Real libraries that are audited beside the re-creation.

    Raises
    ------
    UsageError
        If a name, kind or channel is none, or the pair is not two inputs.

    Examples
    --------
    >>> def faulty(data, size, rng):
    ...     return sum(data) + rng.laplace(scale=0.5, size=size)
    >>> def mended(data, size, rng):
    ...     return sum(data) + rng.laplace(size=size)
    >>> from dpaudit.domains import DatasetDomain
    >>> bug = Exhibit("half-the-noise", "noise", "an example", "half of the noise", "eps=1", faulty, mended,
    ...               DatasetDomain.between(0.0, 1.0), ([], [1.0]))
    >>> bug.link
    ''
    """

    name: str
    kind: Kind
    source: str
    wrong: str
    claim: Claim | str
    faulty: Any
    mended: Any
    domain: Any
    pair: tuple[Any, Any]
    channel: Channel = "outputs"
    out_of_reach: str = ""
    releases: tuple[Release, ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError(f"name must be lower-case words with hyphens between them, got {self.name!r}.")
        if self.kind not in KINDS:
            raise UsageError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r} at {self.name!r}.")
        if self.channel not in CHANNELS:
            raise UsageError(f"channel must be one of {', '.join(CHANNELS)}, got {self.channel!r} at {self.name!r}.")
        if not self.source.strip() or not self.wrong.strip():
            raise UsageError(f"source and wrong must be texts, got an empty one at {self.name!r}.")
        if not isinstance(self.pair, tuple) or len(self.pair) != 2:
            raise UsageError(f"pair must be a tuple (x, x_prime), got {self.pair!r:.80} at {self.name!r}.")

    @property
    def link(self) -> str:
        """The address of the source, where it is a public repository or a paper; else empty.

        GitHub leads from the number of an issue to a pull request of that number.
        """
        found = _REPOSITORY.search(self.source)
        if found:
            return f"https://github.com/{found[1]}/issues/{found[2]}"
        found = _PAPER.search(self.source)
        return f"https://arxiv.org/abs/{found[1]}" if found else ""


GROUP = "dpaudit.museum"


def museum(*names: str) -> tuple[Exhibit, ...]:
    """The exhibits of all installed museums, by kind and name; or those that are named.

    The object of an entry point of `GROUP` is a function without arguments that returns exhibits, of any package.

    Raises
    ------
    UsageError
        If a museum cannot be loaded, two exhibits have one name, or a name is none.

    Examples
    --------
    >>> [exhibit.source for exhibit in museum("one-key-for-all-layers")]
    ['jax-ml/jax#3646']
    """
    found: dict[str, Exhibit] = {}
    for source, listed in extensions(GROUP):
        if not callable(listed):
            raise UsageError(f"museum must be a function that returns exhibits, got {listed!r:.80} at {source!r}.")
        for exhibit in listed():
            if not isinstance(exhibit, Exhibit):
                raise UsageError(f"museum must return exhibits, got {exhibit!r:.80} at {source!r}.")
            if exhibit.name in found:
                raise UsageError(f"exhibits must have different names, got {exhibit.name!r} twice.")
            found[exhibit.name] = exhibit
    for name in names:
        if name not in found:
            raise UsageError(f"name must be a case of the bug corpus, got {name!r}.{did_you_mean(name, found)}")
    chosen = [found[name] for name in dict.fromkeys(names)] if names else list(found.values())
    return tuple(sorted(chosen, key=lambda exhibit: (exhibit.kind, exhibit.name)))
