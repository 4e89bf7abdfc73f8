"""Command `dpaudit bench`: read its options, run, and say what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group

from dpaudit.arguments import check_options, did_you_mean
from dpaudit.bench.benching import FILE, run_bench
from dpaudit.bench.design import PARTS, make_design
from dpaudit.bench.extra import Extra
from dpaudit.bench.extras import SETS, load_extras
from dpaudit.bench.figure import write_figure
from dpaudit.bench.problem import load_problems
from dpaudit.bench.speed_page import into_page, write_speed
from dpaudit.bench.summary import overall_lines, tables
from dpaudit.errors import UsageError
from dpaudit.reports import terminal
from dpaudit.reports.document import Paragraph, Table


def bench(given: Any, tell: Callable[[str], None]) -> tuple[Group, list[Path], bool]:
    """Run the bench of the command line's options: what to print, the files, and whether anything broke.

    `UsageError` if an option, a name of a problem or the place for the files makes no sense.
    """
    design = make_design(given.quick, given.seeds, given.seed)
    check_options(jobs=given.jobs)
    parts, extras = chosen_parts(given.only, load_extras(), given.memory, has_names=bool(given.problems))
    problems, folder = load_problems(given.problems), Path(given.out)
    if (folder / FILE).exists() and not given.resume:
        tell(f"Note: {folder / FILE} is written anew; --resume goes on from it.")
    how: dict[str, Any] = {"parts": parts, "extras": extras, "jobs": given.jobs, "resume": given.resume, "tell": tell}
    content = run_bench(problems, design, folder, **how)
    written = [folder / FILE, *write_figure(content, folder), *write_speed(content, folder)]
    if given.page is not None:
        written.append(into_page(content, Path(given.page)))
    said = [*tables(content), *overall_lines(content)]
    if given.quick:
        text = "These audits are few and small (--quick): that all of it runs is what they show, and nothing else."
        said.append(Paragraph(text))
    return terminal.show(said), written, bool(content["summary"]["errors"])


def chosen_parts(
    only: str | None, known: dict[str, Extra], memory: bool, *, has_names: bool
) -> tuple[list[str], list[Extra]]:
    """The parts and the named measurements that the options ask for.

    All parts and the measurements that run by default, unless `only` says which; where problems are named, no named
    measurements (they are not about a problem).
    """
    if only is None:
        extras = [extra for extra in known.values() if extra.by_default and not has_names]
        asked = list(PARTS)
    else:
        given, all_names = [name.strip() for name in only.split(",") if name.strip()], [*PARTS, *known, *SETS]
        wrong = only if not given else next((name for name in given if name not in all_names), None)
        if wrong is not None:
            hint = did_you_mean(wrong, all_names)
            raise UsageError(f"only must name parts among {', '.join(all_names)}, got {wrong!r}.{hint}")
        names = [name for one in given for name in SETS.get(one, (one,))]
        asked = [name for name in names if name in PARTS]
        extras = [known[name] for name in dict.fromkeys(names) if name in known]
    if memory and known["memory"] not in extras:
        extras.append(known["memory"])
    return asked, extras


def problem_table(names: Sequence[str]) -> Group:
    """Table of the problems: name, kind, claim, size, soundness and source."""
    rows = [
        (problem.id, problem.kind, str(problem.claim), str(problem.dimensions), problem.state, problem.source)
        for problem in load_problems(names)
    ]
    return terminal.show([Table("", ("problem", "kind", "claim", "size", "state", "source"), tuple(rows))])
