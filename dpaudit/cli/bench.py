"""`dpaudit bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpaudit.cli.group import command, list_option, tell
from dpaudit.cli.outputs import output_console
from dpaudit.errors import SubjectError


@command("bench", quiet="No progress on stderr.")
@click.argument("problems", nargs=-1, metavar="[PROBLEM...]")
@click.option("--list", "listing", is_flag=True, help="Print the problems and stop.")
@click.option("--quick", is_flag=True, help="A few small audits of each: a smoke test, no measurement.")
@click.option("--seeds", type=int, help="Sequential audits of each faulty problem.  [default: 20]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the whole run.")
@list_option("--only", help="Parts to measure: draws,bounds,alarms,classics,overhead,floating_point,memory,speed ...")
@click.option("--memory", is_flag=True, help="Measure peak memory too (minutes).")
@click.option("--jobs", type=int, default=1, show_default=True, help="Worker processes; -1 takes all processors.")
@click.option("--out", default="dpaudit-bench", show_default=True, help="Folder of bench.json and the plot.")
@click.option("--resume", is_flag=True, help="Go on from the bench.json that is there.")
@click.option("--page", help="A page whose table between the marks of speed is made anew.")
def bench_command(ctx: click.Context, given: Any) -> None:
    """Measure the auditor against the optimum on a set of problems, or on the PROBLEMs that are named.

    The optimum is the best fixed test that is told the best event. Exit status 0 once everything is measured, whatever
    the figures are; 3 if a problem or a measurement broke.
    """
    from dpaudit.bench.command import bench, problem_table
    from dpaudit.results.saving import check_folder

    console = output_console()
    if given.listing:
        console.print(problem_table(given.problems), soft_wrap=True)
        return
    check_folder("out", Path(given.out))
    shown, written, broke = bench(given, tell)
    console.print(shown)
    for path in written:
        click.echo(f"Written: {path}")
    ctx.exit(SubjectError.exit_status if broke else 0)
