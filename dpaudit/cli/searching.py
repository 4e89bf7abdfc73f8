"""The options by which `dpaudit audit` searches for pairs."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpaudit.cli.group import Command, tell
from dpaudit.errors import UsageError
from dpaudit.files import check_columns, parsed_json, parsing, read_csv, read_json, read_rows, read_table

if TYPE_CHECKING:
    from dpaudit.audits.searching import Search
    from dpaudit.subjects.callables import Subject

OPTIONS = (
    click.option(
        "--search",
        metavar="SPEC",
        help="Search for the worst pairs: a domain as JSON, a JSON file, or module:attribute (a domain, or a "
        "hypothesis strategy of pairs). The JSON is one of "
        '{"kind": "number", "low": 0, "high": 5, "change": 1, "integer": false}; '
        '{"kind": "vector", "length": 3, "low": 0, "high": 5, "change": 1, "adjacency": "each", "one" or "moved"}; '
        '{"kind": "dataset", "low": 0, "high": 1, "largest": 20, "adjacency": "add_remove" or "replace_one"}, with '
        '"values": [...] in place of "low" and "high" for records that are no numbers; '
        '{"kind": "inputs", "inputs": [...]}, any two of which are a pair.',
    ),
    click.option(
        "--example",
        metavar="FILE|TARGET",
        help="An input like which pairs are made: a .csv, .parquet or .json file, or module:attribute (a list, array, "
        "DataFrame or number, or a hypothesis strategy of inputs). Without --pairs, --search and an example it is "
        "guessed from the mechanism's default value or type hint.",
    ),
    click.option("--user", metavar="COLUMN", help="Of a table: the column that says whose a row is."),
    click.option("--examples", metavar="FILE", help="Search near example data: a JSON list of datasets or inputs."),
    click.option(
        "--adjacency",
        type=click.Choice(["add_remove", "replace_one"]),
        help="Of datasets that are made from examples or guessed.  [default: that of the claim, or add_remove]",
    ),
    click.option("--search-budget", type=int, help="About this many runs for the search.  [default: 200000]"),
    click.option("--search-pairs", type=int, help="Pairs that the search chooses for the audit.  [default: 3]"),
)


def with_search(command: Command) -> Command:
    """The command with the options of a search."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def chosen_search(given: Any) -> Search | None:
    """The search that the options ask for; None if they ask for none.

    `UsageError` if there are pairs as well as a search, two places to search in, or one that cannot be read; or an
    adjacency without examples.
    """
    pairs, search, examples = given.pairs, given.search, given.examples
    if given.adjacency is not None and examples is None and (pairs is not None or search is not None):
        near = " With --pairs it is part of --claim." if pairs is not None else ""
        raise UsageError(f"examples must be given with --adjacency, got {given.adjacency!r} without them.{near}")
    if search is None and examples is None:
        if pairs is not None:
            _check_no_sizes(given)
        return None
    places = [name for name, value in (("pairs", pairs), ("search", search), ("examples", examples)) if value]
    if len(places) != 1:
        raise UsageError(f"pairs must be given in one way, got --{' and --'.join(places)}.")
    domain = read_domain(search) if search is not None else None
    return _search(given, domain, examples=None if examples is None else read_list(examples), adjacency=given.adjacency)


def guessed_searches(subjects: Sequence[Subject], given: Any) -> list[Search | None]:
    """For each subject a search in a guessed domain, said on stderr; None for one that has pairs of its own.

    `UsageError` if nothing can be guessed, with what to give.
    """
    from dpaudit.privacy.neighbours import searched_relation
    from dpaudit.search.default_domains import guess_domain

    example = read_example(given.example) if given.example is not None else None
    found: list[Search | None] = []
    for subject in subjects:
        if example is None and getattr(subject.mechanism, "pairs", None) is not None:
            _check_no_sizes(given)
            found.append(None)
            continue
        adjacency = given.adjacency or searched_relation(subject.claim)
        guess = guess_domain(subject.mechanism, example, adjacency, given.user)
        found.append(_search(given, guess.domain))
        tell(f"{subject.target or subject.name}: {guess.text}")
    return found


def _search(given: Any, domain: Any, **more: Any) -> Search:
    from dpaudit.audits.searching import Search

    stated = {"budget": given.search_budget, "pairs": given.search_pairs}
    numbers = {name: value for name, value in stated.items() if value is not None}
    return Search(domain, grey_box=given.grey_box is not False, **more, **numbers)


def _check_no_sizes(given: Any) -> None:
    if given.search_budget is not None or given.search_pairs is not None:
        raise UsageError("search must be given with --search-budget or --search-pairs, got none. Or --examples.")


def read_example(text: str) -> Any:
    """The input of a file or of module:attribute.

    A CSV or Parquet file is a DataFrame where pandas is installed, else a list of dictionaries. `UsageError` if it
    cannot be read, or Parquet is asked for without a library that reads it.
    """
    from dpaudit.subjects.targets import is_python_pairs

    suffix = Path(text).suffix.lower()
    if suffix not in (".csv", ".parquet", ".json") and is_python_pairs(text):
        return _loaded(text, "example")
    if suffix == ".json":
        value = read_json("example", text)
        first = value[0] if isinstance(value, list) and value else None
        check_columns("example", list(first) if isinstance(first, dict) else [], repr(text))
        return value
    if suffix not in (".csv", ".parquet"):
        raise UsageError(f"example must be a .csv, .parquet or .json file or module:attribute, got {text!r}.")
    try:
        import pandas
    except ImportError:
        table = _table_without_pandas(text, suffix)
    else:
        with parsing("example", "a readable table", repr(text)):
            if suffix == ".csv":
                table = pandas.read_csv(io.StringIO(read_csv("example", text)))
            else:
                table = read_table(
                    "example", text, lambda file: file.read(use_threads=False).to_pandas(use_threads=False)
                )
    if not len(table):
        raise UsageError(f"example must have at least one row, got none at {text!r}.")
    return table


def _table_without_pandas(path: str, suffix: str) -> list[dict[str, Any]]:
    """A table as dictionaries; what looks like a number in a CSV file is one."""
    if suffix == ".parquet":
        records: list[dict[str, Any]] = read_table("example", path, lambda file: file.read().to_pylist())
        return records

    def cell(text: str) -> Any:
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
        return text or None

    header, *rows = read_rows("example", path) or [[]]
    check_columns("example", header, repr(path))
    return [{name: cell(value) for name, value in zip(header, row, strict=False)} for row in rows]


def read_domain(text: str, name: str = "search") -> Any:
    """Value of a SPEC: the object of module:attribute (called, if it is a function), or the domain of its JSON."""
    from dpaudit.subjects.domains import domain_from_dict
    from dpaudit.subjects.targets import is_python_pairs

    if not is_python_pairs(text):
        is_json = text.lstrip().startswith("{")
        record = parsed_json(name, text, repr(text[:60])) if is_json else read_json(name, text)
        try:
            return domain_from_dict(record)
        except UsageError as error:
            raise UsageError(f"{error} (at {name} {text[:60]!r})") from error
    return _loaded(text, name)


def _loaded(text: str, name: str) -> Any:
    """The object of module:attribute; what it returns, if it is a function."""
    from dpaudit.subjects.targets import load_target, what_raised

    value = load_target(text)
    is_strategy = hasattr(value, "example") and hasattr(value, "map")  # of hypothesis, which need not be installed
    if is_strategy or not callable(value):
        return value
    try:
        return value()
    except (Exception, SystemExit) as error:
        raised = what_raised(error)
        raise UsageError(f"{name} must be a function without arguments, got {raised} ({text!r}).") from error


def read_list(path: str) -> list[Any]:
    """The examples of a JSON file."""
    if Path(path).suffix.lower() in (".csv", ".parquet"):
        raise UsageError(f"examples must be a JSON list, got a table at {path!r}. Give a table with --example.")
    examples = read_json("examples", path)
    if not isinstance(examples, list):
        raise UsageError(f"examples must be a JSON list, got {type(examples).__name__} at {path!r}.")
    if not examples:
        raise UsageError(f"examples must be at least one dataset or input, got an empty list at {path!r}.")
    return examples
