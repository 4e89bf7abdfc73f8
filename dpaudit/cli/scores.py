"""`dpaudit scores`."""

from __future__ import annotations

from typing import Any

import click

from dpaudit.cli.group import list_option, main, note, report_error, with_debug, with_quiet
from dpaudit.cli.outputs import output_console
from dpaudit.config import formats
from dpaudit.errors import OutputError, UsageError

DEFAULT_FORMATS = ("json", "html", "md")  # where --out is given without --report


@main.command("scores")
@click.argument("scores_in", metavar="IN")
@click.argument("scores_out", metavar="OUT")
@click.option("--claim", required=True, help="The promise, as for `dpaudit audit`: eps=8,delta=1e-5 or mu=1.")
@click.option(
    "--design",
    type=click.Choice(["one-run", "many-runs", "sequential", "paired"]),
    default="one-run",
    show_default=True,
    help="How the scores came about.",
)
@click.option("--confidence", type=float, default=0.95, show_default=True, help="For the verdict and all bounds.")
@click.option("--seed", type=int, help="Of the order of runs, ties and coins.  [default: 0]")
@click.option("--guesses", type=int, help="One run: canaries to guess on, decided beforehand.  [default: four share]")
@click.option(
    "--assume",
    type=click.Choice(["nothing", "independent"]),
    default="nothing",
    show_default=True,
    help="One run: the bound that the verdict rests on, of the two that are printed.",
)
@click.option("--store", metavar="FILE", help="Sequential: an evidence store that these scores go on in, by --name.")
@click.option("--name", help="With --store: what the scores are of, such as the training and the attack.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--out", help="Folder to write scores.json, scores.html and scores.md to.  [default: none]")
@list_option("--report", help="Formats to write there: json, html, md, pdf, with commas.")
@with_quiet
@with_debug
@click.pass_context
def scores_command(
    ctx: click.Context,
    /,
    scores_in: str,
    scores_out: str,
    claim: str,
    form: str,
    out: str | None,
    report: str | None,
    **options: Any,
) -> None:
    """Audit a training from the scores of canaries that were in it, and of canaries that were not.

    IN and OUT end in .csv, .txt, .npy, .npz, .json or .parquet; FILE:NAME names a column. Larger scores speak for "in".
    With --store, give files that grow, or new scores alone; what was counted is not counted again.
    Exit status as of `audit`: 1 a violation, 5 if so few canaries could not have shown one.
    """
    from dpaudit.reports.scores import check_formats, scores_table, write_reports
    from dpaudit.scores.auditing import audit_scores

    if report is not None and out is None:
        raise UsageError(f"out must name a folder for the reports, got none with --report {report}.")
    chosen = check_formats(formats(report) if report is not None else DEFAULT_FORMATS, out) if out is not None else ()
    result = audit_scores(scores_in, scores_out, claim, **options)
    if form == "json":
        click.echo(result.to_text(), nl=False)
    else:
        output_console().print(scores_table(result))
    if out is not None:
        try:
            written = write_reports(result, out, chosen)
        except OutputError as error:  # what was found is known, and a violation stays one
            status = report_error(ctx, error)
            ctx.exit(result.exit_status if result.verdict == "violated" else status)
        for path in written:
            note(f"Written: {path}", err=form == "json")
    ctx.exit(result.exit_status)
